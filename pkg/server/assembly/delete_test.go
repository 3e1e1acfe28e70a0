package assembly_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// counted is a transport that counts the requests to the API server about one job.
type counted struct {
	next  http.RoundTripper
	reads *atomic.Int32
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/frameworks/") {
		c.reads.Add(1)
	}
	return c.next.RoundTrip(r)
}

// No controller is running, so a deleted job remains until the test removes its finalizers.
func TestADeletionIsDoneOnceItIsAskedFor(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	var reads atomic.Int32
	h := houseOn(t, c, servertest.Options{API: func(r *rest.Config) {
		r.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, &reads} })
	}})
	asked := func(name string) bool { return framework(t, c, "ann", name).DeletionTimestamp != nil }
	audited := func(name string) []string {
		var out []string
		for line := range strings.Lines(h.Printed.String()) {
			if strings.Contains(line, `"verb":"delete","kind":"job","object":"`+name+`"`) {
				out = append(out, line)
			}
		}
		return out
	}

	t.Run("whose client leaves", func(t *testing.T) {
		for _, path := range []string{"/api/v2/jobs/ann~left-2", "/api/v3/jobs/ann/left-3"} {
			name := path[strings.LastIndexAny(path, "~/")+1:]
			require.Equal(t, 202, h.Submit(h.tokens["ann"], name, "speech").Status)
			ctx, leave := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, http.MethodDelete, h.URL+path, nil)
			require.NoError(t, err)
			r.Header.Set("Authorization", "Bearer "+h.tokens["ann"])
			left := make(chan struct{})
			go func() {
				defer close(left)
				if resp, err := h.Client.Do(r); err == nil {
					_ = resp.Body.Close()
				}
			}()
			h.Eventually("it is in the audit", func() bool { return len(audited(name)) == 1 })
			leave()
			<-left
			assert.True(t, asked(name))
			assert.Contains(t, audited(name)[0], `"outcome":"done"`)
		}
	})
	t.Run("which takes long", func(t *testing.T) {
		require.Equal(t, 202, h.Submit(h.tokens["ann"], "slow", "speech").Status)
		h.Eventually("it is in the lists", func() bool { return strings.Contains(h.as("ann", "GET", "/api/v2/jobs?keyword=slow", "").Body, "slow") })
		before := reads.Load()
		const many = 8
		answers := make(chan *servertest.Answer, many)
		for range many {
			go func() { answers <- h.as("ann", "DELETE", "/api/v2/jobs/ann~slow", "") }()
		}
		for range many {
			a := <-answers
			assert.Equal(t, 202, a.Status, a.Body)
			assert.Contains(t, a.Body, "is being deleted")
		}
		assert.LessOrEqual(t, reads.Load()-before, int32(2*many), "who waits doesn't ask the API server time and again")
	})
	t.Run("which ends", func(t *testing.T) {
		require.Equal(t, 202, h.Submit(h.tokens["ann"], "quick", "speech").Status)
		h.letGo(t)
		a := h.as("ann", "DELETE", "/api/v2/jobs/ann~quick", "")
		assert.Equal(t, 200, a.Status, a.Body)
		assert.Equal(t, 202, h.Submit(h.tokens["ann"], "quick", "speech").Status, "its name is free")
		assert.Equal(t, 200, h.as("ann", "DELETE", "/api/v3/jobs/ann/quick", "").Status)
	})
}
