package alerthandler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/alerthandler"
	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/job/jobtest"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/node/agent/repair"
	"github.com/openpai/paictl/pkg/people"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

const waitFor = 60 * time.Second

// world is a connection to a cluster with the definitions, but without jobs, machines and a handler.
type world struct {
	*kube.Cluster
	t       *testing.T
	objects dynamic.Interface
	dir     *people.Directory
	log     *slog.Logger // of handlers
}

func open(t *testing.T) *world {
	t.Helper()
	c := kubetest.Start(t)
	jobtest.Prepare(t, c)
	w := &world{Cluster: c, t: t, log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	var err error
	w.objects, err = dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(v1.CRD, &crd.Object))
	_, err = w.objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Create(t.Context(), crd, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	w.dir, err = people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, w.dir.Prepare(t.Context()))
	require.Eventually(t, func() bool {
		return w.objects.Resource(v1.Actions).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}) == nil
	}, waitFor, 50*time.Millisecond)
	require.NoError(t, w.objects.Resource(jobv1.Resource).Namespace(kube.JobNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	zero := int64(0)
	require.NoError(t, c.Client.CoreV1().Pods(kube.JobNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{}))
	require.NoError(t, c.Client.CoreV1().Nodes().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	return w
}

func config(t *testing.T, policies string) *policy.Config {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(`
limits: {stopsPerHour: 20, stopsPerHourPerVirtualCluster: 10, requeuesPerHour: 20, requeuesPerHourPerVirtualCluster: 10, requeuesPerJob: 3, machinesPerHour: 10, machinesOutPercent: 10, restartsPerHour: 10, returns: 3, returnsWithin: 168h}
drainTimeout: 30m
keep: 168h
` + policies))
	require.NoError(t, err)
	c, err := policy.Read(data)
	require.NoError(t, err)
	return c
}

const stopIdle = `
policies:
  - {name: idle, alerts: {alertname: JobGpusIdle}, exempt: {tags: [keep]}, steps: [{do: stop-job}]}
  - {name: broken, alerts: {alertname: GpuXidFatal}, steps: [{do: drain}, {do: reset-gpu}, {do: uncordon}]}
`

// handler starts a leading handler, and returns it with a function that stops it.
func (w *world) handler(c *policy.Config, config *rest.Config) (h *alerthandler.Handler, end func()) {
	w.t.Helper()
	h, err := alerthandler.New(alerthandler.Options{Config: config, JobNamespace: kube.JobNamespace, Policies: c, Log: w.log})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{}, 2)
	go func() { _ = h.Run(ctx); done <- struct{}{} }()
	go func() { h.Lead(ctx); done <- struct{}{} }()
	ended := false
	end = func() {
		if !ended {
			ended = true
			cancel()
			<-done
			<-done
		}
	}
	w.t.Cleanup(end)
	require.Eventually(w.t, h.Synced, waitFor, 10*time.Millisecond)
	return h, end
}

func (w *world) job(user, name string, tags ...string) *jobv1.Framework {
	w.t.Helper()
	f := &jobv1.Framework{TypeMeta: metav1.TypeMeta{APIVersion: jobv1.GroupVersion.String(), Kind: "Framework"}, ObjectMeta: metav1.ObjectMeta{
		Name: jobv1.ObjectName(user, name), Labels: map[string]string{jobv1.LabelUser: user, jobv1.LabelVC: "vision"},
		Annotations: map[string]string{jobv1.AnnotationJobName: name, jobv1.AnnotationTags: jobv1.WriteTags(tags)},
	}, Spec: jobv1.FrameworkSpec{ExecutionType: jobv1.ExecutionStart, TaskRoles: []jobv1.TaskRole{{Name: "worker", TaskNumber: 1, Task: jobv1.Task{
		Pod: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "x"}}}}}}}}}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(f)
	require.NoError(w.t, err)
	_, err = w.objects.Resource(jobv1.Resource).Namespace(kube.JobNamespace).Create(w.t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	start = time.Now()
	return jobtest.Framework(w.t, w.Cluster, f.Name)
}

