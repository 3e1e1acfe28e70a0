package away

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

func submission(t *testing.T, name string) string {
	t.Helper()
	data, err := json.Marshal(api.Submission{Text: servertest.JobFile(name, "speech")})
	require.NoError(t, err)
	return string(data)
}

// made returns the number of Frameworks with a job's name, and reports whether the job's Secret exists.
func (w *world) made(name string) (frameworks int, whole bool) {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.cluster.Config)
	require.NoError(w.t, err)
	list, err := client.Resource(fv1.Resource).Namespace(kube.JobNamespace).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	for i := range list.Items {
		if list.Items[i].GetName() == fv1.ObjectName("ann", name) {
			frameworks++
		}
	}
	_, err = w.cluster.Client.CoreV1().Secrets(kube.JobNamespace).Get(w.t.Context(), fv1.SpecSecretName(fv1.ObjectName("ann", name)), metav1.GetOptions{})
	return frameworks, err == nil
}

// If a server is killed between two writes of a submission, nothing is lost or created twice. The client sends the submission with the same key
// again, to the next server.
func TestASubmissionOutlivesTheServersEnd(t *testing.T) {
	w := open(t)
	token := w.SignIn("ann")
	is := func(method, part string) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.Method == method && strings.Contains(r.URL.Path, part) }
	}
	for i, c := range []struct {
		what          string
		before, after func(*http.Request) bool
	}{
		{what: "before it has claimed its key", before: is("POST", "/pai-people/secrets")},
		{what: "when it has claimed its key", after: is("POST", "/pai-people/secrets")},
		{what: "before the job is made", before: is("POST", "/frameworks")},
		{what: "when the job is made and its secrets are not", after: is("POST", "/frameworks")},
		{what: "when all is made", after: is("POST", "/"+kube.JobNamespace+"/secrets")},
		{what: "before the answer is remembered", before: is("PATCH", "/pai-people/secrets/submission-")},
		{what: "before the answer is sent", after: is("PATCH", "/pai-people/secrets/submission-")},
	} {
		t.Run(c.what, func(t *testing.T) {
			name, key := fmt.Sprintf("killed-%d", i), fmt.Sprintf("key-of-killed-%d", i)
			var once sync.Once
			kill := func(fits func(*http.Request) bool) func(*http.Request) {
				return func(r *http.Request) {
					if fits != nil && fits(r) {
						once.Do(w.Kill)
					}
				}
			}
			w.on(kill(c.before), kill(c.after))
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL+"/api/v3/jobs", strings.NewReader(submission(t, name)))
			require.NoError(t, err)
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set(api.IdempotencyKey, key)
			resp, err := w.Client.Do(r)
			if err == nil {
				_ = resp.Body.Close()
			}
			require.Error(t, err, "it was killed")
			w.on(nil, nil)
			w.Start()
			for range 2 {
				a := w.Do("POST", "/api/v3/jobs", token, submission(t, name), api.IdempotencyKey, key)
				require.Equal(t, 200, a.Status, a.Body)
				assert.Equal(t, "submitted", a.JSON()["outcome"])
				n, whole := w.made(name)
				assert.Equal(t, 1, n)
				assert.True(t, whole)
			}
			a := w.Do("POST", "/api/v3/jobs", token, submission(t, name+"-other"), api.IdempotencyKey, key)
			assert.Equal(t, 422, a.Status, a.Body)
		})
	}
}

func TestAStreamGoesOnAfterTheServersEnd(t *testing.T) {
	w := open(t)
	token := w.SignIn("ann")
	require.Equal(t, 202, w.Submit(token, "before", "speech").Status)
	s := w.Watch("/api/v3/jobs/watch?keyword=ann", token, "")
	_, names := s.Snapshot()
	require.Contains(t, names, "ann/before")
	place := s.Place
	w.Kill()
	for s.Next() != (servertest.Event{}) {
		continue // until it is cut
	}
	w.Start()
	require.Equal(t, 202, w.Submit(token, "after", "speech").Status)
	again := w.Watch("/api/v3/jobs/watch?keyword=ann", token, place)
	why, names := again.Snapshot()
	assert.Equal(t, "expired", why, "a server that began later says that it doesn't know what went before")
	assert.Subset(t, names, []string{"ann/before", "ann/after"})
}

