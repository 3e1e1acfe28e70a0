package server_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller/server"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/peers"
)

const token = "open-sesame"

// harness is a server with an archive in a file.
type harness struct {
	store   archive.Store
	options server.Options
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	s, err := archive.Open(t.Context(), archive.Options{Path: filepath.Join(t.TempDir(), "archive.db")})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() }) // a test may have closed it
	registry := prometheus.NewRegistry()
	return &harness{s, server.Options{
		Store: archive.Observe(s, registry), Peers: server.Peers{Key: func() []byte { return []byte("key") }}, Ready: func(context.Context) error { return nil }, Metrics: registry, Token: func() string { return token }, Log: slog.New(slog.DiscardHandler),
	}}
}

// ask sends a request with the token to the API.
func (h *harness) ask(t *testing.T, method, path string, body io.Reader) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, body)
	r.Header.Set(api.TokenHeader, token)
	w := httptest.NewRecorder()
	server.New(h.options).Handler().ServeHTTP(w, r)
	return w.Result()
}

// get sends a GET request and decodes the JSON response.
func get[T any](t *testing.T, h *harness, path string) T {
	t.Helper()
	resp := h.ask(t, "GET", path, nil)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	var out T
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&out))
	return out
}

// failure decodes an error response.
func failure(t *testing.T, resp *http.Response) api.Error {
	t.Helper()
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	var e api.Error
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&e))
	return e
}

// save saves a new job to the archive, whose attempt hasn't run yet.
func (h *harness) save(t *testing.T, user, name string, n int) *v1.Framework {
	t.Helper()
	f := &v1.Framework{}
	f.Name, f.UID = v1.ObjectName(user, name), types.UID("uid-of-"+name)
	f.CreationTimestamp = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, n, 0, time.UTC))
	f.Labels = map[string]string{v1.LabelUser: user, v1.LabelVC: "default"}
	f.Annotations = map[string]string{v1.AnnotationJobName: name, v1.AnnotationConfig: "name: " + name}
	f.Status = &v1.FrameworkStatus{State: v1.AttemptPreparing}
	require.NoError(t, h.store.SaveJob(t.Context(), f))
	return f
}

func TestJobsAreListedAPageAtATime(t *testing.T) {
	h := newHarness(t)
	for i, name := range []string{"a", "b", "c"} {
		h.save(t, "alice", name, i)
	}
	page := get[api.JobPage](t, h, "/v1/jobs?user=alice&vc=default&state=waiting,running&state=failed&keyword=&since=2026-03-01T12:00:00Z&before=2026-03-01T13:00:00%2B00:30&limit=2")
	require.Len(t, page.Items, 2)
	assert.Equal(t, "c", page.Items[0].Name)
	rest := get[api.JobPage](t, h, "/v1/jobs?limit=2&cursor="+page.Next)
	require.Len(t, rest.Items, 1)
	assert.Empty(t, rest.Next)
	assert.Equal(t, []api.Job{}, get[api.JobPage](t, h, "/v1/jobs?user=nobody").Items, "an empty list is a list")
}

func TestAJobIsToldWithItsEventsAndLogs(t *testing.T) {
	h := newHarness(t)
	f := h.save(t, "alice", "train", 0)
	key := api.LogKey{Framework: f.Name, Role: "worker", Task: 3, Attempt: 1, TaskAttempt: 2}
	require.NoError(t, h.store.SaveLog(t.Context(), key, []byte("<script>\xff"), true))
	require.NoError(t, h.store.SaveEvents(t.Context(), f.Name, []api.Event{{UID: "e", Time: f.CreationTimestamp.Time, Reason: "Pulled"}}))

	d := get[api.JobDetail](t, h, "/v1/jobs/"+f.Name)
	assert.Equal(t, "name: train", d.Config)
	assert.Equal(t, d, get[api.JobDetail](t, h, "/v1/jobs/"+string(f.UID)))
	assert.Equal(t, "Pulled", get[[]api.Event](t, h, "/v1/jobs/"+f.Name+"/events")[0].Reason)

	resp := h.ask(t, "GET", "/v1/jobs/"+f.Name+"/logs?role=worker&task=3&attempt=1&taskAttempt=2", nil)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "<script>\xff", string(text))
	assert.Equal(t, "true", resp.Header.Get(server.HeaderTruncated))
	assert.Equal(t, "text/plain; charset=utf-8", resp.Header.Get("Content-Type"))
	assert.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"))
}