func (w *world) node(name string) *corev1.Node {
	w.t.Helper()
	n, err := w.Client.CoreV1().Nodes().Create(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: checks.ConditionGPUsUnhealthy, Status: corev1.ConditionFalse}}
	n, err = w.Client.CoreV1().Nodes().UpdateStatus(w.t.Context(), n, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	start = time.Now()
	return n
}

func (w *world) pod(node, name string) {
	w.t.Helper()
	_, err := w.Client.CoreV1().Pods(kube.JobNamespace).Create(w.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{jobv1.LabelFramework: "f"}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app", Image: "x"}}}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// machinesWork deletes evicted pods like the kubelet, and answers requests to reset GPUs like the agent.
func (w *world) machinesWork(resets *atomic.Int64) {
	ctx := w.t.Context()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	w.t.Cleanup(func() { cancel(); <-done })
	zero := int64(0)
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			pods, err := w.Client.CoreV1().Pods(kube.JobNamespace).List(ctx, metav1.ListOptions{})
			for i := 0; err == nil && i < len(pods.Items); i++ {
				if p := &pods.Items[i]; p.DeletionTimestamp != nil {
					_ = w.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero})
				}
			}
			nodes, err := w.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			for i := 0; err == nil && i < len(nodes.Items); i++ {
				n := &nodes.Items[i]
				requests, _ := repair.Read(n)
				answers, _ := repair.ReadAnswers(n)
				if len(requests) > len(answers) {
					resets.Add(1)
					_ = repair.WriteAnswers(ctx, w.Client, n, append(answers, repair.Answer{ID: requests[len(requests)-1].ID, Done: true, Message: "it was reset"}))
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
}

func alert(labels map[string]string, start time.Time) policy.Alert {
	return policy.Alert{Status: "firing", Labels: labels, Annotations: map[string]string{"summary": "it is so\nbecause of a reason"}, StartsAt: start}
}

func idle(user, job string) policy.Alert {
	return alert(map[string]string{"alertname": "JobGpusIdle", "user": user, "job_name": job}, start)
}

// start is the time at which alerts begin. It is later than the creation of all jobs and machines of the test.
var start time.Time

// send sends alerts as Alertmanager does, until the handler accepts them.
func (w *world) send(h *alerthandler.Handler, alerts ...policy.Alert) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return post(w.t, h, alerts...) == http.StatusNoContent }, waitFor, 20*time.Millisecond)
}

func post(t *testing.T, h *alerthandler.Handler, alerts ...policy.Alert) int {
	t.Helper()
	body, err := json.Marshal(map[string]any{"version": "4", "alerts": alerts})
	require.NoError(t, err)
	out := httptest.NewRecorder()
	h.ServeAlerts(out, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/alerts", bytes.NewReader(body)))
	return out.Code
}

func (w *world) actions() map[string]*v1.Action {
	w.t.Helper()
	list, err := w.objects.Resource(v1.Actions).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	out := map[string]*v1.Action{}
	for i := range list.Items {
		a := &v1.Action{}
		require.NoError(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, a))
		out[a.Name] = a
	}
	return out
}

// settled waits until n Actions exist and all are finished. It fails for more than n Actions.
func (w *world) settled(n int) map[string]*v1.Action {
	w.t.Helper()
	var all map[string]*v1.Action
	require.Eventually(w.t, func() bool {
		all = w.actions()
		for _, a := range all {
			if !a.Status.Phase.Final() {
				return false
			}
		}
		return len(all) >= n
	}, waitFor, 20*time.Millisecond, "%v", all)
	require.Len(w.t, all, n)
	return all
}

