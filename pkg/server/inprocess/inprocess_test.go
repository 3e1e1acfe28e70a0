package inprocess_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/httpserver/access"
	frameworkv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/server/inprocess"
)

// cluster simulates an API server with two templates. A job controller is behind the API server's proxy.
type cluster struct {
	api *httptest.Server

	mu        sync.Mutex
	requests  []string // method and path
	forbidden string   // a part of the requests that the account may not send
	silent    bool     // the job controller doesn't answer
	fresh     bool     // the cluster doesn't have the definitions of people and templates
	bare      bool     // the platform doesn't run, and there is no password of metrics
	records   []audit.Record
	left      chan struct{}
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{left: make(chan struct{})}
	c.api = httptest.NewServer(http.HandlerFunc(c.answer))
	t.Cleanup(c.api.Close)
	t.Cleanup(func() { close(c.left) }) // before Close, which waits for requests
	return c
}

func (c *cluster) answer(w http.ResponseWriter, r *http.Request) {
	request := r.Method + " " + r.URL.Path
	c.mu.Lock()
	c.requests = append(c.requests, request)
	refused, silent, fresh, bare := c.forbidden != "" && strings.Contains(request, c.forbidden), c.silent, c.fresh, c.bare
	c.mu.Unlock()
	say := func(status int, body string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
	const group = "/apis/paictl.openpai.org/v1/"
	switch name, people := strings.CutPrefix(r.URL.Path, group); {
	case refused && people:
		say(403, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"%[1]s.paictl.openpai.org is forbidden: User \"dev\" cannot list resource \"%[1]s\" in API group \"paictl.openpai.org\" at the cluster scope","reason":"Forbidden","details":{"group":"paictl.openpai.org","kind":"%[1]s"},"code":403}`, name))
	case refused && strings.Contains(r.URL.Path, "/frameworks"):
		say(403, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"frameworks.frameworkcontroller.microsoft.com is forbidden: User \"dev\" cannot list resource \"frameworks\" in API group \"frameworkcontroller.microsoft.com\" in the namespace \"pai-jobs\"","reason":"Forbidden","details":{"group":"frameworkcontroller.microsoft.com","kind":"frameworks"},"code":403}`)
	case refused:
		say(403, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"services \"job-controller:http\" is forbidden: User \"dev\" cannot create resource \"services/proxy\" in API group \"\" in the namespace \"pai-system\"","reason":"Forbidden","details":{"name":"job-controller:http","kind":"services"},"code":403}`)
	case people && fresh:
		say(404, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}`)
	case people && name == "templates":
		say(200, `{"apiVersion":"paictl.openpai.org/v1","kind":"TemplateList","metadata":{"resourceVersion":"9"},"items":[`+aTemplate("1")+","+aTemplate("2")+`]}`)
	case people && r.Method == http.MethodDelete:
		say(200, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`)
	case people && strings.HasPrefix(name, "templates/"):
		say(200, aTemplate(strings.TrimPrefix(name, "templates/t")))
	case people && name == "users":
		say(200, `{"apiVersion":"paictl.openpai.org/v1","kind":"UserList","metadata":{"resourceVersion":"9"},"items":[]}`)
	case people && name == "groups":
		say(200, `{"apiVersion":"paictl.openpai.org/v1","kind":"GroupList","metadata":{"resourceVersion":"9"},"items":[]}`)
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		say(201, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":"dev"}}}`)
	case strings.HasSuffix(r.URL.Path, "/frameworks/"+frameworkv1.ObjectName("ann", "train")):
		say(200, `{"apiVersion":"frameworkcontroller.microsoft.com/v1","kind":"Framework","metadata":{"name":"f","uid":"u","labels":{"userName":"ann"},"annotations":{"jobName":"train"}}}`)
	case strings.Contains(r.URL.Path, "/namespaces/pai-system/secrets/") && (!bare || !strings.HasSuffix(r.URL.Path, "/"+access.Secret)):
		say(200, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"t","namespace":"pai-system"},"data":{"token":"dG9rZW4="}}`)
	case strings.HasSuffix(r.URL.Path, "/proxy/v1/audit"):
		if silent {
			select {
			case <-r.Context().Done():
			case <-c.left:
			}
			return
		}
		var records []audit.Record
		if err := json.NewDecoder(r.Body).Decode(&records); err != nil {
			say(400, `{}`)
			return
		}
		c.mu.Lock()
		c.records = append(c.records, records...)
		c.mu.Unlock()
		say(200, `{}`)
	case strings.Contains(r.URL.Path, "/services/alert-manager:http/proxy"):
		say(404, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"services \"alert-manager\" not found","reason":"NotFound","details":{"name":"alert-manager","kind":"services"},"code":404}`)
	default:
		say(404, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}`)
	}
}

func aTemplate(n string) string {
	return fmt.Sprintf(`{"apiVersion":"paictl.openpai.org/v1","kind":"Template","metadata":{"name":"t%[1]s","uid":"0000000%[1]s-0000-4000-8000-000000000000","resourceVersion":"%[1]s"},"spec":{"name":"train%[1]s","author":"ann","file":"x"}}`, n)
}

// asked returns the number of the server's requests that contain a text.
func (c *cluster) asked(text string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		if strings.Contains(r, text) {
			n++
		}
	}
	return n
}

// client returns a function that sends a request to a server inside paictl. warnings holds the warnings of the server.
func (c *cluster) client(t *testing.T) (send func(method, path, body string) (status int, answer string), warnings *[]error) {
	config := &rest.Config{Host: c.api.URL}
	api, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	warnings = &[]error{}
	s, err := inprocess.New(inprocess.Options{
		Cluster: &kube.Cluster{Config: config, Client: api, Context: "test", Server: c.api.URL}, Version: "v1", Log: slog.New(slog.DiscardHandler),
		Unaudited: func(err error) { *warnings = append(*warnings, err) },
	})
	require.NoError(t, err)
	h := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx, "", "") }}}
	t.Cleanup(h.CloseIdleConnections)
	return func(method, path, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://inside/api/v3/"+path, strings.NewReader(body))
		require.NoError(t, err)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		answer, err := h.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(text)
	}, warnings
}

func id(n string) string { return "templates/0000000" + n + "-0000-4000-8000-000000000000" }

func TestAChangeIsRecordedAsTheOperatorsWithoutAnAddress(t *testing.T) {
	c := newCluster(t)
	send, warnings := c.client(t)
	status, answer := send("DELETE", id("1"), "")
	require.Equal(t, 200, status, answer)
	require.Len(t, c.records, 1)
	r := c.records[0]
	assert.Equal(t, [...]string{"kubeconfig:dev", "", "done", "template", "train1", "ann"}, [...]string{r.Actor, r.Address, r.Outcome, r.Kind, r.Object, r.Owner})
	assert.Empty(t, *warnings)
}

func TestACommandWaitsOnceForAnAuditThatDoesNotAnswer(t *testing.T) {
	inprocess.SetAuditTime(t, 100*time.Millisecond)
	c := newCluster(t)
	c.silent = true
	send, warnings := c.client(t)
	for _, n := range []string{"1", "2"} {
		status, answer := send("DELETE", id(n), "")
		require.Equal(t, 200, status, answer)
	}
	assert.Equal(t, 1, c.asked("/proxy/v1/audit"))
	assert.Len(t, *warnings, 1)
}

func TestOnlyAChangeThatWasMadeWarnsOfAMissingRecord(t *testing.T) {
	c := newCluster(t)
	c.forbidden = "/proxy/v1/audit"
	send, warnings := c.client(t)
	status, _ := send("POST", "jobs", `{"text":"name: x"}`)
	require.Equal(t, 400, status)
	assert.Equal(t, 1, c.asked("/proxy/v1/audit"), "the attempt is recorded")
	assert.Empty(t, *warnings, "nothing changed")
	status, _ = send("DELETE", id("1"), "")
	require.Equal(t, 200, status)
	assert.Len(t, *warnings, 1)
}

func TestTheAuditHasNoRecordOfACheck(t *testing.T) {
	c := newCluster(t)
	send, _ := c.client(t)
	for path, body := range map[string]string{"jobs?check=true": `{"text":"name: x"}`, "jobs": `{"text":"name: x","dryRun":true}`} {
		status, _ := send("POST", path, body)
		require.Equal(t, 400, status)
	}
	assert.Zero(t, c.asked("/proxy/v1/audit"))
}

func TestWhatTheAPIServerForbidsHasTheRemedyOfItsKind(t *testing.T) {
	c := newCluster(t)
	send, _ := c.client(t)
	for _, k := range []struct{ forbidden, path, remedy string }{
		{"v1/users", "users", "use a kubeconfig of an administrator of the cluster (--kubeconfig, --context)"},
		{"v1/templates", "templates", "use a kubeconfig of an administrator of the cluster (--kubeconfig, --context)"},
		{"/frameworks", "jobs", `ask an administrator for the role job-user: docs/jobs.md, "Permissions", has it`},
	} {
		c.forbidden = k.forbidden
		status, answer := send("GET", k.path, "")
		require.GreaterOrEqual(t, status, 400)
		var e struct{ Message, Remedy string }
		require.NoError(t, json.Unmarshal([]byte(answer), &e), answer)
		assert.Contains(t, e.Message, `User "dev" cannot list resource`)
		assert.Equal(t, k.remedy, e.Remedy, k.path)
	}
}

func TestTemplatesAreReadWithoutThePeople(t *testing.T) {
	c := newCluster(t)
	c.forbidden = "v1/users"
	send, _ := c.client(t)
	status, answer := send("GET", "templates", "")
	require.Equal(t, 200, status, answer)
	assert.Contains(t, answer, "train1")
	status, answer = send("GET", id("2"), "")
	require.Equal(t, 200, status, answer)
	assert.Contains(t, answer, "train2")
}

func TestANewClusterHasTheBuiltInTemplates(t *testing.T) {
	c := newCluster(t)
	c.fresh = true
	send, _ := c.client(t)
	status, answer := send("GET", "templates?name=hello", "")
	require.Equal(t, 200, status, answer)
	var list struct{ Items []struct{ ID, Author string } }
	require.NoError(t, json.Unmarshal([]byte(answer), &list))
	require.Len(t, list.Items, 1)
	assert.Equal(t, "@catalogue", list.Items[0].Author)
	status, answer = send("GET", "templates/"+list.Items[0].ID, "")
	require.Equal(t, 200, status, answer)
	assert.Contains(t, answer, "name: hello")
	status, answer = send("DELETE", "templates/"+list.Items[0].ID, "")
	assert.Equal(t, 403, status, answer)
	status, _ = send("GET", id("1"), "")
	assert.Equal(t, 404, status)
}

func TestACommandWithManyRequestsReadsThePeopleOnce(t *testing.T) {
	c := newCluster(t)
	send, _ := c.client(t)
	for range 5 {
		status, answer := send("GET", "groups", "")
		require.Equal(t, 200, status, answer)
	}
	assert.Equal(t, 1, c.asked("GET /apis/paictl.openpai.org/v1/users"))
	assert.Equal(t, 1, c.asked("GET /apis/paictl.openpai.org/v1/groups"))
}

// This server writes no log, so its errors contain no request id.
func TestAnErrorHasItsCauseAndNoIDOfARequest(t *testing.T) {
	c := newCluster(t)
	c.bare = true
	send, _ := c.client(t)
	status, answer := send("GET", "alerts", "")
	require.Equal(t, 501, status, answer)
	assert.JSONEq(t, `{"code":"NotImplementedError","message":"there is no Alertmanager to ask","remedy":"start it with: paictl service start -n alert-manager"}`, answer)

	status, answer = send("GET", "jobs/ann/gone/logs", "")
	var told map[string]string
	require.NoError(t, json.Unmarshal([]byte(answer), &told), answer)
	assert.Equal(t, 400, status)
	assert.Contains(t, told["message"], "the job controller isn't started")
	assert.NotEmpty(t, told["remedy"])
	assert.NotContains(t, told, "request")

	_, answer = send("GET", "jobs/ann/train/logs", "")
	var frame struct{ Error map[string]string }
	require.NoError(t, json.Unmarshal([]byte(answer), &frame), answer)
	assert.NotEmpty(t, frame.Error["remedy"])
	assert.NotContains(t, frame.Error, "request", "the end of a stream has none, either")
}

func TestAClusterWithoutPeopleHasNoTokens(t *testing.T) {
	c := newCluster(t)
	send, _ := c.client(t)
	status, answer := send("GET", "tokens", "")
	require.Equal(t, 200, status, answer)
	assert.JSONEq(t, `{"items":[]}`, answer)
}
