package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// alertsOfTheOriginal contains the forms of settings in OpenPAI's documentation.
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
		routes + "[4]":                                    "dropped: it selects every alert, and a policy has to name labels of alerts",
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

// migratedAlerts migrates a section alert-manager of OpenPAI and other sections. It returns the new section alert-handler and the notes.
func migratedAlerts(t *testing.T, services string) (section map[string]any, notes string) {
	t.Helper()
	m, err := Migrate(folder(t, map[string]string{LayoutFile: oneMachine, ServicesFile: services}), "new", nil)
	require.NoError(t, err)
	section, _ = m.Cluster.Services.Sections["alert-handler"].(map[string]any)
	for _, n := range m.Notes {
		notes += n.Field + ": " + n.Action + ": " + n.Reason + "\n"
		assert.NotContains(t, n.Value, "S3CRET")
	}
	return section, notes
}

// routes is the beginning of a section alert-manager with the receivers stop and mail.
const routes = "alert-manager:\n  customized-receivers: [{name: stop, actions: [stop-jobs]}, {name: mail, actions: [email-admin]}]\n  customized-routes:\n    routes:\n"

// OpenPAI's Alertmanager used only the first matching route, but all matching policies act. The notes therefore list routes whose alerts a policy
// newly receives.
func TestRoutesThatComeFirstAreNamed(t *testing.T) {
	const before = "In OpenPAI, alerts that alert-manager.customized-routes.routes[0] selects never came here"
	for name, c := range map[string]struct {
		routes []string
		first  bool
	}{
		"some of its alerts":                {[]string{"{receiver: mail, match: {alertname: JobIdle, vc: research}}", "{receiver: stop, match: {alertname: JobIdle}}"}, true},
		"all alerts":                        {[]string{"{receiver: mail}", "{receiver: stop, match: {alertname: JobIdle}}"}, true},
		"by an expression":                  {[]string{`{receiver: mail, match_re: {alertname: "Job.*"}}`, "{receiver: stop, match: {alertname: JobIdle}}"}, true},
		"the first one stops, too":          {[]string{"{receiver: stop, match: {vc: a}}", "{receiver: stop, match: {alertname: JobIdle}}"}, true},
		"it continues":                      {[]string{"{receiver: mail, match: {alertname: JobIdle}, continue: true}", "{receiver: stop, match: {alertname: JobIdle}}"}, false},
		"another alert":                     {[]string{"{receiver: mail, match: {alertname: Other}}", "{receiver: stop, match: {alertname: JobIdle}}"}, false},
		"another alert of an expression":    {[]string{"{receiver: mail, match: {alertname: Other}}", `{receiver: stop, match_re: {alertname: "Job.*"}}`}, false},
		"another alert than an expression":  {[]string{`{receiver: mail, match_re: {alertname: "Node.*"}}`, "{receiver: stop, match: {alertname: JobIdle}}"}, false},
		"a route after it takes none of it": {[]string{"{receiver: stop, match: {alertname: JobIdle}}", "{receiver: mail, match: {alertname: JobIdle}}"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := routes
			for _, r := range c.routes {
				text += "      - " + r + "\n"
			}
			_, notes := migratedAlerts(t, text)
			assert.Contains(t, notes, "the policy stop of alert-handler.policies now")
			assert.Equal(t, c.first, strings.Contains(notes, before), notes)
		})
	}
	_, notes := migratedAlerts(t, routes+"      - {receiver: stop, match: {alertname: JobIdle}, routes: [{receiver: mail, match: {vc: a}}]}\n")
	assert.Contains(t, notes, "alerts that alert-manager.customized-routes.routes[0].routes selects never came here")
}

