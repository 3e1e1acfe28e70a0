package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fake returns a client whose Alertmanager gives the given responses and rejects all other requests. It also returns the list of received requests.
func fake(t *testing.T, answers map[string]string) (*Client, *[]string) {
	t.Helper()
	asked := &[]string{}
	c, err := New(Options{Send: func(_ context.Context, method, path string, query url.Values, body []byte) (int, []byte, error) {
		line := method + " " + path
		*asked = append(*asked, line+"?"+query.Encode()+" "+string(body))
		answer, known := answers[line]
		if !known {
			return 0, nil, errors.New("refused: " + line)
		}
		switch answer {
		case "404":
			return http.StatusNotFound, nil, nil
		case "400":
			return http.StatusBadRequest, []byte(`"bad matcher\n  format"`), nil
		case "500":
			return http.StatusInternalServerError, []byte("s3cret trace"), nil
		}
		return http.StatusOK, []byte(answer), nil
	}})
	require.NoError(t, err)
	return c, asked
}

func TestSilencedAlertsAreListed(t *testing.T) {
	c, asked := fake(t, map[string]string{"GET /api/v2/alerts": `[{"labels":{"alertname":"Heartbeat"}},{"labels":{"alertname":"A"},"status":{"state":"suppressed","silencedBy":["x"]}},{"labels":{"alertname":"B"},"status":{"state":"active"}}]`,
		"POST /api/v2/silences": `{"silenceID":"a-1"}`})
	all, err := c.All(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, []string{"x"}, all[0].Status.SilencedBy)
	_, err = c.All(t.Context())
	require.NoError(t, err)
	assert.Len(t, *asked, 1, "an answer counts for some seconds")
	_, err = c.Add(t.Context(), Silence{Matchers: []Matcher{{Name: "alertname", Value: "B"}}})
	require.NoError(t, err)
	_, err = c.All(t.Context())
	require.NoError(t, err)
	assert.Len(t, *asked, 3, "but not after a silence")
}

func TestSilencesAreMadeAndEnded(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	c, asked := fake(t, map[string]string{
		"GET /api/v2/silences":     `[{"id":"c","endsAt":"2026-11-30T15:00:00Z","status":{"state":"active"},"matchers":[{"name":"n","value":"v","isRegex":true,"isEqual":false}]},{"id":"b","endsAt":"2026-11-30T14:00:00Z","status":{"state":"pending"}},{"id":"a","status":{"state":"expired"}}]`,
		"POST /api/v2/silences":    `{"silenceID":"d"}`,
		"GET /api/v2/silence/d":    `{"id":"d","createdBy":"root","comment":"why","status":{"state":"active"}}`,
		"DELETE /api/v2/silence/d": "",
		"DELETE /api/v2/silence/e": "404",
		"GET /api/v2/silence/f":    "500",
	})
	all, err := c.Silences(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, []string{"b", "c"}, []string{all[0].ID, all[1].ID})
	assert.True(t, all[1].Matchers[0].Not())

	id, err := c.Add(t.Context(), Silence{Matchers: []Matcher{{Name: "node", Value: "gpu-1"}}, StartsAt: at, EndsAt: at.Add(time.Hour), CreatedBy: "root", Comment: "why"})
	require.NoError(t, err)
	assert.Equal(t, "d", id)
	_, body, _ := strings.Cut((*asked)[1], "? ")
	var sent map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &sent))
	assert.Equal(t, map[string]any{"matchers": []any{map[string]any{"name": "node", "value": "gpu-1", "isRegex": false}}, "startsAt": "2026-11-30T12:00:00Z", "endsAt": "2026-11-30T13:00:00Z", "createdBy": "root", "comment": "why"}, sent)

	s, err := c.Silence(t.Context(), "d")
	require.NoError(t, err)
	assert.Equal(t, "root", s.CreatedBy)
	require.NoError(t, c.End(t.Context(), "d"))
	require.ErrorIs(t, c.End(t.Context(), "e"), ErrNoSilence)
	_, err = c.Silence(t.Context(), "f")
	require.ErrorIs(t, err, ErrAway)
	assert.NotContains(t, err.Error(), "s3cret")
	for _, id := range []string{"", "../alerts", "d/../../x", "d?x", "d%2f"} {
		_, err := c.Silence(t.Context(), id)
		require.ErrorIs(t, err, ErrNoSilence, id)
		require.ErrorIs(t, c.End(t.Context(), id), ErrNoSilence, id)
	}
}

func TestAServerWithoutTheAPIIsNotAMissingSilence(t *testing.T) {
	c, _ := fake(t, map[string]string{"GET /api/v2/silences": "404"})
	_, err := c.Silences(t.Context())
	require.ErrorIs(t, err, ErrAway)
	assert.NotErrorIs(t, err, ErrNoSilence)
}

func TestARefusedSilenceSaysWhy(t *testing.T) {
	c, _ := fake(t, map[string]string{"POST /api/v2/silences": "400"})
	_, err := c.Add(t.Context(), Silence{})
	invalid, is := errors.AsType[*InvalidError](err)
	require.True(t, is, err)
	assert.Equal(t, "Alertmanager refuses it: bad matcher format", invalid.Error())
	none, err := New(Options{})
	require.NoError(t, err)
	_, err = none.Silences(t.Context())
	require.ErrorIs(t, err, ErrNone)
	_, err = none.All(t.Context())
	require.ErrorIs(t, err, ErrNone)
}
