package controller

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics contains the controller's metrics, which docs/job-controller.md describes.
type metrics struct {
	jobs      *prometheus.GaugeVec
	info      *prometheus.GaugeVec
	attempts  *prometheus.CounterVec
	reconcile prometheus.Histogram
	writes    *prometheus.CounterVec
	barrier   prometheus.Histogram
	forced    prometheus.Counter
	archive   prometheus.Counter
	logs      *prometheus.CounterVec
	rulesGood prometheus.Gauge
	conflicts prometheus.Counter
	lost      prometheus.Counter
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	opts := func(n, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "pai", Subsystem: "controller", Name: n, Help: help}
	}
	m := &metrics{
		jobs:     prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("jobs", "Frameworks by state.")), []string{"state"}),
		info:     prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("job_info", "Frameworks that aren't completed, and whose they are, as labels.")), []string{"framework", "job_name", "user", "vc"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts(opts("attempts_total", "Completed attempts of jobs.")), []string{"result"}),
		reconcile: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "pai", Subsystem: "controller", Name: "reconcile_duration_seconds",
			Help: "Time that one look at a Framework took, calls of the API included.", Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 12)}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts(opts("api_calls_total", "Calls of the API server.")), []string{"verb", "resource", "code"}),
		barrier: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "pai", Subsystem: "controller", Name: "barrier_duration_seconds",
			Help: "Time from the last task's address to the publication of all.", Buckets: prometheus.ExponentialBuckets(0.002, 2, 12)}),
		forced:    prometheus.NewCounter(prometheus.CounterOpts(opts("forced_deletions_total", "Pods deleted by force."))),
		archive:   prometheus.NewCounter(prometheus.CounterOpts(opts("archive_errors_total", "Writes to the archive that failed and were repeated."))),
		logs:      prometheus.NewCounterVec(prometheus.CounterOpts(opts("logs_saved_total", "Logs of tasks, before their pods were removed.")), []string{"result"}),
		rulesGood: prometheus.NewGauge(prometheus.GaugeOpts(opts("failure_rules_valid", "Whether the latest failure rules are in use."))),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts(opts("status_conflicts_total", "Statuses that another writer had changed since they were read."))),
		lost:      prometheus.NewCounter(prometheus.CounterOpts(opts("task_states_lost_total", "ConfigMaps of tasks that were missing, old or damaged, and made again from the pods."))),
	}
	if r == nil {
		return m, nil
	}
	var err error
	for _, c := range []prometheus.Collector{m.jobs, m.info, m.attempts, m.reconcile, m.writes, m.barrier, m.forced, m.archive, m.logs, m.rulesGood, m.conflicts, m.lost} {
		err = errors.Join(err, r.Register(c))
	}
	if err != nil {
		return nil, fmt.Errorf("register the controller's metrics: %w", err)
	}
	return m, nil
}

// count returns a transport that counts the requests to the API.
func (m *metrics) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		code := "error"
		if err == nil {
			code = fmt.Sprint(resp.StatusCode)
		}
		m.writes.WithLabelValues(r.Method, resource(r.URL.Path), code).Inc()
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// resource returns the resource, and the subresource if any, in a path of the API. Such paths are /api/v1/namespaces/NS/RESOURCE/NAME/SUB or
// /apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME/SUB.
func resource(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 2
	if parts[0] == "apis" {
		skip = 3
	}
	if len(parts) <= skip {
		return "other"
	}
	parts = parts[skip:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}
