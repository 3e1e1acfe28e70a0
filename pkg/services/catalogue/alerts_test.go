package catalogue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Alertmanager sends alerts to the alert handler, with the token that it requires, unless one of both is off.
func TestAlertsReachTheAlertHandler(t *testing.T) {
	for section, want := range map[string]any{
		"": map[string]any{"url": "http://alert-handler:9095/alerts", "tokenSecret": "alerts-token"},
		"alert-handler: {service: {port: 9999}, tokenSecret: mine}\n": map[string]any{"url": "http://alert-handler:9999/alerts", "tokenSecret": "mine"},
		"alert-handler: {enabled: false}\n":                           nil,
	} {
		c, found, err := Load(t.Context(), gpuCluster(t, 1, section), Options{})
		require.NoError(t, err)
		require.NoError(t, found.Err(), section)
		s := c.Get("alert-manager")
		if want == nil {
			assert.Nil(t, s.Values["alertHandler"])
			continue
		}
		assert.Equal(t, want, s.Values["alertHandler"], section)
	}
}

// Mistakes in policies are found where they are made.
func TestPoliciesAreChecked(t *testing.T) {
	_, findings, err := Load(t.Context(), gpuCluster(t, 1, `alert-handler:
  keep: 1h
  policies:
    - name: one
      alerts: {alertname: "a(b"}
      steps: [{do: stop-job}, {do: cordon}]
    - name: one
      alerts: {alertname: x}
      steps: [{do: drain, grace: 169h}]
`), Options{})
	require.NoError(t, err)
	var got []string
	for _, f := range findings {
		got = append(got, f.Field+": "+f.Message)
		assert.NotEmpty(t, f.Remedy)
		assert.Positive(t, f.Line)
	}
	assert.Equal(t, []string{
		"alert-handler.keep: 1h0m0s is shorter than 24h, and earlier actions tell which alerts are repeated",
		`alert-handler.policies[0].alerts.alertname: "a(b" is not a regular expression: missing closing ): ` + "`^(?:a(b)$`",
		"alert-handler.policies[0].steps[1].do: cordon acts on another target than the step before: a policy either stops jobs or changes machines",
		`alert-handler.policies[1].name: another policy has the name "one"`,
		"alert-handler.policies[1].steps[0].grace: the grace 169h0m0s is too long, or negative",
	}, got)
}