func TestErrorsAreJSONWithACodeAndASentence(t *testing.T) {
	h := newHarness(t)
	f := h.save(t, "alice", "train", 0)
	sum := strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		method, path string
		status       int
		code, says   string
	}{
		"no such job":           {"GET", "/v1/jobs/nobody", 404, "NotFound", "job nobody"},
		"events of no job":      {"GET", "/v1/jobs/nobody/events", 404, "NotFound", "job nobody"},
		"no such log":           {"GET", "/v1/jobs/" + f.Name + "/logs?role=worker", 404, "NotFound", "log of worker 0"},
		"a log of no role":      {"GET", "/v1/jobs/" + f.Name + "/logs", 400, "BadRequest", "which role"},
		"a log of a word":       {"GET", "/v1/jobs/" + f.Name + "/logs?role=worker&task=first", 400, "BadRequest", `task "first" is not a number`},
		"no such state":         {"GET", "/v1/jobs?state=done", 400, "BadRequest", `no state "done"`},
		"no such filter":        {"GET", "/v1/jobs?usr=alice", 400, "BadRequest", `no parameter "usr"`},
		"no time":               {"GET", "/v1/jobs?since=yesterday", 400, "BadRequest", "2026-01-31T12:00:00Z"},
		"a page too large":      {"GET", "/v1/jobs?limit=1001", 400, "BadRequest", "1 to 1000"},
		"a cursor of one's own": {"GET", "/v1/jobs?cursor=x", 400, "BadRequest", "of the previous page"},
		"no such code":          {"GET", "/v1/code/" + sum, 404, "NotFound", sum},
		"no checksum":           {"GET", "/v1/code/abc", 400, "BadRequest", "64 hex digits"},
		"no such path":          {"GET", "/v1/tasks", 404, "NotFound", "/v1/tasks"},
		"no path at all":        {"GET", "/index.html", 404, "NotFound", "/index.html"},
		"a method not meant":    {"POST", "/v1/jobs/" + f.Name, 405, "BadRequest", "POST"},
		"to delete nobody":      {"DELETE", "/v1/jobs/nobody", 404, "NotFound", "nobody"},
		"to delete all":         {"DELETE", "/v1/jobs", 405, "BadRequest", "DELETE"},
	} {
		t.Run(name, func(t *testing.T) {
			resp := h.ask(t, c.method, c.path, nil)
			assert.Equal(t, c.status, resp.StatusCode)
			e := failure(t, resp)
			assert.Equal(t, c.code, e.Code)
			assert.Contains(t, e.Message, c.says)
		})
	}
}

func TestAJobIsDeletedFromTheHistoryOnceItHasEnded(t *testing.T) {
	h := newHarness(t)
	f := h.save(t, "alice", "train", 0)
	resp := h.ask(t, "DELETE", "/v1/jobs/"+f.Name, nil)
	assert.Equal(t, http.StatusConflict, resp.StatusCode)
	e := failure(t, resp)
	assert.Equal(t, api.Error{Code: "Conflict", Message: "job " + f.Name + " has not ended"}, e)
	require.NoError(t, h.store.EndRemoved(t.Context(), []string{string(f.UID)}))
	assert.Len(t, get[api.JobPage](t, h, "/v1/jobs?state=deleted").Items, 1)
	resp = h.ask(t, "DELETE", "/v1/jobs/"+f.Name, nil)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	var done api.Deletion
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&done))
	assert.Equal(t, api.Deletion{Jobs: 1}, done)
	assert.Equal(t, http.StatusNotFound, h.ask(t, "GET", "/v1/jobs/"+f.Name, nil).StatusCode)
}

func TestWithoutTheTokenNothingIsToldOfJobs(t *testing.T) {
	h := newHarness(t)
	f := h.save(t, "alice", "train", 0)
	code := h.put(t, "code")
	for _, wrong := range []string{"", "Open-Sesame"} {
		for _, path := range []string{"/v1/jobs", "/v1/jobs/" + f.Name, "/v1/jobs/" + f.Name + "/logs?role=worker", "/v1/code/" + code} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
			r.Header.Set(api.TokenHeader, wrong)
			w := httptest.NewRecorder()
			server.New(h.options).Handler().ServeHTTP(w, r)
			assert.Equal(t, http.StatusForbidden, w.Code, path)
			assert.Equal(t, "Forbidden", failure(t, w.Result()).Code)
		}
		r := httptest.NewRequestWithContext(t.Context(), "DELETE", "/v1/jobs/"+f.Name, nil)
		r.Header.Set(api.TokenHeader, wrong)
		w := httptest.NewRecorder()
		server.New(h.options).Handler().ServeHTTP(w, r)
		assert.Equal(t, http.StatusForbidden, w.Code, "nor deleted")
	}
	h.options.Token = func() string { return "" }
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/jobs", nil)
	w := httptest.NewRecorder()
	server.New(h.options).Handler().ServeHTTP(w, r)
	assert.Equal(t, http.StatusServiceUnavailable, w.Code, "a server that has no token yet is closed")
	assert.Equal(t, "Unavailable", failure(t, w.Result()).Code)
}