func (w *world) request(change func(*v1.Action)) *v1.Action {
	w.t.Helper()
	a := &v1.Action{TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: v1.Kind}, ObjectMeta: metav1.ObjectMeta{GenerateName: "person-"},
		Spec: v1.ActionSpec{By: v1.Requester{Kind: v1.ByOperator, Name: "root"}, Reason: "a test", NotAfter: metav1.NewTime(time.Now().Add(time.Hour))}}
	change(a)
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	require.NoError(w.t, err)
	u, err := w.objects.Resource(v1.Actions).Create(w.t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	require.NoError(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, a))
	return a
}

// An idle job is stopped only once, even if Alertmanager repeats the alert. Its Framework contains the reason. Other jobs keep running.
func TestAnIdleJobIsStopped(t *testing.T) {
	w := open(t)
	f := w.job("ann", "train")
	w.job("ann", "kept", "keep")
	h, _ := w.handler(config(t, stopIdle), w.Config)
	for range 3 {
		w.send(h, idle("ann", "train"), idle("ann", "kept"), idle("ann", "no-such-job"), idle("", ""), alert(map[string]string{"alertname": "Other", "user": "ann", "job_name": "train"}, start))
	}
	for _, a := range w.settled(1) {
		require.Equal(t, v1.PhaseSucceeded, a.Status.Phase, a.Status.Message)
		require.Equal(t, f.UID, a.Spec.Job.UID)
		require.Equal(t, "it is so because of a reason", a.Spec.Reason)
	}
	got := jobtest.Framework(t, w.Cluster, f.Name)
	require.Equal(t, jobv1.ExecutionStop, got.Spec.ExecutionType)
	require.Equal(t, "it is so because of a reason (policy idle)", got.Annotations[jobv1.AnnotationStopped])
	require.Equal(t, jobv1.ExecutionStart, jobtest.Framework(t, w.Cluster, jobv1.ObjectName("ann", "kept")).Spec.ExecutionType)
}

// An alert that ends within the grace period cancels the stop.
func TestAnAlertThatEndsCancels(t *testing.T) {
	w := open(t)
	f := w.job("ann", "train")
	h, _ := w.handler(config(t, `
policies: [{name: idle, alerts: {alertname: JobGpusIdle}, steps: [{do: stop-job, grace: 1h}]}]`), w.Config)
	w.send(h, idle("ann", "train"))
	require.Eventually(t, func() bool {
		for _, a := range w.actions() {
			return a.Status.Phase == v1.PhaseNoticed
		}
		return false
	}, waitFor, 20*time.Millisecond)
	over := idle("ann", "train")
	over.Status = "resolved"
	w.send(h, over)
	for _, a := range w.settled(1) {
		require.Equal(t, v1.PhaseCanceled, a.Status.Phase)
	}
	require.Equal(t, jobv1.ExecutionStart, jobtest.Framework(t, w.Cluster, f.Name).Spec.ExecutionType)
}

