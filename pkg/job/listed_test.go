package job

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller"
	"github.com/openpai/paictl/pkg/job/controller/server"
	"github.com/openpai/paictl/pkg/job/jobtest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

// replica is a job controller that runs as the chart runs it: it takes part in the election, archives jobs and serves requests.
type replica struct {
	*controller.Controller
	handler http.Handler
	code    http.Handler
	address string
	stop    func()
}

// replicated is a client of a cluster, with the replicas that it sends requests to. Its jobs are in a namespace of the test.
type replicated struct {
	*Client
	cluster *kube.Cluster
	store   archive.Store
	asked   atomic.Pointer[replica] // the replica behind the service
	lists   atomic.Int32            // requests for all Frameworks to the API server
	late    sync.Mutex              // while it is held, replicas get no changes of Frameworks
}

// lateWriter delays an API server's response about Frameworks while late is locked.
type lateWriter struct {
	http.ResponseWriter
	late *sync.Mutex
}

func (l *lateWriter) Write(p []byte) (int, error) {
	l.late.Lock()
	defer l.late.Unlock()
	return l.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController access to the underlying writer.
func (l *lateWriter) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// slow returns the configuration of a connection to the API server that may deliver watch events late.
func (r *replicated) slow(t *testing.T) *rest.Config {
	t.Helper()
	h, err := jobtest.Handler(r.cluster.Config, nil)
	require.NoError(t, err)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Query().Get("watch") != "" && strings.HasSuffix(q.URL.Path, "/frameworks") {
			w = &lateWriter{w, &r.late}
		}
		h.ServeHTTP(w, q)
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}
}

var namespaces atomic.Int32

func newReplicated(t *testing.T, scheduler http.Handler) *replicated {
	t.Helper()
	cluster := kubetest.Start(t)
	jobtest.Prepare(t, cluster)
	kubetest.PriorityClasses(t, cluster)
	r := &replicated{cluster: cluster}
	services := jobtest.Services{"scheduler": scheduler, api.Service: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if one := r.asked.Load(); one != nil {
			one.handler.ServeHTTP(w, q)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable) // the response of an API server for a service without pods
	})}
	if scheduler == nil {
		delete(services, "scheduler")
	}
	front, err := jobtest.Handler(cluster.Config, services)
	require.NoError(t, err)
	r.Client, err = Open(kube.Options{Kubeconfig: jobtest.Kubeconfig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodGet && strings.HasSuffix(q.URL.Path, "/frameworks") {
			r.lists.Add(1)
		}
		front.ServeHTTP(w, q)
	}))})
	require.NoError(t, err)
	r.Namespace = fmt.Sprint("lists-", namespaces.Add(1))
	_, err = cluster.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = cluster.Client.CoreV1().ServiceAccounts(r.Namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	r.Frameworks, err = NewFrameworks(r.Config, r.Namespace)
	require.NoError(t, err)
	r.store, err = archive.Open(t.Context(), archive.Options{Path: filepath.Join(t.TempDir(), "archive.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.store.Close()) })
	return r
}

// start starts a replica. The first replica that starts becomes the leader.
func (r *replicated) start(t *testing.T) *replica {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	one := &replica{address: l.Addr().String()}
	one.Controller, err = controller.New(controller.Options{Config: r.slow(t), Namespace: r.Namespace, SystemNamespace: r.Namespace,
		Identity: one.address, LeaderElection: true, Store: r.store, Log: logr.Discard(), Registry: registry, LogBytes: -1})
	require.NoError(t, err)
	s := server.New(server.Options{Store: r.store, Ready: func(context.Context) error { return nil }, Metrics: registry, Token: func() string { return jobtest.Token }, Jobs: one.Controller, Log: slog.New(slog.DiscardHandler)})
	one.handler, one.code = s.Handler(), s.TaskHandler()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 2)
	go func() { ended <- one.Run(ctx) }()
	go func() { ended <- s.ServeJobs(ctx, l) }()
	stopped := false
	one.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	}
	t.Cleanup(one.stop)
	return one
}

func soon(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, time.Minute, 10*time.Millisecond, what)
}

// submitted creates a job with one task that no machine ever takes.
func (r *replicated) submitted(t *testing.T, user, name string) *v1.Framework {
	t.Helper()
	f, err := r.Frameworks.Create(t.Context(), &v1.Framework{
		TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "Framework"},
		ObjectMeta: metav1.ObjectMeta{Name: v1.ObjectName(user, name), Labels: map[string]string{v1.LabelUser: user, v1.LabelVC: "vision"},
			Annotations: map[string]string{v1.AnnotationJobName: name}},
		Spec: v1.FrameworkSpec{ExecutionType: v1.ExecutionStart, TaskRoles: []v1.TaskRole{{Name: "main", TaskNumber: 1,
			FrameworkAttemptCompletionPolicy: v1.CompletionPolicy{MinFailedTaskCount: 1, MinSucceededTaskCount: 1},
			Task:                             v1.Task{Pod: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "i"}}}}}}}},
	}, false)
	require.NoError(t, err)
	return f
}

