package token_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// quiet is an API server with a signing key and no tokens. It blocks requests for a token until the test releases them.
type quiet struct {
	asked, beats atomic.Int32
	goOn         chan struct{}
}

func (q *quiet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	secrets := "/api/v1/namespaces/" + v1.Namespace + "/secrets"
	switch {
	case r.URL.Query().Get("sendInitialEvents") == "true":
		w.WriteHeader(http.StatusUnprocessableEntity) // like Kubernetes before 1.34: clients fall back to a list
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case r.URL.Query().Get("watch") == "true":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case r.Method == http.MethodGet && r.URL.Path == secrets:
		if r.URL.Query().Get("limit") == "1" {
			q.beats.Add(1)
		}
		keys, _ := json.Marshal(map[string]any{"one": map[string]any{"seed": make([]byte, 32), "created": time.Now().Add(-time.Hour)}})
		_, _ = fmt.Fprintf(w, `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"kind":"Secret","apiVersion":"v1",
			"metadata":{"name":%q,"namespace":%q,"uid":"1","resourceVersion":"5","labels":{%q:%q}},"data":{"keys":%q}}]}`,
			v1.SigningKeys, v1.Namespace, v1.LabelPeople, v1.SecretKeys, base64.StdEncoding.EncodeToString(keys))
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, secrets+"/"):
		q.asked.Add(1)
		select {
		case <-q.goOn:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	default:
		http.Error(w, "not expected: "+r.Method+" "+r.URL.Path, http.StatusTeapot)
	}
}

// openQuiet returns a service that may send perSecond requests per second to a quiet API server, and atOnce requests in a burst.
func openQuiet(t *testing.T, perSecond float32, atOnce int) (*quiet, *token.Service) {
	t.Helper()
	q := &quiet{goOn: make(chan struct{})}
	server := httptest.NewServer(q)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: perSecond, Burst: atOnce}
	d, err := people.Open(config, people.Options{})
	require.NoError(t, err)
	s, err := token.Open(config, d, token.Options{})
	require.NoError(t, err)
	return q, s
}

// madeUp returns the nth invented refresh token.
func madeUp(n int) secret.String {
	id := strings.Repeat(string("abcdefghijklmnopqrstuvwxyz"[n%26]), 19) + string("abcdefghijklmnopqrstuvwxyz"[n/26])
	return secret.String("pair_" + id + "_" + strings.Repeat("A", 43))
}

func TestMadeUpRefreshTokensKeepNothingElseWaiting(t *testing.T) {
	q, s := openQuiet(t, 0.01, 1) // all requests except one wait for minutes
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var refused atomic.Int32
	for n := range 40 {
		all.Go(func() {
			if _, err := s.Refresh(ctx, madeUp(n), token.New{}); ctx.Err() == nil {
				assert.ErrorIs(t, err, people.ErrUnavailable)
				refused.Add(1)
			}
		})
	}
	require.Eventually(t, func() bool { return q.asked.Load() == 1 && refused.Load() == 8 }, time.Minute, time.Millisecond, "32 are looked up at a time")
	all.Go(func() { _ = s.Run(ctx) })
	require.Eventually(t, func() bool { return q.beats.Load() > 0 }, time.Minute, time.Millisecond, "what all answers depend on goes on")
	soon, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer end()
	assert.ErrorIs(t, s.Load(soon), people.ErrUnavailable, "what a request reads waits with the others")
}

func TestATokenThatIsNotThereIsAskedForOnce(t *testing.T) {
	q, s := openQuiet(t, 1000, 1000)
	close(q.goOn)
	for range 3 {
		_, err := s.Refresh(t.Context(), madeUp(1), token.New{})
		require.ErrorIs(t, err, token.ErrInvalid)
		require.ErrorIs(t, s.RevokeRefresh(t.Context(), madeUp(1)), token.ErrNone)
		require.ErrorIs(t, s.Revoke(t.Context(), "ann", madeUp(1).Reveal()), token.ErrNone)
	}
	assert.EqualValues(t, 1, q.asked.Load())
}
