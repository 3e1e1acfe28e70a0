package app

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/diagnose/alerts"
	"github.com/openpai/paictl/pkg/people/rules"
)

// silenced gives the server an Alertmanager with one alert and the silence "b". It returns the silences that Alertmanager receives.
func (r *requests) silenced(t *testing.T) *[]alerts.Silence {
	t.Helper()
	sent := &[]alerts.Silence{}
	state := alerts.SilenceActive
	var err error
	r.app.Alerts, err = alerts.New(alerts.Options{Send: func(_ context.Context, method, path string, _ url.Values, body []byte) (int, []byte, error) {
		switch method + " " + path {
		case "GET /api/v2/alerts":
			return http.StatusOK, []byte(`[{"labels":{"alertname":"NodeDown","node":"gpu-1"},"status":{"silencedBy":["a","b"]}}]`), nil
		case "GET /api/v2/silences":
			return http.StatusOK, []byte(`[{"id":"b","createdBy":"ada","matchers":[{"name":"node","value":"gpu-1","isRegex":false}],"status":{"state":"active"}}]`), nil
		case "POST /api/v2/silences":
			s := alerts.Silence{}
			require.NoError(t, json.Unmarshal(body, &s))
			*sent = append(*sent, s)
			return http.StatusOK, []byte(`{"silenceID":"a"}`), nil
		case "GET /api/v2/silence/b":
			return http.StatusOK, []byte(`{"id":"b","createdBy":"ada","matchers":[{"name":"node","value":"gpu-1","isRegex":false}],"status":{"state":"` + state + `"}}`), nil
		case "DELETE /api/v2/silence/b":
			state = alerts.SilenceExpired
			return http.StatusOK, nil, nil
		}
		return http.StatusNotFound, nil, nil
	}})
	require.NoError(t, err)
	return sent
}

func ofNode(name string) []alerts.Matcher { return []alerts.Matcher{{Name: "node", Value: name}} }

func TestAnAdministratorSilencesAlerts(t *testing.T) {
	r := newRequests(t)
	sent := r.silenced(t)
	s, err := r.root().Silence(t.Context(), NewSilence{Matchers: ofNode("gpu-1"), For: time.Hour, Reason: " new memory "})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "root", "new memory", alerts.SilenceActive}, []string{s.ID, s.CreatedBy, s.Comment, s.Status.State})
	assert.Equal(t, 1, s.Alerts)
	require.Len(t, *sent, 1)
	assert.Equal(t, "root", (*sent)[0].CreatedBy, "the caller makes it")
	assert.Equal(t, r.now.Add(time.Hour), (*sent)[0].EndsAt)
	require.Len(t, r.audit, 1)
	assert.Equal(t, []string{"create", "silence", "root"}, []string{r.audit[0].Verb, r.audit[0].Kind, r.audit[0].Actor})
	assert.Equal(t, map[string]string{"matchers": "node=gpu-1", "for": "1h0m0s", "reason": " new memory ", "silence": "a"}, r.audit[0].Detail)

	all, err := r.root().Silences(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, 1, all[0].Alerts)

	s, err = r.root().EndSilence(t.Context(), "b")
	require.NoError(t, err)
	assert.Equal(t, alerts.SilenceExpired, s.Status.State)
	require.Len(t, r.audit, 2)
	assert.Equal(t, []string{"end", "b"}, []string{r.audit[1].Verb, r.audit[1].Object})
	assert.Equal(t, map[string]string{"matchers": "node=gpu-1", "by": "ada"}, r.audit[1].Detail)
	_, err = r.root().EndSilence(t.Context(), "b")
	require.NoError(t, err, "a repetition changes nothing")
	assert.Len(t, r.audit, 2)
}

func TestSilencesThatAreRefused(t *testing.T) {
	r := newRequests(t)
	sent := r.silenced(t)
	not := false
	for name, c := range map[string]struct {
		n    NewSilence
		says string
	}{
		"no label":                  {NewSilence{For: time.Hour, Reason: "x"}, `"matchers" must have 1 to 32`},
		"a name that is no label":   {NewSilence{Matchers: []alerts.Matcher{{Name: "a b", Value: "x"}}, For: time.Hour, Reason: "x"}, `"matchers[0].label"`},
		"no regular expression":     {NewSilence{Matchers: []alerts.Matcher{{Name: "a", Value: "(", Regex: true}}, For: time.Hour, Reason: "x"}, "not a regular expression"},
		"every alert":               {NewSilence{Matchers: []alerts.Matcher{{Name: "a", Value: ".*", Regex: true}}, For: time.Hour, Reason: "x"}, "would match every alert"},
		"every alert but some":      {NewSilence{Matchers: []alerts.Matcher{{Name: "a", Value: "b", Equal: &not}}, For: time.Hour, Reason: "x"}, "would match every alert"},
		"too short":                 {NewSilence{Matchers: ofNode("gpu-1"), For: time.Second, Reason: "x"}, `"seconds" must be from 60`},
		"too long":                  {NewSilence{Matchers: ofNode("gpu-1"), For: 91 * 24 * time.Hour, Reason: "x"}, `"seconds" must be from 60`},
		"no reason":                 {NewSilence{Matchers: ofNode("gpu-1"), For: time.Hour, Reason: " "}, `"reason" is required`},
		"a reason of several lines": {NewSilence{Matchers: ofNode("gpu-1"), For: time.Hour, Reason: "x\ny"}, `"reason" must be one line`},
	} {
		_, err := r.root().Silence(t.Context(), c.n)
		require.ErrorContains(t, err, c.says, name)
	}
	assert.Empty(t, *sent)
	assert.Len(t, r.audit, 9)
	assert.NotEqual(t, audit.Done, r.audit[0].Outcome)

	_, err := r.root().EndSilence(t.Context(), "none")
	assert.Equal(t, http.StatusNotFound, Meaning(err).Status)
	assert.Equal(t, codeNoSilence, Meaning(err).Code)

	ann := r.app.For(Caller{Subject: rules.Subject{Name: "ann"}}, Origin{})
	_, err = ann.Silences(t.Context())
	require.ErrorIs(t, err, rules.ErrForbidden)
	_, err = ann.Silence(t.Context(), NewSilence{Matchers: ofNode("gpu-1"), For: time.Hour, Reason: "x"})
	require.ErrorIs(t, err, rules.ErrForbidden)
	_, err = ann.EndSilence(t.Context(), "b")
	require.ErrorIs(t, err, rules.ErrForbidden)
	assert.Empty(t, *sent)
}