// A policy selects exactly the alerts of its route. A route that no policy can replace is dropped, and the other routes are migrated.
func TestConditionsOfRoutes(t *testing.T) {
	for name, c := range map[string]struct {
		route  string
		alerts map[string]any // nil: no policy
		reason string
	}{
		"both kinds of one label":     {`{receiver: stop, match: {alertname: Exact}, match_re: {alertname: "Exact.*|Other"}}`, map[string]any{"alertname": "Exact"}, ""},
		"both kinds, without a value": {`{receiver: stop, match: {alertname: Mine}, match_re: {alertname: "Exact.*|Other"}}`, nil, "no alert can have both values of the label alertname"},
		"any name":                    {`{receiver: stop, match_re: {alertname: ".*"}}`, nil, "it selects every alert"},
		"no name":                     {`{receiver: stop, match: {alertname: ""}}`, nil, "it selects every alert"},
		"no condition":                {`{receiver: stop}`, nil, "a policy has to name labels of alerts"},
		"without a label":             {`{receiver: stop, match: {alertname: A, vc: ""}}`, map[string]any{"alertname": "A", "vc": ""}, ""},
		"any value of another label":  {`{receiver: stop, match: {alertname: A}, match_re: {vc: ".*"}}`, map[string]any{"alertname": "A", "vc": ".*"}, ""},
		"no expression":               {`{receiver: stop, match: {alertname: A}, match_re: {vc: "a("}}`, nil, "match_re.vc is not a regular expression"},
		"an expression in parts":      {`{receiver: stop, match_re: {alertname: "a)|(b"}}`, nil, "match_re.alertname is not a regular expression"},
		"a list":                      {`{receiver: stop, match: {alertname: A, vc: [a, b]}}`, nil, "the value of the label vc is not a text"},
		"matchers":                    {`{receiver: stop, match: {alertname: A}, matchers: ["vc=a"]}`, nil, "matchers aren't migrated"},
	} {
		t.Run(name, func(t *testing.T) {
			section, notes := migratedAlerts(t, routes+"      - "+c.route+"\n      - {receiver: stop, match: {alertname: Last}}\n")
			var want []any
			if c.alerts != nil {
				want = append(want, c.alerts)
			}
			var alerts []any
			for _, p := range section["policies"].([]any) {
				alerts = append(alerts, p.(map[string]any)["alerts"])
			}
			assert.Equal(t, append(want, map[string]any{"alertname": "Last"}), alerts)
			assert.Contains(t, notes, c.reason)
		})
	}
}

// Mail can have only one server. If the old file contains two different settings, the notes list the unused setting.
func TestTwoSettingsOfMails(t *testing.T) {
	section, notes := migratedAlerts(t, `alert-manager:
  alert-handler: {email-configs: {admin-receiver: ops@example.org, smtp-host: new.example.org, smtp-port: 25, smtp-from: pai@example.org}}
  smtp_url: old.example.org
  smtp_port: 25
  smtp_from: pai@example.org
  receiver: ops@example.org
  smtp_auth_password: S3CRET
`)
	assert.Equal(t, "new.example.org", section["notifications"].(map[string]any)["smtp"].(map[string]any)["host"])
	for _, key := range []string{"smtp_url", "smtp_auth_password"} {
		assert.Contains(t, notes, "alert-manager."+key+": dropped: mails have one server")
	}
	for _, key := range []string{"smtp_port", "smtp_from", "receiver"} {
		assert.NotContains(t, notes, "alert-manager."+key+":", "it is the same")
	}
}

// The settings in an existing section alert-handler are kept.
func TestASectionThatExistsIsKept(t *testing.T) {
	section, notes := migratedAlerts(t, `alert-handler:
  limits: {stopsPerHour: 5}
  policies: [{name: stop, alerts: {alertname: Mine}, steps: [{do: cordon}]}]
  notifications: {smtp: {host: mine.example.org, from: pai@example.org}}
`+routes+`      - {receiver: stop, match: {alertname: JobIdle}}
  email-configs: {admin-receiver: ops@example.org, smtp-host: new.example.org, smtp-from: pai@example.org}
`)
	assert.Equal(t, map[string]any{"stopsPerHour": 5}, section["limits"])
	var names []any
	for _, p := range section["policies"].([]any) {
		names = append(names, p.(map[string]any)["name"])
	}
	assert.Equal(t, []any{"stop", "stop-2"}, names)
	mails := section["notifications"].(map[string]any)
	assert.Equal(t, map[string]any{"host": "mine.example.org", "from": "pai@example.org"}, mails["smtp"])
	assert.Equal(t, []any{"ops@example.org"}, mails["administrators"])
	assert.Contains(t, notes, "alert-handler.notifications.smtp.host: changed: it stays, instead of what alert-manager has for it")
	assert.NotContains(t, notes, "smtp.from: changed: it stays")
}

func TestReportsOfTheOriginalWithoutMail(t *testing.T) {
	m, err := Migrate(folder(t, map[string]string{LayoutFile: oneMachine, ServicesFile: `alert-manager: {cluster-utilization: {schedule: "0 0 * * *"}, customized-receivers: [{name: a, actions: [stop-jobs, mine]}], customized-routes: {routes: [{receiver: a, match_re: {alertname: "a("}}]}}` + "\n"}), "new", nil)
	require.NoError(t, err)
	assert.Nil(t, m.Cluster.Services.Sections["alert-handler"])
	text := fmt.Sprint(m.Notes)
	for _, reason := range []string{"without a mail server no report is sent", "match_re.alertname is not a regular expression", "doesn't have this action"} {
		assert.Contains(t, text, reason)
	}
}
