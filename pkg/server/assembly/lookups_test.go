package assembly_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/settings"
)

// reads is a transport that counts the requests for Secrets.
type reads struct {
	http.RoundTripper
	n *atomic.Int64
}

func (c reads) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/secrets/") && strings.Contains(r.URL.Path, "ticket") {
		c.n.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

func TestMadeUpTicketsAreLimitedBeforeTheyAreLookedUp(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	o := settings.Default()
	o.Limits.PerMinute = 10
	n := &atomic.Int64{}
	s := servertest.Start(t, c, servertest.Options{Settings: o, API: func(r *rest.Config) {
		r.Wrap(func(next http.RoundTripper) http.RoundTripper { return reads{next, n} })
	}})
	limited := 0
	for range 60 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v3/jobs/a/b/tasks/worker/0/exec", http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Origin", s.URL)
		r.Header.Set("Sec-Websocket-Protocol", "pai-ticket.AAAAAAAAAAAAAAAAAAAAAAAAAA")
		resp, err := s.Client.Do(r)
		require.NoError(t, err)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			limited++
		}
	}
	assert.NotZero(t, limited)
	assert.LessOrEqual(t, n.Load(), int64(15), "requests to the API server by someone without a token, of which %d were answered with 429", limited)
}
