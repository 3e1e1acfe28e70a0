package oidc_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people"
)

func TestNothingGoesWithoutTLS(t *testing.T) {
	for _, what := range []string{"authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"} {
		l := newLiar(t)
		l.says = map[string]any{what: "http" + l.URL[len("https"):] + "/x"}
		_, _, err := l.open(t).Begin()
		require.ErrorIs(t, err, people.ErrUnavailable, what)
		require.ErrorContains(t, err, "its "+what)
		assert.ErrorContains(t, err, "is not an https:// address")
	}
	l := newLiar(t)
	l.says = map[string]any{"userinfo_endpoint": nil}
	_, _, err := l.open(t).Begin()
	require.NoError(t, err, "it needn't have one")
}

func TestWhatIsSentToAnIssuerIsNotSentOn(t *testing.T) {
	got := 0
	count := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got++ })
	plain := httptest.NewServer(count)
	defer plain.Close()
	l := newLiar(t)
	mux, _ := l.Config.Handler.(*http.ServeMux)
	mux.Handle("/stolen", count)
	mux.Handle("/moved", http.RedirectHandler(plain.URL, http.StatusFound))
	for _, to := range []string{plain.URL, l.URL + "/stolen"} {
		l.sends = to
		i := l.open(t)
		_, ask, err := i.Begin()
		require.NoError(t, err)
		_, err = i.Finish(t.Context(), url.Values{"state": {ask.State}, "code": {"x"}}, ask)
		require.ErrorIs(t, err, people.ErrUnavailable)
		_, err = i.Check(t.Context(), "1", "refresh")
		require.ErrorIs(t, err, people.ErrUnavailable)
	}
	// GET requests follow redirects, but not to addresses without TLS.
	l.sends, l.says = "", map[string]any{"userinfo_endpoint": l.URL + "/moved"}
	i := l.open(t)
	_, ask, err := i.Begin()
	require.NoError(t, err)
	l.token = sign(t, jose.ES256, l.key, map[string]any{"iss": l.URL, "aud": "paictl", "sub": "1", "exp": time.Now().Add(time.Hour).Unix(), "nonce": ask.Nonce})
	_, err = i.Finish(t.Context(), url.Values{"state": {ask.State}, "code": {"x"}}, ask)
	require.ErrorIs(t, err, people.ErrUnavailable)
	require.ErrorContains(t, err, "is not an https:// address")
	assert.Zero(t, got)
}