// away asserts that a response has the status 503, and that it specifies when to retry.
func away(t *testing.T, a *servertest.Answer) {
	t.Helper()
	assert.Equal(t, 503, a.Status, a.Body)
	assert.Equal(t, "UnavailableError", a.Code())
	assert.NotEmpty(t, a.Header.Get("Retry-After"))
}

func TestWithoutTheJobControllerNothingIsGuessed(t *testing.T) {
	w := open(t)
	token := w.SignIn("ann")
	require.Equal(t, 202, w.Submit(token, "there", "speech").Status)
	w.controller.kill()
	s := w.Watch("/api/v3/jobs/watch", token, "")
	_, names := s.Snapshot()
	assert.Contains(t, names, "ann/there", "jobs that live are told")
	a := w.Do("GET", "/api/v3/jobs", token, "")
	assert.Equal(t, 200, a.Status, a.Body)
	assert.Contains(t, a.JSON()["note"], "history", "a list says what it hasn't got")
	a = w.Do("GET", "/api/v3/jobs/ann/nothere", token, "")
	away(t, a)
	assert.NotContains(t, a.Body, "127.0.0.1", "where things are inside is nothing to tell")
	away(t, w.Do("POST", "/api/v3/jobs", token, submission(t, "unsure"), api.IdempotencyKey, "key-of-unsure"))
	away(t, w.Do("GET", "/api/v3/audit", token, ""))
	n, _ := w.made("unsure")
	assert.Zero(t, n, "whether the name was used isn't known")
	w.controller.start()
	w.Eventually("it is submitted, with the same key", func() bool {
		return w.Do("POST", "/api/v3/jobs", token, submission(t, "unsure"), api.IdempotencyKey, "key-of-unsure").Status == 200
	})
	assert.Equal(t, 404, w.Do("GET", "/api/v3/jobs/ann/nothere", token, "").Status)
}

func TestWithoutTheAPIServerAnswersSayWhenToComeBack(t *testing.T) {
	w := open(t)
	token := w.SignIn("ann")
	s := w.Watch("/api/v3/jobs/watch", token, "")
	s.Snapshot()
	asks := func() []*servertest.Answer {
		return []*servertest.Answer{
			w.Do("GET", "/api/v3/jobs", token, ""), w.Do("GET", "/api/v2/jobs", token, ""), w.Do("GET", "/api/v3/jobs/ann/x", token, ""),
			w.Do("GET", "/api/v3/whoami", token, ""), w.Do("GET", "/api/v3/jobs/watch", token, ""),
			w.Do("POST", "/api/v3/jobs", token, submission(t, "lost"), api.IdempotencyKey, "key-of-lost"),
		}
	}
	pid := apiServer(t, w.cluster)
	t.Run("it hangs", func(t *testing.T) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
		stopped := true
		defer func() {
			if stopped {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
		}()
		s.Await("problem", nil)
		for _, a := range asks() {
			away(t, a)
		}
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
		stopped = false
		s.Await("back", nil)
		w.Eventually("it answers", func() bool { return w.Do("GET", "/api/v3/jobs", token, "").Status == 200 })
	})
	t.Run("it ends and comes back", func(t *testing.T) {
		kill, start := startAgain(t, pid)
		kill()
		s.Await("problem", nil)
		for _, a := range asks() {
			away(t, a)
		}
		start()
		s.Await("back", nil)
		w.Eventually("the submission is made, with the same key", func() bool {
			return w.Do("POST", "/api/v3/jobs", token, submission(t, "lost"), api.IdempotencyKey, "key-of-lost").Status == 200
		})
		n, whole := w.made("lost")
		assert.Equal(t, 1, n)
		assert.True(t, whole)
		s.Await("job", func(e servertest.Event) bool { return s.Name(e) == "ann/lost" })
	})
}
