package catalogue

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Alertmanager sends alerts with a token to the alert handler, unless one of these services is disabled.
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

// Webhooks must not reach pods and services, even if their addresses are public.
func TestTheAlertHandlerKnowsTheClustersNetworks(t *testing.T) {
	cfg := gpuCluster(t, 1, "")
	cfg.Kubernetes.Kubernetes.PodCIDR, cfg.Kubernetes.Kubernetes.ServiceClusterIPRange = "203.1.0.0/16", "203.2.0.0/16"
	c, found, err := Load(t.Context(), cfg, Options{})
	require.NoError(t, err)
	require.NoError(t, found.Err())
	assert.Equal(t, map[string]any{"clusterNetworks": []any{"203.1.0.0/16", "203.2.0.0/16"}}, c.Get("alert-handler").Values["notifications"])
}

// Mistakes in notifications are reported at their positions. Secrets are removed from the values.
func TestNotificationsAreChecked(t *testing.T) {
	_, findings, err := Load(t.Context(), gpuCluster(t, 1, `alert-handler:
  notifications:
    smtp: {host: mail.example.org, from: nobody, username: pai}
    webhooks:
      - {name: ops, type: slack}
      - {name: ops, type: slack, secretUrl: "https://hooks.example.org/T0KEN", signingSecret: T0KEN}
`), Options{})
	require.NoError(t, err)
	var got []string
	for _, f := range findings {
		got = append(got, f.Field+": "+f.Message)
		assert.NotEmpty(t, f.Remedy)
		assert.Positive(t, f.Line)
		assert.NotContains(t, f.String(), "T0KEN")
	}
	assert.ElementsMatch(t, []string{
		`alert-handler.notifications.smtp.from: "nobody" is not an address`,
		"alert-handler.notifications.smtp.password: a user name and a password belong together",
		"alert-handler.notifications.webhooks[0].secretUrl: it is not the address of a webhook",
		"alert-handler.notifications.webhooks[1].signingSecret: only feishu and dingtalk check signatures",
		`alert-handler.notifications.webhooks[1].name: another webhook has the name "ops"`,
	}, got)
	c, findings, err := Load(t.Context(), gpuCluster(t, 1, `alert-handler:
  notifications:
    smtp: {host: mail.example.org, from: pai@example.org, username: pai, password: S3CRET}
    webhooks: [{name: ops, type: feishu, secretUrl: "https://hooks.example.org/T0KEN", signingSecret: S1GN}]
`), Options{})
	require.NoError(t, err)
	require.NoError(t, findings.Err())
	s := c.Get("alert-handler")
	got = nil
	for key, value := range s.Credentials {
		got = append(got, key+"="+value.Reveal())
	}
	assert.ElementsMatch(t, []string{"notifications.smtp.password=S3CRET", "notifications.webhooks.0.secretUrl=https://hooks.example.org/T0KEN", "notifications.webhooks.0.signingSecret=S1GN"}, got)
	text, err := json.Marshal(s.Values)
	require.NoError(t, err)
	assert.NotRegexp(t, "S3CRET|T0KEN|S1GN", string(text))
}

// Mistakes in policies are reported at their positions.
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
    - name: two
      alerts: {alertname: x}
      dryRun: true
      steps: [{do: stop-job}]
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
		`alert-handler.policies[0]: the policy "one" stops jobs, and no notice can reach their owners before`,
		`alert-handler.policies[0].alerts.alertname: "a(b" is not a regular expression: missing closing ): ` + "`a(b`",
		"alert-handler.policies[0].steps[1].do: cordon acts on another target than the step before: a policy is either for jobs or for machines",
		`alert-handler.policies[1].name: another policy has the name "one"`,
		"alert-handler.policies[1].steps[0].grace: the grace 169h0m0s is too long, or negative",
	}, got)
}

// A policy that restarts machines requires permission in the sections of the alert handler and the agent.
func TestRestartsOfMachinesAreAllowedTwice(t *testing.T) {
	const restarts = "  policies: [{name: lost, alerts: {alertname: x}, steps: [{do: drain}, {do: restart-machine}]}]\n"
	for text, want := range map[string][]string{
		"alert-handler:\n" + restarts:                                                                                               {"alert-handler.policies[0].steps[1].do: restarts of machines are off"},
		"alert-handler:\n  restartMachines: true\n" + restarts:                                                                      {"alert-handler.restartMachines: the agents, which restart their machines, don't allow it"},
		"alert-handler:\n  restartMachines: true\n" + restarts + "agent: {restartMachines: true}\n":                                 nil,
		"alert-handler:\n  restartMachines: true\n  limits: {restartsPerHour: 0}\n" + restarts + "agent: {restartMachines: true}\n": {`alert-handler.limits.restartsPerHour: the policy "lost" would drain machines and never restart them`},
		"agent: {restartMachines: true}\n":                                                                                          nil,
	} {
		_, findings, err := Load(t.Context(), gpuCluster(t, 1, text), Options{})
		require.NoError(t, err)
		var got []string
		for _, f := range findings {
			got = append(got, f.Field+": "+f.Message)
			assert.NotEmpty(t, f.Remedy)
		}
		assert.Equal(t, want, got, text)
	}
}