// put uploads code and returns its SHA-256 sum.
func (h *harness) put(t *testing.T, content string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(content))
	name := hex.EncodeToString(sum[:])
	resp := h.ask(t, "PUT", "/v1/code/"+name, strings.NewReader(content))
	require.Equal(t, http.StatusCreated, resp.StatusCode)
	return name
}

// codeToken returns the Authorization header of a task whose job has the code.
func codeToken(sum string) string {
	return "Bearer " + peers.Token([]byte("key"), peers.OfCode(sum), "uid")
}

func TestCodeIsReceivedAndSent(t *testing.T) {
	h := newHarness(t)
	content := strings.Repeat("code", 1<<19)
	name := h.put(t, content)
	assert.Equal(t, name, h.put(t, content), "twice is once")
	for _, handler := range []http.Handler{server.New(h.options).Handler(), server.New(h.options).TaskHandler()} {
		for _, method := range []string{"GET", "HEAD"} {
			r := httptest.NewRequestWithContext(t.Context(), method, "/v1/code/"+name, nil)
			r.Header.Set(api.TokenHeader, token)
			r.Header.Set("Authorization", codeToken(name))
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			require.Equal(t, http.StatusOK, w.Code)
			assert.Equal(t, "2097152", w.Header().Get("Content-Length"))
			assert.Equal(t, `"`+name+`"`, w.Header().Get("ETag"))
			want := map[string]int{"GET": len(content), "HEAD": 0}[method]
			assert.Len(t, w.Body.Bytes(), want)
			assert.Equal(t, sha256.Sum256([]byte(content[:want])), sha256.Sum256(w.Body.Bytes()))
		}
	}
}

func TestCodeIsSentFromWhereAConnectionBrokeOff(t *testing.T) {
	h := newHarness(t)
	content := strings.Repeat("0123456789", 250_000) // three chunks of the archive
	name := h.put(t, content)
	for _, from := range []int{1, 1<<20 - 1, 1 << 20, 2<<20 + 7, len(content) - 1} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/code/"+name, nil)
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		r.Header.Set("Authorization", codeToken(name))
		w := httptest.NewRecorder()
		server.New(h.options).TaskHandler().ServeHTTP(w, r)
		require.Equal(t, http.StatusPartialContent, w.Code)
		assert.Equal(t, content[from:], w.Body.String())
	}
}

func TestTasksMayFetchCodeAndNothingElse(t *testing.T) {
	h := newHarness(t)
	f := h.save(t, "alice", "train", 0)
	name := h.put(t, "code")
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/v1/code/" + name, 200}, {"PUT", "/v1/code/" + name, 405}, {"GET", "/v1/code/", 404}, {"GET", "/v1/jobs", 404},
		{"GET", "/v1/jobs/" + f.Name, 404}, {"GET", "/v1/jobs/" + f.Name + "/logs?role=worker", 404}, {"GET", "/metrics", 404},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil)
		r.Header.Set("Authorization", codeToken(name))
		server.New(h.options).TaskHandler().ServeHTTP(w, r)
		assert.Equal(t, c.status, w.Code, "%s %s", c.method, c.path)
	}
}

func TestCodeThatIsWrongIsRefused(t *testing.T) {
	h := newHarness(t)
	name := h.put(t, "code")
	other := strings.Repeat("1", 64)
	resp := h.ask(t, "PUT", "/v1/code/"+other, strings.NewReader("code"))
	assert.Equal(t, http.StatusBadRequest, resp.StatusCode)
	assert.Contains(t, failure(t, resp).Message, name, "it says what came")
	resp = h.ask(t, "PUT", "/v1/code/"+other, io.MultiReader(strings.NewReader("code")))
	assert.Equal(t, http.StatusBadRequest, resp.StatusCode, "its size isn't said")

	r := httptest.NewRequestWithContext(t.Context(), "PUT", "/v1/code/"+other, strings.NewReader("code"))
	r.ContentLength = archive.MaxCode + 1
	r.Header.Set(api.TokenHeader, token)
	w := httptest.NewRecorder()
	server.New(h.options).Handler().ServeHTTP(w, r)
	assert.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	e := failure(t, w.Result())
	assert.Equal(t, "TooLarge", e.Code)
	assert.Contains(t, e.Message, ".gitignore")
}

func TestUploadsWaitForTheEndOfOthersOfTheirUser(t *testing.T) {
	synctest.Test(t, uploadsWait)
}

