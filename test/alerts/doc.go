// Package alerts tests the alert rules of the chart prometheus: that each fires when it should
// and only then, and that docs/alerts.md explains it; and that Prometheus and Alertmanager accept
// their configurations.
// In: *_test.yaml, tests in promtool's own format; promtool from PAICTL_PROMTOOL or a bundle.
package alerts
