package alerts

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/settings"
)

const someAlerts = `[
	{"labels":{"alertname":"JobGpusIdle","severity":"info","user":"al-ann","job_name":"train","vc":"speech"},"annotations":{"summary":"idle"}},
	{"labels":{"alertname":"JobGpusIdle","user":"al-vic","job_name":"see","vc":"vision"}},
	{"labels":{"alertname":"NodeDown","severity":"critical","node":"gpu-1"},"annotations":{"summary":"down"}},
	{"labels":{"alertname":"Tricky","user":"al-ann"}},
	{"labels":{"alertname":"Silenced","user":"al-ann","job_name":"train","vc":"speech"}},
	{"labels":{"alertname":"Heartbeat"}}]`

// This test reads alerts of a real Alertmanager in the form that OpenPAI's portal reads.
func TestAlertsInOpenPAIsWords(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	m := startMonitoring(t, nil)
	manager := "http://" + m.at["alert-manager"]
	send := func(path, body string) {
		code, text, err := ask(t, http.MethodPost, manager+path, metricsPassword, body)
		require.NoError(t, err)
		require.Equal(t, 200, code, text)
	}
	send("/api/v2/silences", strings.ReplaceAll(aSilence, "Always", "Silenced"))
	send("/api/v2/alerts", someAlerts)
	m.alerting(t)
	o := settings.Default()
	o.Alerts = settings.AlertManager{URL: manager, Password: true} // its pages needn't be behind the door
	s := servertest.Start(t, c, servertest.Options{Settings: o, AccessFile: filepath.Join(m.access, "password")})
	s.Group("al-speech", func(g *v1.GroupSpec) { g.VirtualClusters = []v1.VCGrant{{Name: "speech", SeeJobs: true}} })
	s.Group("al-quiet", func(g *v1.GroupSpec) { g.VirtualClusters = []v1.VCGrant{{Name: "speech"}} })
	s.Group("al-page", func(g *v1.GroupSpec) { g.Pages = []string{"alerts"} })
	tokens := map[string]string{}
	for name, group := range map[string]string{"al-ann": "al-quiet", "al-abe": "al-speech", "al-eve": "al-quiet", "al-page": "al-page", "al-root": v1.GroupAdministrators} {
		s.Person(name, group)
		tokens[name] = s.SignIn(name)
	}
	type told struct {
		Labels      map[string]string
		Annotations map[string]string
		StartsAt    string
		Receivers   []string
		Status      struct {
			State       string
			SilencedBy  []string
			InhibitedBy []string
		}
	}
	read := func(who string) (names []string, all []told) {
		a := s.Do("GET", "/api/v2/alerts", tokens[who], "")
		require.Equal(t, 200, a.Status, a.Body)
		require.NoError(t, json.Unmarshal([]byte(a.Body), &all))
		for _, one := range all {
			names = append(names, one.Labels["alertname"]+" "+one.Labels["job_name"])
		}
		return names, all
	}
	everything := []string{"JobGpusIdle al-ann~train", "JobGpusIdle al-vic~see", "NodeDown ", "Tricky ", "Always "}
	for who, want := range map[string][]string{"al-ann": {"JobGpusIdle al-ann~train"}, "al-abe": {"JobGpusIdle al-ann~train"}, "al-eve": nil, "al-page": everything, "al-root": everything} {
		names, _ := read(who)
		assert.ElementsMatch(t, want, names, who)
	}
	_, all := read("al-ann")
	one := all[0]
	assert.Equal(t, map[string]string{"alertname": "JobGpusIdle", "severity": "info", "user": "al-ann", "username": "al-ann", "job_name": "al-ann~train", "vc": "speech"}, one.Labels)
	assert.Equal(t, "idle", one.Annotations["summary"])
	assert.NotEmpty(t, one.StartsAt)
	assert.NotEmpty(t, one.Receivers, "names, and no objects")
	assert.Equal(t, "active", one.Status.State)
	assert.NotNil(t, one.Status.SilencedBy)
	assert.NotContains(t, s.Printed.String(), metricsPassword)

	o.Alerts = settings.AlertManager{URL: "http://127.0.0.1:" + freePort(t)}
	away := servertest.Start(t, c, servertest.Options{Settings: o})
	a := away.Do("GET", "/api/v2/alerts", tokens["al-ann"], "")
	assert.Equal(t, 503, a.Status, a.Body)
	assert.Equal(t, "UnavailableError", a.Code())
	assert.NotEmpty(t, a.Header.Get("Retry-After"))
	assert.NotContains(t, a.Body, "127.0.0.1")

	o.Door, o.Alerts = map[string]settings.Service{"alert-manager": {URL: manager, Page: "alerts", Password: true}}, settings.AlertManager{}
	none := servertest.Start(t, c, servertest.Options{Settings: o})
	a = none.Do("GET", "/api/v2/alerts", tokens["al-ann"], "")
	assert.Equal(t, 501, a.Status, "that nothing fires isn't known: %s", a.Body)
	assert.Equal(t, "NotImplementedError", a.Code())
	assert.Contains(t, a.Body, "alerts.url")
}
