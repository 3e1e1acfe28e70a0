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
	assert.Equal(t, 200, other.Do("GET", "/api/v3/whoami", token, "").Status, "at once, before its watch has told of it")
	require.Equal(t, 202, h.Submit(token, "here", "speech").Status)
	other.Eventually("a job is listed at both", func() bool { return other.Do("GET", "/api/v3/jobs/ann/here", token, "").Status == 200 })
	require.Equal(t, 200, h.Do("DELETE", "/api/v2/authn/basic/logout", token, "").Status)
	at := time.Now()
	for other.Do("GET", "/api/v3/whoami", token, "").Status != 401 {
		require.Less(t, time.Since(at), 5*time.Second, "it is refused at both")
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // how long it takes is what is measured
	}
	took := time.Since(at)
	t.Logf("a token that was revoked at one was refused at the other after %s", took)
	assert.Less(t, took, time.Second)
}

// way is a connection to an API server that the test can interrupt.
type way struct {
	front *httptest.Server
	away  atomic.Bool
}

func (w *way) apply(c *rest.Config) { *c = rest.Config{Host: w.front.URL, QPS: 200, Burst: 400} }

// take closes all connections to the API server, and rejects new connections.
func (w *way) take() {
	w.away.Store(true)
	w.front.CloseClientConnections()
}

func (w *way) give() { w.away.Store(false) }

func cut(t *testing.T, config *rest.Config) *way {
	t.Helper()
	to, err := url.Parse(config.Host)
	require.NoError(t, err)
	through, err := rest.TransportFor(config)
	require.NoError(t, err)
	out := &way{}
	pass := &httputil.ReverseProxy{Transport: through, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	out.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if out.away.Load() {
			panic(http.ErrAbortHandler)
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		out.front.CloseClientConnections()
		out.front.Close()
	})
	return out
}

func TestWithoutAnAPIServerAnswersAre503(t *testing.T) {
	base := newHouse(t)
	w := cut(t, base.cluster.Config)
	h := houseOn(t, base.cluster, servertest.Options{API: w.apply})
	require.Equal(t, 200, h.as("ann", "GET", "/api/v2/jobs", "").Status)
	w.take()
	ask := func() *servertest.Answer { return h.as("ann", "GET", "/api/v3/jobs/ann/none", "") }
	a := ask()
	assert.Equal(t, 503, a.Status, a.Body)
	assert.Equal(t, "UnavailableError", a.Code())
	assert.NotEmpty(t, a.Header.Get("Retry-After"))
	a = h.Submit(h.tokens["ann"], "lost", "speech")
	assert.Equal(t, 503, a.Status, a.Body)
	a = h.Do("POST", "/api/v2/token", "", `{"username":"ann","password":"`+servertest.Password+`"}`)
	assert.Equal(t, 503, a.Status, a.Body)
	w.give()
	h.Eventually("it answers again", func() bool { return ask().Status == 404 })
}
