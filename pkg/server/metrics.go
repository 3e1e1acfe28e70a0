package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts requests by route. It never counts by path, because clients can invent any number of paths.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	open     prometheus.Gauge
	limited  prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pai_server_requests_total", Help: "Requests, by route, method and status."}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "pai_server_request_seconds", Help: "How long answers took.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}}, []string{"route"}),
		open:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "pai_server_requests_open", Help: "Requests that are being answered."}),
		limited: prometheus.NewCounter(prometheus.CounterOpts{Name: "pai_server_limited_total", Help: "Requests that were refused because of a limit."}),
	}
	if r != nil {
		r.MustRegister(m.requests, m.seconds, m.open, m.limited)
	}
	return m
}

func (m *metrics) begin() { m.open.Inc() }

func (m *metrics) end(method, route string, status int, took time.Duration) {
	m.open.Dec()
	if route == "" {
		route = "none"
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}
