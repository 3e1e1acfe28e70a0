package assembly_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/openpai/paictl/pkg/job/jobtest"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// rule is a line of testdata/rules.txt.
type rule struct {
	method, path, body string
	want               []int // of the askers below
}

// atPages is the prefix of the method of a route at the origin of other services' pages.
const atPages = "PAGES:"

// askers returns the columns of testdata/rules.txt, which are people and scopes of tokens.
func askers() []string {
	return []string{"", "ann", "abe", "vic", "root", "read", "submit", "admin", "secrets"}
}

func specification(t *testing.T) []rule {
	t.Helper()
	f, err := os.Open("testdata/rules.txt")
	require.NoError(t, err)
	defer f.Close()
	var out []rule
	for in := bufio.NewScanner(f); in.Scan(); {
		words := strings.Fields(in.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		require.GreaterOrEqual(t, len(words), 2+len(askers()), in.Text())
		r := rule{method: words[0], path: words[1], body: strings.Join(words[2+len(askers()):], " ")}
		for _, w := range words[2 : 2+len(askers())] {
			n, err := strconv.Atoi(w)
			require.NoError(t, err, in.Text())
			r.want = append(r.want, n)
		}
		out = append(out, r)
	}
	return out
}

// place returns the path of a route in the format of testdata/rules.txt.
func place(path string) string {
	return strings.NewReplacer("jobs/{user}/{name}", "jobs/PLACE", "{job}", "JOB").Replace(path)
}

func TestEveryRouteIsInTheSpecification(t *testing.T) {
	var have, want []string
	for _, r := range specification(t) {
		path, _, _ := strings.Cut(r.path, "?")
		have = append(have, r.method+" "+path)
	}
	for prefix, all := range map[string][]server.Route{"": routes(t), atPages: pageRoutes(t)} {
		for _, r := range all {
			want = append(want, prefix+cmp.Or(r.Method, "ANY")+" "+place(r.Path))
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	assert.Equal(t, want, slices.Compact(have))
}

func TestRulesTable(t *testing.T) {
	h := newHouse(t)
	h.letGo(t)
	ann, err := h.People.Person("ann")
	require.NoError(t, err)
	for _, scope := range rules.Scopes() {
		made, err := h.Tokens.Application(t.Context(), ann, token.New{Scopes: []rules.Scope{scope}})
		require.NoError(t, err)
		h.tokens[string(scope)] = made.Token.Reveal()
	}
	n := 0
	job := func() string {
		n++
		name := fmt.Sprintf("rules-%d", n)
		require.Equal(t, 202, h.Do("POST", "/api/v2/jobs", h.tokens["ann"], loose(name)).Status)
		return name
	}
	template := func() string {
		n++
		body, err := json.Marshal(v1.TemplateSpec{Name: fmt.Sprintf("rules-%d", n), Groups: []string{"speech"}, Job: loose("rules")})
		require.NoError(t, err)
		a := h.Do("POST", "/api/v3/templates", h.tokens["ann"], string(body))
		require.Equal(t, 201, a.Status, a.Body)
		return a.JSON()["id"].(string)
	}
	shared, common := job(), template()
	stopped(t, h, shared)
	for _, r := range specification(t) {
		for i, who := range askers() {
			name := shared
			if r.method != "GET" && (strings.Contains(r.path, "JOB") || strings.Contains(r.path, "PLACE")) {
				name = job()
			}
			id := common
			if r.method == "DELETE" && strings.HasSuffix(r.path, "{template}") {
				id = template()
			}
			path := strings.NewReplacer("{$}", "", "JOB", "ann~"+name, "PLACE", "ann/"+name, "{token}", "none", "{attempt}", "7", "{taskAttempt}", "0", "{log}", "all", "{link}", "none",
				"{role}", "Worker_1", "{index}", "0", "{user}", "ann", "{group}", "speech", "{template}", id, "{path...}", "acls/admin", "{vc}", "speech", "{service}", "prometheus", "{sha256}", strings.Repeat("ab", 32), "{action}", "none", "{silence}", "none").Replace(r.path)
			body := strings.ReplaceAll(r.body, "NUMBER", strconv.Itoa(n))
			if other, ok := strings.CutPrefix(body, "as "); ok {
				path, body = other, ""
			}
			n++
			switch body {
			case "SPEECH":
				body = loose(fmt.Sprintf("rules-%d", n))
			case "TEMPLATE":
				data, err := json.Marshal(v1.TemplateSpec{Name: fmt.Sprintf("rules-%d", n), Author: "ann", Job: loose("rules")})
				require.NoError(t, err)
				body = string(data)
			case "SUBMISSION":
				data, err := json.Marshal(api.Submission{Text: loose(fmt.Sprintf("rules-%d", n))})
				require.NoError(t, err)
				body = string(data)
			}
			method, page := strings.CutPrefix(r.method, atPages)
			if method == "ANY" {
				method = "PATCH"
			}
			key := h.tokens[who]
			if (strings.HasSuffix(r.path, "/logout") || r.method == "DELETE" && r.path == "/api/v3/session") && key != "" && i < 5 {
				p, err := h.People.Person(who)
				require.NoError(t, err)
				made, err := h.Tokens.Browser(t.Context(), p, token.New{})
				require.NoError(t, err)
				key = made.Token.Reveal()
			}
			ask := h.Do
			if page {
				ask = h.DoPage
			}
			a := ask(method, path, key, body)
			assert.Equal(t, r.want[i], a.Status, "%s %s as %q: %s", method, path, who, a.Body)
			if a.Status >= 400 && method != "HEAD" {
				assert.NotEmpty(t, a.Code(), "%s %s: %s", method, path, a.Body)
			}
			if a.Status == http.StatusServiceUnavailable {
				assert.NotEmpty(t, a.Header.Get("Retry-After"), "%s %s", method, path)
			}
		}
	}
}

// loose returns the file of a job whose tasks don't depend on each other.
func loose(name string) string {
	return servertest.JobFile(name, "speech") + "extras: {gangAllocation: false}\n"
}

// stopped marks a job as finished, as the controller does, so that streaming requests end.
func stopped(t *testing.T, h *house, name string) {
	t.Helper()
	now, code := metav1.Now(), fv1.CompletionStatus{Code: -210, Phrase: "StopFrameworkRequested", Type: fv1.CompletionType{Name: "Failed", Attributes: []fv1.CompletionTypeAttribute{}}}
	jobtest.SetStatus(t, h.cluster, fv1.ObjectName("ann", name), &fv1.FrameworkStatus{
		StartTime: now, CompletionTime: &now, State: fv1.Completed, TransitionTime: now,
		AttemptStatus: fv1.FrameworkAttemptStatus{StartTime: now, CompletionTime: &now, ConfigMapName: "none", CompletionStatus: &fv1.FrameworkAttemptCompletionStatus{CompletionStatus: &code}, TaskRoleStatuses: []*fv1.TaskRoleStatus{}},
	})
}

// letGo removes the finalizers of deleted Frameworks. The controller does so after it has written a Framework to the history.
func (h *house) letGo(t *testing.T) {
	t.Helper()
	client, err := dynamic.NewForConfig(h.cluster.Config)
	require.NoError(t, err)
	all := client.Resource(fv1.Resource).Namespace(kube.JobNamespace)
	w, err := all.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	go func() {
		for e := range w.ResultChan() {
			o, ok := e.Object.(metav1.Object)
			if ok && o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) > 0 {
				_, _ = all.Patch(t.Context(), o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}) // the test sees what is missing
			}
		}
	}()
}
