package alerts

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

func TestSchemasRefuseWhatWouldFailLater(t *testing.T) {
	for _, c := range []struct{ name, service, values, says string }{
		{"an unknown key", "prometheus", "retentoin: {time: 1d}", "retentoin"},
		{"a floating tag", "prometheus", "image: {tag: latest}", "tag"},
		{"a duration without a unit", "prometheus", `scrape: {interval: "30"}`, "interval"},
		{"a size in a unit of Kubernetes", "prometheus", "retention: {size: 40Gi}", "size"},
		{"a group that there isn't", "prometheus", "alerts: {groups: {gpu: false}}", "gpu"},
		{"rules without a group", "prometheus", "customRules: {mine: {rules: []}}", "mine"},
		{"a rule that is both alert and record", "prometheus", "customRules: {mine: {groups: [{name: a, rules: [{alert: A, record: b, expr: up}]}]}}", "rules"},
		{"a mail server without a sender", "alert-manager", "receivers: {email: {smtpHost: mail.example.org, to: [a@example.org]}}", "from"},
		{"a mail server without receivers", "alert-manager", "receivers: {email: {smtpHost: mail.example.org, from: pai@example.org}}", "to"},
		{"a port for users that the replicas use", "alert-manager", "service: {port: 9094}", "port"},
		{"a webhook without http", "alert-manager", "receivers: {webhooks: {a: {url: hooks.example.org}}}", "url"},
		{"a receiver that hides the chart's own", "alert-manager", "customReceivers: [{name: operators}]", "name"},
		{"a collector that is no name", "node-exporter", `collectors: ["cpu --help"]`, "collectors"},
		{"another propagation", "node-exporter", "mountPropagation: Bidirectional", "mountPropagation"},
	} {
		t.Run(c.name, func(t *testing.T) {
			chart, err := loader.Load(filepath.Join("../../templates/charts", c.service))
			require.NoError(t, err)
			values, err := chartutil.ReadValues([]byte(c.values))
			require.NoError(t, err)
			_, err = chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{}, nil)
			require.ErrorContains(t, err, c.says)
		})
	}
}