// The handler is killed at any request, before the request is sent or before the response arrives. The next handler completes the work without
// repeating an effect.
func TestKilledAnywhere(t *testing.T) {
	w := open(t)
	var resets atomic.Int64
	w.machinesWork(&resets)
	for i := range 20 {
		w.node(fmt.Sprintf("n%d", i))
	}
	// Each run tests a fifth of the points, so that many runs together cover all points.
	for point, more := rand.IntN(5), true; more; point += 5 {
		for _, answered := range []bool{true, false} {
			require.NoError(t, w.objects.Resource(v1.Actions).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
			require.NoError(t, w.Client.CoreV1().Nodes().Delete(t.Context(), "n3", metav1.DeleteOptions{}))
			w.node("n3")
			xid := alert(map[string]string{"alertname": "GpuXidFatal", "node": "n3", "gpu": "2"}, start)
			w.pod("n3", "a")
			w.pod("n3", "b")
			resets.Store(0)
			killed := &mortal{answered: answered}
			killed.left.Store(int64(point))
			c := rest.CopyConfig(w.Config)
			c.Wrap(killed.wrap)
			h, end := w.handler(config(t, stopIdle), c)
			require.Eventually(t, func() bool { return post(t, h, xid) == http.StatusNoContent || killed.dead.Load() }, waitFor, 10*time.Millisecond)
			require.Eventually(t, func() bool { return killed.dead.Load() || len(w.actions()) == 3 && finished(w.actions()) }, waitFor, 10*time.Millisecond)
			end()
			more = killed.dead.Load()
			h, end = w.handler(config(t, stopIdle), w.Config)
			w.send(h, xid) // Alertmanager repeats it
			for _, a := range w.settled(3) {
				require.Equal(t, v1.PhaseSucceeded, a.Status.Phase, "point %d: %s: %s", point, a.Name, a.Status.Message)
			}
			end()
			n, err := w.Client.CoreV1().Nodes().Get(t.Context(), "n3", metav1.GetOptions{})
			require.NoError(t, err)
			require.False(t, n.Spec.Unschedulable, "point %d", point)
			require.Empty(t, n.Annotations[v1.MarkAnnotation])
			require.Equal(t, int64(1), resets.Load(), "point %d: the GPU is reset once", point)
			pods, err := w.Client.CoreV1().Pods(kube.JobNamespace).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Empty(t, pods.Items)
		}
	}
}

func finished(all map[string]*v1.Action) bool {
	for _, a := range all {
		if !a.Status.Phase.Final() {
			return false
		}
	}
	return true
}

// mortal simulates a killed handler. It allows a number of writing requests, and then fails all requests.
type mortal struct {
	left     atomic.Int64
	answered bool // the last request reaches the API server, but its answer gets lost
	dead     atomic.Bool
}

var errDead = errors.New("killed")

func (m *mortal) wrap(next http.RoundTripper) http.RoundTripper {
	return tripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet {
			return next.RoundTrip(r)
		}
		if m.dead.Load() {
			return nil, errDead
		}
		if m.left.Add(-1) >= 0 {
			return next.RoundTrip(r)
		}
		m.dead.Store(true)
		if m.answered {
			if resp, err := next.RoundTrip(r); err == nil {
				resp.Body.Close()
			}
		}
		return nil, errDead
	})
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Policies may cordon at most the configured share of the machines.
func TestTheShareOfMachinesHolds(t *testing.T) {
	w := open(t)
	for i := range 40 {
		w.node(fmt.Sprintf("n%d", i))
	}
	h, _ := w.handler(config(t, `
policies: [{name: broken, alerts: {alertname: GpuXidFatal}, steps: [{do: cordon}]}]`), w.Config)
	var alerts []policy.Alert
	for i := range 7 {
		alerts = append(alerts, alert(map[string]string{"alertname": "GpuXidFatal", "node": fmt.Sprintf("n%d", i), "gpu": "0"}, start))
	}
	w.send(h, alerts...)
	phases := map[v1.Phase]int{}
	for _, a := range w.settled(7) {
		phases[a.Status.Phase]++
	}
	require.Equal(t, map[v1.Phase]int{v1.PhaseSucceeded: 4, v1.PhaseRefused: 3}, phases)
}

