package alerts

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

const everyReceiver = `
replicas: 3
receivers:
  email: {smtpHost: mail.example.org, from: pai@example.org, to: [a@example.org, b@example.org], authUsername: pai, authPassword: s3cret-mail}
  webhooks:
    ops: {url: "https://hooks.example.org/ops", authorization: bearer, bearerToken: s3cret-token}
    chat: {secretUrl: "https://chat.example.org/s3cret-url"}
  slack: {channel: "#cluster", apiUrl: "https://slack.example.org/s3cret-hook"}
  heartbeat: {url: "https://beat.example.org/s3cret-beat"}
customRoutes: [{receiver: team-a, matchers: ['team="a"']}]
customReceivers: [{name: team-a, webhook_configs: [{url: "http://team.example.org"}]}]
`

type route struct {
	Receiver       string
	Continue       bool
	Matchers       []string
	RepeatInterval string `yaml:"repeat_interval"`
	Routes         []route
}

type receiver struct {
	Name           string
	EmailConfigs   []map[string]any `yaml:"email_configs"`
	WebhookConfigs []map[string]any `yaml:"webhook_configs"`
	SlackConfigs   []map[string]any `yaml:"slack_configs"`
}

type alertmanager struct {
	Route        route
	InhibitRules []map[string]any `yaml:"inhibit_rules"`
	Receivers    []receiver
}

// alertmanagerConfig returns the rendered and decoded alertmanager.yml, and its receivers by name.
func alertmanagerConfig(t *testing.T, values string) (alertmanager, map[string]receiver) {
	t.Helper()
	var config alertmanager
	require.NoError(t, yaml.Unmarshal([]byte(configMaps(t, "alert-manager", values)["alert-manager"].Data["alertmanager.yml"]), &config))
	byName := map[string]receiver{}
	for _, r := range config.Receivers {
		byName[r.Name] = r
	}
	return config, byName
}

func TestEveryRouteLeadsToAReceiver(t *testing.T) {
	for _, values := range []string{"", everyReceiver} {
		config, receivers := alertmanagerConfig(t, values)
		require.Equal(t, "operators", config.Route.Receiver)
		for _, r := range config.Route.Routes {
			require.Contains(t, receivers, r.Receiver)
			require.NotEmpty(t, r.Matchers, "the route to %s takes everything", r.Receiver)
		}
		require.Empty(t, receivers["nobody"].EmailConfigs)
	}
}

// The alert handler gets every alert, and the operators get the same alerts as without it. If a route has matched an alert, Alertmanager no longer
// sends the alert to the receiver of the parent route, even if the route has continue set.
func TestTheAlertHandlerTakesNothingFromTheOperators(t *testing.T) {
	before, _ := alertmanagerConfig(t, everyReceiver)
	config, receivers := alertmanagerConfig(t, everyReceiver+"alertHandler: {url: http://alert-handler:9095/alerts, tokenSecret: alerts-token}")
	require.Contains(t, receivers, "alert-handler")
	require.Len(t, config.Route.Routes, 3)
	heartbeat, handler, operators := config.Route.Routes[0], config.Route.Routes[1], config.Route.Routes[2]
	require.Equal(t, before.Route.Routes[0], heartbeat)
	require.Equal(t, "alert-handler", handler.Receiver)
	require.True(t, handler.Continue)
	require.Empty(t, handler.Matchers)
	require.Equal(t, route{Receiver: before.Route.Receiver, Routes: before.Route.Routes[1:]}, operators)
	without, _ := alertmanagerConfig(t, "route: {silentSeverities: []}\nalertHandler: {url: http://alert-handler:9095/alerts}")
	require.Equal(t, route{Receiver: "operators"}, without.Route.Routes[2])
}

func TestWithoutReceiversNobodyIsTold(t *testing.T) {
	_, receivers := alertmanagerConfig(t, "")
	for _, r := range receivers {
		require.Empty(t, r.EmailConfigs, r.Name)
		require.Empty(t, r.WebhookConfigs, r.Name)
		require.Empty(t, r.SlackConfigs, r.Name)
	}
}

// Operators with a receiver must be notified without any other setting of GPUs that a job holds and doesn't use, which are the largest loss of a
// cluster, and of certificates, disks, backups and clocks, which are repaired only by people.
func TestAlertsThatOnlyPeopleActOnReachTheOperators(t *testing.T) {
	config, _ := alertmanagerConfig(t, everyReceiver)
	var silent []string
	for _, r := range config.Route.Routes {
		for _, m := range r.Matchers {
			if pattern, ok := strings.CutPrefix(m, "severity=~"); ok {
				silent = append(silent, strings.Trim(pattern, `"`))
			}
		}
	}
	require.NotEmpty(t, silent)
	found := map[string]int{}
	for _, r := range rules(t) {
		kind := regexp.MustCompile("^(JobGpusIdle|Certificate|Disk|Filesystem|ClusterBackup|NodeClock)").FindString(r.Alert)
		if kind == "" {
			continue
		}
		found[kind]++
		for _, pattern := range silent {
			require.NotRegexp(t, "^("+pattern+")$", r.Labels["severity"], r.Alert)
		}
	}
	require.Len(t, found, 6, found)
}

func TestSecretsOfReceiversStandOnlyInTheSecret(t *testing.T) {
	var where []string
	for _, doc := range manifests(t, "alert-manager", everyReceiver) {
		if strings.Contains(doc, "s3cret") {
			where = append(where, doc)
		}
	}
	require.Len(t, where, 1)
	require.Contains(t, where[0], "kind: Secret")

	_, receivers := alertmanagerConfig(t, everyReceiver)
	operators := receivers["operators"]
	require.Len(t, operators.EmailConfigs, 2)
	require.Equal(t, "/etc/alertmanager/credentials/receivers.email.authPassword", operators.EmailConfigs[0]["auth_password_file"])
	require.Len(t, operators.WebhookConfigs, 2)
	require.Equal(t, "/etc/alertmanager/credentials/receivers.webhooks.chat.secretUrl", operators.WebhookConfigs[0]["url_file"])
	require.Equal(t, "https://hooks.example.org/ops", operators.WebhookConfigs[1]["url"])
	require.Len(t, operators.SlackConfigs, 1)
	require.Len(t, receivers["heartbeat"].WebhookConfigs, 1)
	require.Equal(t, "/etc/alertmanager/credentials/receivers.heartbeat.url", receivers["heartbeat"].WebhookConfigs[0]["url_file"])
}

// If paictl stores the secrets itself, the values don't contain them. The chart must then create no Secret, because paictl's Secret would overwrite
// it, or it would be removed with the chart.
func TestTheChartMakesNoSecretWherePaictlDoes(t *testing.T) {
	for _, values := range []string{
		"",
		"{credentialsSecret: alert-manager-credentials, credentialsChecksum: abc, receivers: {webhooks: {chat: {}}}}",
	} {
		docs := strings.Join(manifests(t, "alert-manager", values), "\n---\n")
		require.NotContains(t, docs, "kind: Secret")
		require.Contains(t, docs, "secretName: alert-manager-credentials")
	}
	_, receivers := alertmanagerConfig(t, "receivers: {webhooks: {chat: {}}}")
	require.Contains(t, receivers["operators"].WebhookConfigs[0], "url_file")
	require.Empty(t, receivers["heartbeat"].WebhookConfigs, "it is off")
}