func (r *replicated) listed(t *testing.T, f Filter) (out []string) {
	t.Helper()
	page, err := r.List(t.Context(), f)
	require.NoError(t, err)
	require.Empty(t, page.Note)
	for i := range page.Items {
		out = append(out, page.Items[i].Name)
	}
	return out
}

// ends stops a job, and waits until the history contains it and its Framework may be removed.
func (r *replicated) ends(t *testing.T, f *v1.Framework) {
	t.Helper()
	_, err := r.Frameworks.Patch(t.Context(), f.Name, types.MergePatchType, map[string]any{"spec": map[string]any{"executionType": v1.ExecutionStop}})
	require.NoError(t, err)
	grace := int64(0)
	soon(t, f.Name+" is archived", func() bool {
		_ = r.cluster.Client.CoreV1().Pods(r.Namespace).Delete(t.Context(), v1.PodName(f.Name, "main", 0), metav1.DeleteOptions{GracePeriodSeconds: &grace}) // because no kubelet runs
		have, err := r.Frameworks.Get(t.Context(), f.Name)
		require.NoError(t, err)
		return have.Status != nil && have.Status.ArchivedTime != nil
	})
}

// removed deletes a Framework. Its objects stay, because no garbage collector runs here.
func (r *replicated) removed(t *testing.T, f *v1.Framework) {
	t.Helper()
	require.NoError(t, r.Frameworks.on(r.Frameworks.rest.Delete(), f.Name).Do(t.Context()).Error())
}

func TestWhoSubmitsAJobSeesItInTheNextList(t *testing.T) {
	r := newReplicated(t, nil)
	one := r.start(t)
	r.asked.Store(one)
	soon(t, "it leads", one.Leads)
	for i := range 40 {
		name := fmt.Sprint("job", i)
		f := r.submitted(t, "ann", name)
		if i > 0 && i%10 == 0 {
			// The controller compares numbers of jobs, so the list contains both changes a moment later if one job was added while another was
			// removed.
			soon(t, name+" is listed", func() bool { return slices.Contains(r.listed(t, Filter{User: "ann"}), name) })
		}
		require.Contains(t, r.listed(t, Filter{User: "ann"}), name)
		if i%10 == 9 {
			r.removed(t, f)
			soon(t, name+" is gone", func() bool {
				_, err := r.Frameworks.Get(t.Context(), f.Name)
				return apierrors.IsNotFound(err)
			})
		}
	}
	assert.Zero(t, r.lists.Load(), "the API server isn't asked for all jobs")
}

func TestAControllerThatIsBehindIsNotBelieved(t *testing.T) {
	r := newReplicated(t, nil)
	one := r.start(t)
	r.asked.Store(one)
	soon(t, "it leads", one.Leads)
	r.submitted(t, "ann", "early")
	require.Equal(t, []string{"early"}, r.listed(t, Filter{}))
	require.Zero(t, r.lists.Load())

	r.late.Lock()
	r.submitted(t, "ann", "late")
	assert.ElementsMatch(t, []string{"early", "late"}, r.listed(t, Filter{}), "the API server is asked")
	assert.NotZero(t, r.lists.Load())
	r.late.Unlock()
	r.lists.Store(0)
	assert.ElementsMatch(t, []string{"early", "late"}, r.listed(t, Filter{}))
	assert.Zero(t, r.lists.Load())
}

func TestAListGoesOnWhereItWasWhenAnotherReplicaLeads(t *testing.T) {
	r := newReplicated(t, nil)
	first := r.start(t)
	soon(t, "the first leads", first.Leads)
	second := r.start(t)
	r.asked.Store(second) // which forwards requests
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprint("job", i))
		r.submitted(t, "ann", want[i])
	}
	soon(t, "the second knows the leader", func() bool { return second.Leader() == first.address })
	f := Filter{User: "ann", Limit: 3}
	page, err := r.List(t.Context(), f)
	require.NoError(t, err)
	require.Len(t, page.Items, 3)
	got := []string{page.Items[0].Name, page.Items[1].Name, page.Items[2].Name}
	assert.Zero(t, r.lists.Load())

	first.stop()
	// If no replica leads yet, or the leader doesn't respond, the client asks the API server with the same cursor.
	fallen, err := r.List(t.Context(), Filter{User: "ann", Limit: 1, Cursor: page.Next})
	require.NoError(t, err)
	require.Len(t, fallen.Items, 1)
	soon(t, "the second leads", second.Leads)
	r.lists.Store(0)
	rest, err := r.List(t.Context(), Filter{User: "ann", Limit: 4, Cursor: page.Next})
	require.NoError(t, err)
	require.Len(t, rest.Items, 4)
	assert.Equal(t, fallen.Items[0].Name, rest.Items[0].Name)
	assert.Empty(t, rest.Next)
	for i := range rest.Items {
		got = append(got, rest.Items[i].Name)
	}
	slices.Sort(got)
	assert.Equal(t, want, got)
	assert.Zero(t, r.lists.Load())
}

