package alerthandler

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/openpai/paictl/pkg/alerthandler/notify"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

type metrics struct {
	registry              *prometheus.Registry
	alerts, ignored, made prometheus.Counter
	actions               *prometheus.GaugeVec
	notices, unsent       *prometheus.CounterVec
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "pai_alert_handler", Name: name, Help: help})
	}
	m := &metrics{registry: prometheus.NewRegistry(),
		alerts:  counter("alerts_total", "Alerts that Alertmanager sent, repeated ones as well."),
		ignored: counter("alerts_ignored_total", "Alerts of a policy without a target in the cluster, or with an exempt one."),
		made:    counter("actions_made_total", "Actions that policies made."),
		actions: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "pai_alert_handler", Name: "actions", Help: "Actions by operation and phase; only the replica that leads reports them."}, []string{"do", "phase"}),
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "pai_alert_handler", Name: name, Help: help}, labels)
	}
	m.notices = vec("notices_total", "Notices by channel and result: sent, skipped because the person has no address, or lost.", "channel", "result")
	m.unsent = vec("notice_failures_total", "Messages and connections of a channel that failed and are retried.", "channel")
	m.registry.MustRegister(m.alerts, m.ignored, m.made, m.actions, m.notices, m.unsent)
	return m
}

// Notices adds n to the number of notices with a result on a channel.
func (m *metrics) Notices(channel string, r notify.Result, n int) {
	m.notices.WithLabelValues(channel, string(r)).Add(float64(n))
}

// Failed counts a failure of a channel.
func (m *metrics) Failed(channel string) { m.unsent.WithLabelValues(channel).Inc() }

// count sets the metric for the number of Actions by operation and phase.
func (m *metrics) count(all []*v1.Action) {
	m.actions.Reset()
	for _, a := range all {
		m.actions.WithLabelValues(string(a.Spec.Do), a.Status.Phase.String()).Inc()
	}
}
