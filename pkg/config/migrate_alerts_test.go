package config

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// alertsOfTheOriginal has the shapes of the original's documents.
const alertsOfTheOriginal = `
alert-manager:
  port: 9093
  pai-bearer-token: T0KEN
  alert-handler:
    port: 9095
    log-level: info
    email-configs:
      admin-receiver: ops@example.org
      smtp-host: smtp.example.org
      smtp-port: 465
      smtp-from: pai@example.org
      smtp-auth-username: pai
      smtp-auth-password: S3CRET
  customized-routes:
    routes:
      - receiver: Idle & stop
        match: {alertname: "Job.Idle"}
        match_re: {vc: "a|b"}
      - receiver: sick
        match: {alertname: NodeSick}
        continue: true
      - receiver: mails-only
        match: {alertname: Mine}
      - receiver: nobody
        match: {alertname: Other}
      - receiver: sick
  customized-receivers:
    - name: Idle & stop
      actions:
        email-admin: {template: general-templates}
        email-user: {template: kill-low-efficiency-job-alert}
        stop-jobs:
        tag-jobs: {tags: [stopped-by-alert]}
    - name: sick
      actions:
        cordon-nodes:
        fix-nvidia-gpu-low-perf:
    - name: mails-only
      actions:
        email-admin:
    - name: unused
      actions:
        stop-jobs:
  cluster-utilization: {schedule: "0 0 * * *"}
  job-status-change-notification: {enable: true, db-poller-interval-second: 120}
`

const oneMachine = "machine-sku: {x: {mem: 1, cpu: {vcore: 1}, os: a}}\nmachine-list: [{hostname: a, hostip: 10.0.0.1, k8s-role: master, pai-master: \"true\", machine-type: x}]\n"

func TestAlertActionsOfTheOriginalBecomePolicies(t *testing.T) {
	m, err := Migrate(folder(t, map[string]string{LayoutFile: oneMachine, ServicesFile: alertsOfTheOriginal}), "new", nil)
	require.NoError(t, err)
	step := func(do string) []any { return []any{map[string]any{"do": do}} }
	assert.Equal(t, map[string]any{
		"notifications": map[string]any{
			"smtp":           map[string]any{"host": "smtp.example.org", "port": 465, "tls": "implicit", "from": "pai@example.org", "username": "pai", "password": "S3CRET"},
			"administrators": []any{"ops@example.org"}, "weeklyReport": true,
		},
		"policies": []any{
			map[string]any{"name": "idle-stop", "alerts": map[string]any{"alertname": `Job\.Idle`, "vc": "a|b"}, "dryRun": true, "steps": step("stop-job")},
			map[string]any{"name": "sick", "alerts": map[string]any{"alertname": "NodeSick"}, "dryRun": true, "steps": step("cordon")},
		},
	}, m.Cluster.Services.Sections["alert-handler"])
	email := m.Cluster.Services.Sections["alert-manager"].(map[string]any)["receivers"].(map[string]any)["email"].(map[string]any)
	assert.Equal(t, "smtp.example.org", email["smtpHost"], "Alertmanager still mails the administrator")

	notes := map[string]string{}
	for _, n := range m.Notes {
		notes[n.Field] = n.Action + ": " + n.Reason
		assert.NotContains(t, n.Value, "S3CRET")
	}
	const routes, receivers = "alert-manager.customized-routes.routes", "alert-manager.customized-receivers"
	for field, reason := range map[string]string{
		routes + "[0].receiver":                           "changed: the policy idle-stop of alert-handler.policies now (stop-job). It is a dry run until you set dryRun: false",
		routes + "[1].receiver":                           "changed: the policy sick of",
		routes + "[1].continue":                           "dropped: paictl does not use this field",
		routes + "[2]":                                    "dropped: its receiver mails-only has no action that the alert handler can take",
		routes + "[3]":                                    `dropped: customized-receivers has no receiver "nobody"`,
		routes + "[4]":                                    "dropped: a policy has to name labels of alerts",
		receivers + "[0].actions.email-admin":             "dropped: Alertmanager mails every alert",
		receivers + "[0].actions.email-user":              "dropped: the alert handler mails owners",
		receivers + "[0].actions.tag-jobs":                "dropped: the alert handler doesn't tag jobs",
		receivers + "[1].actions.fix-nvidia-gpu-low-perf": "dropped: the alert handler doesn't change the clocks of GPUs",
		receivers + "[3]":                                 `dropped: no route leads to the receiver "unused"`,
		"alert-manager.cluster-utilization":               "changed: alert-handler.notifications.weeklyReport now",
		"alert-manager.job-status-change-notification":    "changed: the service alert-handler does that",
		"alert-manager.pai-bearer-token":                  "dropped: the alert handler acts by its own account",
	} {
		assert.Contains(t, notes[field], reason, "%s; there are %s", field, fmt.Sprint(notes))
	}
}

func TestReportsOfTheOriginalWithoutMail(t *testing.T) {
	m, err := Migrate(folder(t, map[string]string{LayoutFile: oneMachine, ServicesFile: `alert-manager: {cluster-utilization: {schedule: "0 0 * * *"}, customized-receivers: [{name: a, actions: [stop-jobs, mine]}], customized-routes: {routes: [{receiver: a, match_re: {alertname: "a("}}]}}` + "\n"}), "new", nil)
	require.NoError(t, err)
	assert.Nil(t, m.Cluster.Services.Sections["alert-handler"])
	text := fmt.Sprint(m.Notes)
	for _, reason := range []string{"without a mail server no report is sent", "it is not a regular expression", "a policy has to name labels", "doesn't have this action"} {
		assert.Contains(t, text, reason)
	}
}
