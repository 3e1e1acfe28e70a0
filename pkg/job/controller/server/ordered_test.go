package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/controller/server"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// gone saves a job to the archive that has ended and whose Framework is gone.
func (h *harness) gone(t *testing.T, user, name string, n int, tags string) *v1.Framework {
	t.Helper()
	f := h.save(t, user, name, n)
	at := metav1.NewTime(f.CreationTimestamp.Add(time.Hour))
	f.Status.State, f.Status.CompletionTime = v1.Completed, &at
	f.Annotations[v1.AnnotationTags] = tags
	require.NoError(t, h.store.SaveJob(t.Context(), f))
	require.NoError(t, h.store.MarkDeleted(t.Context(), f))
	return f
}

func TestJobsThatAreGoneAreListedInAnyOrder(t *testing.T) {
	h := newHarness(t)
	h.gone(t, "ann", "c", 0, "x,a & b")
	h.gone(t, "bob", "a", 1, "")
	h.gone(t, "ann", "b", 2, "y")
	h.save(t, "ann", "lives", 3)
	names := func(query string) []string {
		out := []string{}
		for _, j := range get[api.OrderedPage](t, h, "/v1/jobs?limit=10&"+query).Items {
			out = append(out, j.Name)
		}
		return out
	}
	assert.Equal(t, []string{"a", "b", "c"}, names("order=name"))
	assert.Equal(t, []string{"b", "a", "c"}, names("order=submitted&desc=true"))
	assert.Equal(t, []string{"b", "c"}, names("order=name&offset=1&user=ann&user=bob"))
	assert.Equal(t, []string{"c"}, names("order=&tag=a+%26+b"))
	assert.Equal(t, []string{"a"}, names("order=&visible=some&visibleUser=bob"))
	assert.Empty(t, names("order=&visible=some"), "who sees nothing gets nothing")
	page := get[api.OrderedPage](t, h, "/v1/jobs?order=&count=true")
	assert.Equal(t, 3, *page.Total)
	assert.Empty(t, page.Items)
	for _, bad := range []string{"order=nothing", "order=&users=ann", "order=&visible=none", "order=&limit=-1", "order=&limit=5001", "order=&offset=x", "order=&state=waiting"} {
		resp := h.ask(t, http.MethodGet, "/v1/jobs?"+bad, nil)
		assert.Equal(t, http.StatusBadRequest, resp.StatusCode, bad)
	}
}

// The server parses the same query that a client encodes.
func TestQuestionsForOrderedListsSurviveTheirWay(t *testing.T) {
	text := rapid.SampledFrom([]string{"a", "b c", "ä&=+%", ","})
	texts := rapid.SliceOfN(text, 1, 2)
	maybe := func(t *rapid.T, what string) []string {
		if rapid.Bool().Draw(t, what) {
			return texts.Draw(t, what)
		}
		return nil
	}
	rapid.Check(t, func(t *rapid.T) {
		q := api.OrderedQuery{
			Users: maybe(t, "users"), VirtualClusters: maybe(t, "vcs"), Keyword: text.Draw(t, "keyword"), InName: text.Draw(t, "name"), Priorities: maybe(t, "priorities"),
			TagsAny: maybe(t, "any"), TagsNone: maybe(t, "none"), Order: rapid.SampledFrom(append(api.Orders(), "")).Draw(t, "order"), Descending: rapid.Bool().Draw(t, "descending"),
			Offset: rapid.IntRange(0, 9).Draw(t, "offset"), Limit: rapid.IntRange(0, 9).Draw(t, "limit"), Count: rapid.Bool().Draw(t, "count"),
		}
		if rapid.Bool().Draw(t, "states") {
			q.States = []string{api.Failed, api.Stopped}
		}
		if rapid.Bool().Draw(t, "since") {
			q.Since = time.Date(2026, 3, 1, 12, 0, 0, 123000, time.UTC)
		}
		switch rapid.IntRange(0, 2).Draw(t, "visible") {
		case 1:
			q.Visible = &api.Visibility{All: true}
		case 2:
			q.Visible = &api.Visibility{User: rapid.SampledFrom([]string{"", "ann"}).Draw(t, "user"), VCs: maybe(t, "visible vcs")}
		}
		got, err := server.OrderedQuery(q.Values())
		require.NoError(t, err)
		require.Equal(t, q, got)
	})
}

