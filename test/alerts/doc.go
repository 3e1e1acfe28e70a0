// Package alerts tests the alert rules of the chart prometheus. Each rule must fire when it should and only then, and docs/alerts.md must explain
// it. Prometheus and Alertmanager must accept their configurations.
// In: *_test.yaml, tests in promtool's own format; promtool from PAICTL_PROMTOOL or a bundle.
package alerts
