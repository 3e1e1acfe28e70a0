package assembly_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/settings"
)

// A browser requests all parts of a page at once, which can be dozens of requests over HTTP/2.
func TestAllOfAPageComesThroughTheDoor(t *testing.T) {
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	var open, most atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/api/") {
			return
		}
		defer open.Add(-1)
		if n := open.Add(1); n > most.Load() {
			most.Store(n)
		}
		arrived <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(service.Close)
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	o := settings.Default()
	o.Door = map[string]settings.Service{"prometheus": {URL: service.URL, Page: "administrators"}}
	h := houseOn(t, c, servertest.Options{Settings: o})

	const atOnce, queries = 12, 40
	answers := make(chan int, queries)
	for range queries {
		go func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.ProxyURL+"/prometheus/api/v1/query?query=up", nil)
			if err != nil {
				answers <- 0
				return
			}
			r.Header.Set("Authorization", "Bearer "+h.tokens["root"])
			resp, err := h.Client.Do(r)
			if err != nil {
				answers <- 0
				return
			}
			_ = resp.Body.Close()
			answers <- resp.StatusCode
		}()
	}
	for range atOnce {
		<-arrived
	}
	for _, file := range []string{"/", "/assets/index.js", "/graph?g0.expr=up"} {
		assert.Equal(t, 200, h.page("root", "GET", "/prometheus"+file, "").Status, "a file doesn't wait for queries: %s", file)
	}
	require.Empty(t, arrived, "the others wait")
	close(release)
	for range queries {
		assert.Equal(t, 200, <-answers)
	}
	assert.LessOrEqual(t, most.Load(), int32(atOnce))
}

// Browsers separate a sign-in page from the page that opened it, unless both pages have the same policy. So proxied pages must not have the policy of
// the sign-in pages.
func TestPagesBehindTheDoorDontReachIntoTheServersOwn(t *testing.T) {
	const policy = "Cross-Origin-Opener-Policy"
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(policy, "same-origin")
		w.Header().Set(policy+"-Report-Only", "same-origin")
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(service.Close)
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	o := settings.Default()
	o.Limits.PerMinute = 4
	o.Door = map[string]settings.Service{"ours": {URL: service.URL, Page: "administrators"}}
	h := houseOn(t, c, servertest.Options{Settings: o})
	for method, status := range map[string]int{"GET": 200, "POST": 202} {
		a := h.page("root", method, "/ours/", "")
		require.Equal(t, status, a.Status, a.Body)
		assert.Empty(t, a.Header.Values(policy), method)
		assert.Empty(t, a.Header.Values(policy+"-Report-Only"), method)
	}
	a := h.DoPage("GET", "/ours/worker.js", h.tokens["root"], "", "Service-Worker", "script")
	assert.Equal(t, 403, a.Status, "it could answer for a page of the service, with headers of its own choice")
	seen := map[int]bool{}
	for _, path := range []string{"/ours/", "/nowhere", "/sign-in", "/api/v3/signin/oidc/lab/return?code=x", "/a//b", "/api/v3/signin/oidc/lab/return?code=x", "/nowhere", "/sign-in"} {
		a := h.Do("GET", path, "", "")
		seen[a.Status] = true
		assert.Equal(t, []string{"same-origin"}, a.Header.Values(policy), "%s: %d", path, a.Status)
	}
	for _, status := range []int{200, 400, 404, 429} {
		assert.True(t, seen[status], "%d is among them: %v", status, seen)
	}
}

// Grafana has separate users. People who may open its pages could guess the passwords of these users.
func TestWhoSignsInToAServiceBehindTheDoorIsInTheAudit(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(service.Close)
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	o := settings.Default()
	o.Door = map[string]settings.Service{"grafana": {URL: service.URL, Page: "monitoring"}}
	h := houseOn(t, c, servertest.Options{Settings: o})
	require.Equal(t, 200, h.as("root", "PUT", "/api/v3/groups/watchers", `{"spec":{"name":"watchers","pages":["monitoring"]}}`).Status)
	h.person(t, "wilma", "watchers")
	require.Equal(t, 401, h.page("wilma", "POST", "/grafana/login", `{"user":"admin","password":"guess-7391"}`).Status, "no right to change things is needed")
	require.Equal(t, 403, h.page("ann", "POST", "/grafana/login", "{}").Status)
	var a *servertest.Answer
	h.Eventually("it is kept", func() bool {
		a = h.as("root", "GET", "/api/v3/audit?verb=sign-in&kind=page", "")
		return strings.Count(a.Body, "POST /grafana/login") == 1
	})
	assert.NotContains(t, a.Body, "7391")
	assert.Contains(t, a.Body, `"actor":"wilma"`)
	assert.Contains(t, a.Body, `"outcome":"refused"`)
}