func TestTagsOfAJobThatIsGoneAreChanged(t *testing.T) {
	h := newHarness(t)
	uid, lives := string(h.gone(t, "ann", "train", 0, "old").UID), string(h.save(t, "ann", "lives", 1).UID)
	send := func(method, uid, body string) *http.Response {
		return h.ask(t, method, "/v1/jobs/"+uid+"/tags", strings.NewReader(body))
	}
	for _, step := range []struct{ method, body, want string }{
		{http.MethodPut, `{"tags": ["b", "a"]}`, `{"tags":["a","b","old"]}`}, {http.MethodPut, `{"tags": ["a"]}`, `{"tags":["a","b","old"]}`},
		{http.MethodDelete, `{"tags": ["a", "zz", "old"]}`, `{"tags":["b"]}`}, {http.MethodDelete, `{"tags": ["b"]}`, `{"tags":[]}`},
	} {
		resp := send(step.method, uid, step.body)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, resp.StatusCode, string(text))
		assert.JSONEq(t, step.want, string(text))
	}
	for status, resp := range map[int]*http.Response{
		http.StatusNotFound: send(http.MethodPut, "no-such", `{"tags": ["a"]}`), http.StatusConflict: send(http.MethodPut, lives, `{"tags": ["a"]}`),
		http.StatusBadRequest: send(http.MethodPut, uid, `{"tags": ["a,b"]}`),
	} {
		assert.Equal(t, status, resp.StatusCode)
	}
	assert.Equal(t, http.StatusBadRequest, send(http.MethodPut, uid, `{"tag": "a"}`).StatusCode)
}

func TestCodeIsForWhoHasSentIt(t *testing.T) {
	h := newHarness(t)
	put := func(user, content string) int {
		return h.ask(t, http.MethodPut, "/v1/code/"+sumOf("content")+"?user="+user, strings.NewReader(content)).StatusCode
	}
	head := func(query string) int {
		return h.ask(t, http.MethodHead, "/v1/code/"+sumOf("content")+query, nil).StatusCode
	}
	require.Equal(t, http.StatusCreated, put("ann", "content"))
	assert.Equal(t, http.StatusOK, head("?user=ann"))
	assert.Equal(t, http.StatusNotFound, head("?user=mallory"))
	assert.Equal(t, http.StatusNotFound, head("?user="))
	assert.Equal(t, http.StatusOK, head(""), "an operator's client")
	assert.Equal(t, http.StatusBadRequest, put("mallory", "a guess"))
	assert.Equal(t, http.StatusNotFound, head("?user=mallory"))
	assert.Equal(t, http.StatusCreated, put("bob", "content"))
	assert.Equal(t, http.StatusOK, head("?user=bob"))
}

func TestTheAuditHasATokenOfItsOwn(t *testing.T) {
	h := newHarness(t)
	ask := func(method, path string, headers map[string]string, body io.Reader) *http.Response {
		r := httptest.NewRequestWithContext(t.Context(), method, path, body)
		for name, value := range headers {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		server.New(h.options).Handler().ServeHTTP(w, r)
		return w.Result()
	}
	jobs, both := map[string]string{api.TokenHeader: token}, map[string]string{api.TokenHeader: token, api.AuditTokenHeader: "audit"}
	record := audit.Record{ID: strings.Repeat("a", 20), Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Actor: "ann", Verb: "stop", Kind: "job", Object: "train", Outcome: audit.Refused}
	body, err := json.Marshal([]audit.Record{record})
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, ask(http.MethodGet, "/v1/audit", both, nil).StatusCode, "the token isn't known yet")
	h.options.AuditToken = func() string { return "audit" }
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		assert.Equal(t, http.StatusForbidden, ask(method, "/v1/audit", jobs, bytes.NewReader(body)).StatusCode)
	}
	only := map[string]string{api.AuditTokenHeader: "audit"}
	assert.Equal(t, http.StatusForbidden, ask(http.MethodGet, "/v1/jobs", only, nil).StatusCode, "it opens nothing else")
	require.Equal(t, http.StatusNoContent, ask(http.MethodPost, "/v1/audit", only, bytes.NewReader(body)).StatusCode)
	read := func(query string) audit.Page {
		resp := ask(http.MethodGet, "/v1/audit?"+query, only, nil)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		var page audit.Page
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&page))
		return page
	}
	assert.Equal(t, []audit.Record{record}, read("actor=ann&outcome=refused&since=2026-03-01T00:00:00Z").Items)
	assert.Empty(t, read("actor=bob").Items)
	assert.Equal(t, http.StatusBadRequest, ask(http.MethodGet, "/v1/audit?user=ann", only, nil).StatusCode)
	assert.Equal(t, http.StatusBadRequest, ask(http.MethodPost, "/v1/audit", only, strings.NewReader(`[{"id": "short"}]`)).StatusCode)
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		assert.Equal(t, http.StatusMethodNotAllowed, ask(method, "/v1/audit", only, nil).StatusCode, "records are added, and nothing else")
	}

	// An export contains the audit only for clients that may read the audit, and an import adds it only for clients that may write it.
	export := func(headers map[string]string) []byte {
		text, err := io.ReadAll(ask(http.MethodGet, "/v1/archive", headers, nil).Body)
		require.NoError(t, err)
		return text
	}
	without, with := export(jobs), export(both)
	assert.NotContains(t, string(without), record.ID)
	assert.Contains(t, string(with), record.ID)
	h2 := newHarness(t)
	h2.options.AuditToken, h = h.options.AuditToken, h2
	for i, headers := range []map[string]string{jobs, both} {
		require.Equal(t, http.StatusOK, ask(http.MethodPut, "/v1/archive", headers, bytes.NewReader(with)).StatusCode)
		assert.Len(t, read("").Items, i)
	}
}

func sumOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}