func TestAJobThatEndsAndGoesStaysInTheList(t *testing.T) {
	r := newReplicated(t, nil)
	one := r.start(t)
	r.asked.Store(one)
	soon(t, "it leads", one.Leads)
	f := r.submitted(t, "ann", "train")
	assert.Equal(t, []string{"train"}, r.listed(t, Filter{Phases: []Phase{Waiting}}))
	r.ends(t, f)
	// The list shows the end of the job a moment after the API server does.
	soon(t, "it is listed as stopped", func() bool { return slices.Equal([]string{"train"}, r.listed(t, Filter{Phases: []Phase{Stopped}})) })
	r.removed(t, f)
	soon(t, "its Framework is gone", func() bool {
		assert.Equal(t, []string{"train"}, r.listed(t, Filter{}))
		_, err := r.Frameworks.Get(t.Context(), f.Name)
		return apierrors.IsNotFound(err)
	})
	page, err := r.List(t.Context(), Filter{Phases: []Phase{Stopped}})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	assert.False(t, page.Items[0].Live)
	assert.Zero(t, r.lists.Load())
}

func TestJobsAreQueuedWhereTheSchedulerSaysSo(t *testing.T) {
	var asked atomic.Value
	var r *replicated
	r = newReplicated(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked.Store(q.URL.Query()["prefix"])
		_, _ = fmt.Fprintf(w, `{"items":[{"position":4,"positionInVC":2,"vc":"vision","group":"ann~queued/default"},{"position":5,"positionInVC":3,"vc":"vision","group":"%s/%s-main-0"}],"total":2}`, r.Namespace, v1.ObjectName("ann", "alone"))
	}))
	one := r.start(t)
	r.asked.Store(one)
	soon(t, "it leads", one.Leads)
	r.submitted(t, "ann", "queued")
	r.submitted(t, "ann", "alone")
	r.submitted(t, "ann", "other")
	soon(t, "all have pods", func() bool {
		return len(r.listed(t, Filter{Phases: []Phase{Queued}})) == 2 && len(r.listed(t, Filter{Phases: []Phase{Waiting}})) == 1
	})
	assert.ElementsMatch(t, []string{"queued", "alone"}, r.listed(t, Filter{Phases: []Phase{Queued}, Limit: 2}))
	page, err := r.List(t.Context(), Filter{Phases: []Phase{Queued}, Limit: 1})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	assert.NotEmpty(t, page.Next)
	assert.False(t, page.Items[0].Unplaced)
	assert.Contains(t, []int{2, 3}, page.Items[0].Position)
	assert.Equal(t, []string{"other"}, r.listed(t, Filter{Phases: []Phase{Waiting}}))
	assert.Contains(t, asked.Load(), "ann~queued/")
	assert.Contains(t, asked.Load(), r.Namespace+"/"+v1.ObjectName("ann", "alone")+"-")
	assert.Zero(t, r.lists.Load())
}

func TestListsOfJobsThatLiveAreForWhoKnowsTheToken(t *testing.T) {
	r := newReplicated(t, nil)
	one := r.start(t)
	soon(t, "it leads", one.Leads)
	ask := func(h http.Handler, token, query string) (int, string) {
		q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/jobs?"+query, nil)
		q.Header.Set(api.TokenHeader, token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, q)
		return w.Code, w.Body.String()
	}
	for _, token := range []string{"", "guess"} {
		code, _ := ask(one.handler, token, "live=true")
		assert.Equal(t, http.StatusForbidden, code)
	}
	code, _ := ask(one.code, jobtest.Token, "live=true")
	assert.Equal(t, http.StatusNotFound, code, "the port that pods of jobs reach")
	second := r.start(t)
	soon(t, "the second knows the leader", func() bool { return second.Leader() == one.address })
	code, _ = ask(second.handler, "guess", "live=true")
	assert.Equal(t, http.StatusForbidden, code, "nothing is passed on for a stranger")
	for query, says := range map[string]string{
		"live=false": "live must be true", "live=": "live must be true", "live=true&usr=ann": `no parameter`, "live=true&state=done": "no state",
		"live=true&cursor=%25": "not a cursor", "live=true&cursor=zzzzzzzz-a": "not a cursor", "live=true&limit=0": "1 to 1000", "live=true&limit=1001": "1 to 1000",
		"live=true&limit=-1": "1 to 1000", "live=true&limit=99999999999": "is not a number", "live=true&since=yesterday": "is not a time", "live=true&before=2026-01-31T12:00:00Z": "no parameter",
	} {
		for _, h := range []http.Handler{one.handler, second.handler} {
			code, body := ask(h, jobtest.Token, query)
			assert.Equal(t, http.StatusBadRequest, code, query)
			assert.Contains(t, body, says, query)
		}
	}
	for _, query := range []string{"live=true&user=%27%20OR%201=1%20--", "live=true&vc=%00", "live=true&keyword=%25_%5C", "live=true&name=%ff", "live=true&user=" + strings.Repeat("x", 10000)} {
		code, body := ask(second.handler, jobtest.Token, query)
		require.Equal(t, http.StatusOK, code, body)
		var page Page
		require.NoError(t, json.Unmarshal([]byte(body), &page))
		assert.Empty(t, page.Items)
		assert.Empty(t, page.Note, query)
	}
}
