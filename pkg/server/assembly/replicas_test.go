package assembly_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/server/servertest"
)

func TestTwoServersKnowTheSameTokens(t *testing.T) {
	h := newHouse(t)
	other := servertest.Start(t, h.cluster, servertest.Options{})
	token := h.SignIn("ann")
	assert.Equal(t, 200, other.Ask("GET", "/api/v3/whoami", token, "").Status, "at once, before its watch has told of it")
	require.Equal(t, 202, h.Submit(token, "here", "speech").Status)
	other.Eventually("a job is listed at both", func() bool { return other.Ask("GET", "/api/v3/jobs/ann/here", token, "").Status == 200 })
	require.Equal(t, 200, h.Ask("DELETE", "/api/v2/authn/basic/logout", token, "").Status)
	at := time.Now()
	for other.Ask("GET", "/api/v3/whoami", token, "").Status != 401 {
		require.Less(t, time.Since(at), 5*time.Second, "it is refused at both")
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // how long it takes is what is measured
	}
	took := time.Since(at)
	t.Logf("a token that was revoked at one was refused at the other after %s", took)
	assert.Less(t, took, time.Second)
}

// cut is a way to an API server that can be taken away.
func cut(t *testing.T, config *rest.Config) (*rest.Config, *atomic.Bool) {
	t.Helper()
	to, err := url.Parse(config.Host)
	require.NoError(t, err)
	through, err := rest.TransportFor(config)
	require.NoError(t, err)
	away := &atomic.Bool{}
	pass := &httputil.ReverseProxy{Transport: through, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	away.Store(false)
	return &rest.Config{Host: front.URL}, away
}

func TestWithoutAnAPIServerAnswersAre503(t *testing.T) {
	base := newHouse(t)
	config, away := cut(t, base.cluster.Config)
	h := houseOn(t, base.cluster, servertest.Options{API: func(c *rest.Config) { *c = *config }})
	require.Equal(t, 200, h.as("ann", "GET", "/api/v2/jobs", "").Status)
	away.Store(true)
	ask := func() *servertest.Answer { return h.as("ann", "GET", "/api/v3/jobs/ann/none", "") }
	a := ask()
	assert.Equal(t, 503, a.Status, a.Body)
	assert.Equal(t, "UnavailableError", a.Code())
	assert.NotEmpty(t, a.Header.Get("Retry-After"))
	a = h.Submit(h.tokens["ann"], "lost", "speech")
	assert.Equal(t, 503, a.Status, a.Body)
	a = h.Ask("POST", "/api/v2/token", "", `{"username":"ann","password":"`+servertest.Password+`"}`)
	assert.Equal(t, 503, a.Status, a.Body)
	away.Store(false)
	h.Eventually("it answers again", func() bool { return ask().Status == 404 })
}