func uploadsWait(t *testing.T) {
	handler := server.New(server.Options{Store: uploaded{}, Token: func() string { return token }}).Handler()
	put := func(user string, body io.Reader) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "PUT", "/v1/code/"+strings.Repeat("1", 64)+"?user="+user, body)
		r.ContentLength = 4
		r.Header.Set(api.TokenHeader, token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	begun, release := make(chan struct{}), make(chan struct{})
	done := make(chan int, 16)
	begin := func(user string) {
		go func() { done <- put(user, &slow{begun: begun, release: release}).Code }()
		<-begun
	}
	begin("ann")
	begin("ann")
	w := put("ann", strings.NewReader("code"))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code, "after it has waited")
	assert.Equal(t, "Unavailable", failure(t, w.Result()).Code)
	assert.NotEmpty(t, w.Header().Get("Retry-After"))
	for i := range 14 {
		begin(string(rune('b' + i)))
	}
	assert.Equal(t, http.StatusServiceUnavailable, put("zoe", strings.NewReader("code")).Code, "all places are taken")
	close(release)
	for range 16 {
		assert.Equal(t, http.StatusCreated, <-done)
	}
	assert.Equal(t, http.StatusCreated, put("ann", strings.NewReader("code")).Code, "places are free again")
}

// uploaded is a store that accepts every upload.
type uploaded struct{ archive.Store }

func (uploaded) PutCode(_ context.Context, _, _ string, _ int64, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// slow is a reader that reports the first read, and then waits.
type slow struct {
	begun   chan<- struct{}
	release <-chan struct{}
	asked   bool
}

func (s *slow) Read(p []byte) (int, error) {
	if s.asked {
		return 0, io.EOF
	}
	s.asked = true
	s.begun <- struct{}{}
	<-s.release
	return copy(p, "code"), nil
}

func TestHealthIsToldWithoutAToken(t *testing.T) {
	h := newHarness(t)
	h.options.Ready = func(context.Context) error { return errors.New("the archive doesn't answer") }
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		server.New(h.options).Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		return w.Code, w.Body.String()
	}
	status, text := ask("/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, text, "the archive doesn't answer")
	status, _ = ask("/healthz")
	assert.Equal(t, http.StatusOK, status, "a restart would not help")
	h.save(t, "alice", "train", 0)
	h.ask(t, "GET", "/v1/jobs", nil)
	status, text = ask("/metrics")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, text, `pai_archive_operation_duration_seconds_count{operation="list"} 1`)
	assert.Contains(t, text, `pai_archive_errors_total{operation="list"} 0`)
}

func TestAFailureOfTheArchiveIsCountedAndToldAsOurs(t *testing.T) {
	h := newHarness(t)
	require.NoError(t, h.store.Close())
	resp := h.ask(t, "GET", "/v1/jobs", nil)
	assert.Equal(t, http.StatusInternalServerError, resp.StatusCode)
	assert.Equal(t, "Internal", failure(t, resp).Code)
	h.ask(t, "GET", "/v1/jobs?limit=-1", nil) // the client is at fault
	w := httptest.NewRecorder()
	server.New(h.options).Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	assert.Contains(t, w.Body.String(), `pai_archive_errors_total{operation="list"} 1`)
}

func TestGPUTimeIsToldByWhatIsAskedFor(t *testing.T) {
	h := newHarness(t)
	f := h.save(t, "alice", "train", 0)
	since, uid := metav1.NewTime(time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)), "pod"
	end := metav1.NewTime(since.Add(time.Hour))
	f.Status.AttemptStatus.TaskRoleStatuses = []*v1.TaskRoleStatus{{Name: "worker", TaskStatuses: []*v1.TaskStatus{{AttemptStatus: v1.TaskAttemptStatus{
		PodUID: &uid, CompletionTime: &end, GPUs: &v1.TaskGPUs{Count: 2, Since: since},
	}}}}}
	require.NoError(t, h.store.SaveHolds(t.Context(), f))
	u := get[api.Usage](t, h, "/v1/usage?vc=default&user=alice&by=vc,hour&by=user&since=2026-03-01T00:00:00Z&until=2026-03-02T00:00:00Z")
	require.Len(t, u.Items, 2)
	assert.Equal(t, "alice", u.Items[0].User)
	assert.Equal(t, int64(3600), u.Items[1].Guaranteed)
	assert.Equal(t, int64(7200), u.Total.Held())
	for _, q := range []string{"by=week", "by=hour,day", "since=yesterday", "since=9999-12-01T00:00:00Z&until=9999-12-31T23:59:59Z", "colour=red", "since=2026-03-02T00:00:00Z&until=2026-03-01T00:00:00Z"} {
		resp := h.ask(t, "GET", "/v1/usage?"+q, nil)
		assert.Equal(t, http.StatusBadRequest, resp.StatusCode, q)
		assert.Equal(t, "BadRequest", failure(t, resp).Code, q)
	}
}