// A request has no effect if the requester isn't allowed to make it, if the target was replaced, or if the request is stale.
func TestForgedAndStaleRequests(t *testing.T) {
	w := open(t)
	f := w.job("ann", "train")
	n := w.node("n1")
	w.handler(config(t, stopIdle), w.Config)
	theJob := func(a *v1.Action) {
		a.Spec.Do, a.Spec.Job = v1.OperationStopJob, &v1.Job{Object: f.Name, UID: f.UID, Name: "ann/train"}
	}
	for name, c := range map[string]struct {
		change  func(*v1.Action)
		phase   v1.Phase
		message string
	}{
		"nobody":             {func(a *v1.Action) { theJob(a); a.Spec.By = v1.Requester{Kind: v1.ByPerson, Name: "eve", UID: "x"} }, v1.PhaseRefused, "is no longer a person of this cluster"},
		"no such policy":     {func(a *v1.Action) { theJob(a); a.Spec.By = v1.Requester{Kind: v1.ByPolicy, Name: "evil"} }, v1.PhaseRefused, "no policy evil"},
		"a former job":       {func(a *v1.Action) { theJob(a); a.Spec.Job.UID = types.UID("former") }, v1.PhaseRefused, "another job"},
		"an expired request": {func(a *v1.Action) { theJob(a); a.Spec.NotAfter = metav1.NewTime(time.Now().Add(-time.Minute)) }, v1.PhaseExpired, "expired"},
		"a former machine": {func(a *v1.Action) {
			a.Spec.Do, a.Spec.Machine = v1.OperationDrain, &v1.Machine{Name: n.Name, UID: "former"}
		}, v1.PhaseRefused, "added again"},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.request(c.change)
			require.Eventually(t, func() bool { return w.actions()[a.Name].Status.Phase.Final() }, waitFor, 20*time.Millisecond)
			got := w.actions()[a.Name]
			require.Equal(t, c.phase, got.Status.Phase, got.Status.Message)
			require.Contains(t, got.Status.Message, c.message)
		})
	}
	require.Equal(t, jobv1.ExecutionStart, jobtest.Framework(t, w.Cluster, f.Name).Spec.ExecutionType)
	now, err := w.Client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	require.NoError(t, err)
	require.False(t, now.Spec.Unschedulable)
}

// The API server rejects changes to the request of an Action, and requests with a target that doesn't fit their operation.
func TestTheDefinitionRefuses(t *testing.T) {
	w := open(t)
	f := w.job("ann", "train")
	a := w.request(func(a *v1.Action) {
		a.Spec.Do, a.Spec.Job = v1.OperationStopJob, &v1.Job{Object: f.Name, UID: f.UID, Name: "ann/train"}
	})
	patch := func(text string) error {
		_, err := w.objects.Resource(v1.Actions).Patch(t.Context(), a.Name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	for _, text := range []string{
		`{"spec":{"reason":"other"}}`, `{"spec":{"job":{"uid":"other"}}}`, `{"spec":{"dryRun":true}}`, `{"spec":{"by":{"name":"eve"}}}`, `{"spec":{"graceSeconds":5}}`,
		`{"spec":{"job":null,"machine":{"name":"n1","uid":"x"}}}`, `{"spec":{"notAfter":"2030-01-01T00:00:00Z"}}`, `{"spec":{"do":"cordon"}}`,
	} {
		require.ErrorContains(t, patch(text), "Invalid value", text)
	}
	require.NoError(t, patch(`{"spec":{"canceled":"root: not now"}}`))
	require.ErrorContains(t, patch(`{"spec":{"canceled":null}}`), "stays canceled")
	require.ErrorContains(t, patch(`{"spec":{"canceled":"other"}}`), "stays canceled")
}

func TestMessages(t *testing.T) {
	w := open(t)
	h, _ := w.handler(config(t, stopIdle), w.Config)
	for text, want := range map[string]int{
		"":                  http.StatusBadRequest,
		"{":                 http.StatusBadRequest,
		`{"alerts":"x"}`:    http.StatusBadRequest,
		`{"alerts":[null]}`: http.StatusNoContent,
		`{"version":"4"}`:   http.StatusNoContent,
		`{"alerts":[` + strings.Repeat(`{},`, 10_001) + `{}]}`: http.StatusRequestEntityTooLarge,
		strings.Repeat(" ", 9<<20):                             http.StatusBadRequest,
	} {
		out := httptest.NewRecorder()
		h.ServeAlerts(out, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/alerts", strings.NewReader(text)))
		require.Equal(t, want, out.Code, "%.40s", text)
	}
}
