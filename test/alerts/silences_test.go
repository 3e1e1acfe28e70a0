package alerts

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/settings"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// An administrator silences an alert of a real Alertmanager, and ends the silence again.
func TestSilencesOfAdministrators(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	m := startMonitoring(t, nil)
	m.alerting(t)
	o := settings.Default()
	o.Alerts = settings.AlertManager{URL: "http://" + m.at["alert-manager"], Password: true}
	s := servertest.Start(t, c, servertest.Options{Settings: o, AccessFile: filepath.Join(m.access, "password")})
	tokens := map[string]string{}
	for name, group := range map[string]string{"si-ann": v1.GroupDefault, "si-root": v1.GroupAdministrators} {
		s.Person(name, group)
		tokens[name] = s.SignIn(name)
	}
	silenced := func() (ids []string) {
		t.Helper()
		var all api.Alerts
		a := s.Do("GET", "/api/v3/alerts", tokens["si-root"], "")
		require.Equal(t, 200, a.Status, a.Body)
		a.Into(&all)
		for i := range all.Items {
			if all.Items[i].Name == "Always" {
				return all.Items[i].Silences
			}
		}
		t.Fatal("the alert doesn't fire")
		return nil
	}
	assert.Empty(t, silenced())
	const body = `{"matchers":[{"label":"alertname","value":"Alw.*","regex":true},{"label":"node","value":"gpu-1","not":true}],"seconds":3600,"reason":"known"}`
	assert.Equal(t, 403, s.Do("POST", "/api/v3/silences", tokens["si-ann"], body).Status)
	assert.Equal(t, 403, s.Do("GET", "/api/v3/silences", tokens["si-ann"], "").Status)
	a := s.Do("POST", "/api/v3/silences", tokens["si-root"], body)
	require.Equal(t, 201, a.Status, a.Body)
	var made api.Silence
	a.Into(&made)
	assert.Equal(t, "si-root", made.By)
	assert.Equal(t, 1, made.Alerts)
	assert.Equal(t, []string{made.ID}, silenced())

	var all api.Silences
	s.Do("GET", "/api/v3/silences", tokens["si-root"], "").Into(&all)
	require.Len(t, all.Items, 1)
	one := all.Items[0]
	assert.Equal(t, []api.Matcher{{Label: "alertname", Value: "Alw.*", Regex: true}, {Label: "node", Value: "gpu-1", Not: true}}, one.Matchers)
	assert.Equal(t, []string{"active", "si-root", "known"}, []string{one.State, one.By, one.Reason})
	assert.Equal(t, time.Hour, one.Ends.Sub(one.Starts).Round(time.Minute))

	end := "/api/v3/silences/" + made.ID
	assert.Equal(t, 403, s.Do("DELETE", end, tokens["si-ann"], "").Status)
	for range 2 { // the second changes nothing
		a = s.Do("DELETE", end, tokens["si-root"], "")
		require.Equal(t, 200, a.Status, a.Body)
		a.Into(&made)
		assert.Equal(t, "expired", made.State)
	}
	assert.Empty(t, silenced())
	assert.Equal(t, 404, s.Do("DELETE", "/api/v3/silences/5e1a5c52-6c23-4a0f-9a6c-1f3f1f9c3c11", tokens["si-root"], "").Status)
	assert.Equal(t, 400, s.Do("POST", "/api/v3/silences", tokens["si-root"], `{"matchers":[{"label":"a","value":".*","regex":true}],"seconds":3600,"reason":"x"}`).Status)
	s.Eventually("the audit has both", func() bool {
		var page struct {
			Items []struct{ Verb, Actor string }
		}
		s.Do("GET", "/api/v3/audit?kind=silence&outcome=done", tokens["si-root"], "").Into(&page)
		return len(page.Items) == 2 && page.Items[0].Verb == "end" && page.Items[1].Verb == "create" && page.Items[1].Actor == "si-root"
	})
}
