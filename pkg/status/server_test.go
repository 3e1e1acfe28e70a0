package status

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/jobtest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/pkg/services"
)

// door is a proxy in front of an API server. When the door is shut, it doesn't listen, and all connections break.
type door struct {
	t       *testing.T
	address string
	handler atomic.Pointer[http.Handler]
	mu      sync.Mutex
	server  *http.Server
}

func newDoor(t *testing.T, h http.Handler) *door {
	t.Helper()
	d := &door{t: t, address: "127.0.0.1:0"}
	d.handler.Store(&h)
	d.open()
	t.Cleanup(d.shut)
	return d
}

func (d *door) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, err := (&net.ListenConfig{}).Listen(d.t.Context(), "tcp", d.address)
	require.NoError(d.t, err)
	d.address = l.Addr().String()
	d.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*d.handler.Load()).ServeHTTP(w, r) }), ReadHeaderTimeout: time.Minute}
	go func(s *http.Server) { _ = s.Serve(l) }(d.server)
}

func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.server.Close()
}

// through returns a user's connection to a cluster through a proxy.
func through(t *testing.T, address, user string) *kube.Cluster {
	t.Helper()
	path := jobtest.Kubeconfig(t, http.NotFoundHandler())
	config, err := clientcmd.LoadFromFile(path)
	require.NoError(t, err)
	for _, c := range config.Clusters {
		c.Server = "http://" + address
	}
	for _, who := range config.AuthInfos {
		who.Impersonate = user
	}
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	out, err := kube.Open(kube.Options{Kubeconfig: path})
	require.NoError(t, err)
	return out
}

func options(tb testing.TB, c *kube.Cluster) Options {
	tb.Helper()
	read, err := services.Reader(c, slog.New(slog.DiscardHandler))
	require.NoError(tb, err)
	return Options{Services: read}
}

// followed returns a follower that runs until the test ends.
func followed(t *testing.T, c *kube.Cluster) *Follower {
	t.Helper()
	o := options(t, c)
	o.Metrics = 200 * time.Millisecond
	f, err := New(c, o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return f
}

// until waits for a model for which fits returns true.
func until(t *testing.T, f *Follower, what string, fits func(*Cluster) bool) *Cluster {
	t.Helper()
	late := time.NewTimer(2 * time.Minute)
	defer late.Stop()
	for {
		c := f.Current()
		if fits(c) {
			return c
		}
		select {
		case <-late.C:
			text, _ := json.MarshalIndent(c, "", " ")
			t.Fatalf("it never came to this: %s; but to %s", what, text[:min(len(text), 10000)])
		case <-f.Changed():
		}
	}
}

func (c *Cluster) sourceNamed(name string) Source {
	return c.Sources[slices.IndexFunc(c.Sources, func(s Source) bool { return s.Name == name })]
}

func (c *Cluster) machineNamed(name string) *Machine {
	for i := range c.Machines {
		if c.Machines[i].Name == name {
			return &c.Machines[i]
		}
	}
	return nil
}

func (c *Cluster) jobNamed(title string) *Job {
	for _, j := range c.Jobs {
		if j.Title() == title {
			return j
		}
	}
	return nil
}

// world is a real API server. Objects that tests create are removed at the end of each test.
type world struct {
	t *testing.T
	*kube.Cluster
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := kubetest.Start(t)
	jobtest.Prepare(t, c)
	return &world{t, c}
}

func (w *world) node(name string, change func(*corev1.Node)) {
	w.t.Helper()
	nodes := w.Client.CoreV1().Nodes()
	n, err := nodes.Create(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pai-worker": "true"}}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		n, err = nodes.Get(w.t.Context(), name, metav1.GetOptions{})
	} else {
		w.t.Cleanup(func() { _ = nodes.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	}
	require.NoError(w.t, err)
	change(n)
	updated, err := nodes.Update(w.t.Context(), n, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	updated.Status = n.Status
	_, err = nodes.UpdateStatus(w.t.Context(), updated, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

func condition(is corev1.ConditionStatus, reason, message string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: is, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}}
	}
}

func (w *world) slice(node string, gpus int) {
	w.t.Helper()
	s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-gpus"}, Spec: resourceapi.ResourceSliceSpec{
		Driver: claim.Driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1}}}
	for i := range int32(gpus) {
		model, uuid := "NVIDIA A100", fmt.Sprintf("GPU-%d", i)
		s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: claim.DeviceName(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"model": {StringValue: &model}, "uuid": {StringValue: &uuid}}})
	}
	_, err := w.Client.ResourceV1().ResourceSlices().Create(w.t.Context(), s, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		_ = w.Client.ResourceV1().ResourceSlices().Delete(context.Background(), s.Name, metav1.DeleteOptions{})
	})
}

func (w *world) job(user, name string) string {
	w.t.Helper()
	object := v1.ObjectName(user, name)
	f := &v1.Framework{TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "Framework"},
		ObjectMeta: metav1.ObjectMeta{Name: object, Namespace: kube.JobNamespace, Labels: map[string]string{v1.LabelUser: user, v1.LabelVC: "default"},
			Annotations: map[string]string{v1.AnnotationJobName: name, v1.AnnotationGPUs: "2", v1.AnnotationConfig: "secret: text"}},
		Spec: v1.FrameworkSpec{ExecutionType: v1.ExecutionStart, TaskRoles: []v1.TaskRole{{Name: "worker", TaskNumber: 1,
			FrameworkAttemptCompletionPolicy: v1.CompletionPolicy{MinFailedTaskCount: 1, MinSucceededTaskCount: 1},
			Task:                             v1.Task{Pod: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "i"}}}}}}}}}
	jobs, err := job.New(w.Cluster)
	require.NoError(w.t, err)
	_, err = jobs.Frameworks.Create(w.t.Context(), f, false)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { w.forget(object) })
	return object
}

func (w *world) forget(object string) {
	jobs, err := job.New(w.Cluster)
	require.NoError(w.t, err)
	f, err := jobs.Frameworks.Get(context.Background(), object)
	if err == nil {
		_ = jobs.Frameworks.Delete(context.Background(), object, f.UID)
		// No controller runs that would remove the finalizer.
		_, _ = jobs.Frameworks.Patch(context.Background(), object, types.MergePatchType, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	}
}

// pod creates a pod of a job on a node, and a claim for the given GPUs of that node.
func (w *world) pod(object, node string, gpus ...int32) *corev1.Pod {
	w.t.Helper()
	pods := w.Client.CoreV1().Pods(kube.JobNamespace)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: v1.PodName(object, "worker", 0), Labels: map[string]string{v1.LabelFramework: object, v1.LabelTaskRole: "worker", v1.LabelTaskIndex: "0"}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app", Image: "i"}}, AutomountServiceAccountToken: new(false)}}
	claim.Expect(p, func(*corev1.Container) bool { return true })
	p, err := pods.Create(w.t.Context(), p, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { w.remove(p) })
	c, err := w.Client.ResourceV1().ResourceClaims(kube.JobNamespace).Create(w.t.Context(), claim.New(p, len(gpus)), metav1.CreateOptions{})
	require.NoError(w.t, err)
	c.Status = claim.Status(p, claim.Place{Node: node, Indices: gpus, Details: []byte(`{}`)}, metav1.Now())
	_, err = w.Client.ResourceV1().ResourceClaims(kube.JobNamespace).UpdateStatus(w.t.Context(), c, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	return p
}

func (w *world) remove(p *corev1.Pod) {
	now := int64(0)
	_ = w.Client.CoreV1().Pods(p.Namespace).Delete(context.Background(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &p.UID}})
	name, _ := claim.Name(p)
	claims := w.Client.ResourceV1().ResourceClaims(p.Namespace)
	_, _ = claims.Patch(context.Background(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	_ = claims.Delete(context.Background(), name, metav1.DeleteOptions{})
}

func preparing() *v1.FrameworkStatus {
	s := &v1.FrameworkStatus{StartTime: metav1.Now(), State: v1.AttemptPreparing, TransitionTime: metav1.Now()}
	s.AttemptStatus.StartTime, s.AttemptStatus.TaskRoleStatuses = metav1.Now(), []*v1.TaskRoleStatus{{Name: "worker", Counts: v1.TaskCounts{Total: 1}, TaskStatuses: []*v1.TaskStatus{}}}
	return s
}

func TestAModelFollowsNodesGPUsAndJobs(t *testing.T) {
	w := newWorld(t)
	f := followed(t, w.Cluster)
	w.node("gpu-1", func(n *corev1.Node) {
		condition(corev1.ConditionTrue, "KubeletReady", "")(n)
		n.Annotations = map[string]string{schedulerapi.DevicesAnnotation: `{"devices":[{"index":0,"healthy":true},{"index":1,"healthy":true},{"index":2,"healthy":false,"reason":"XID 79: \u001b[31mgone"},{"index":3,"healthy":false,"reason":"the SKU says 4"}]}`}
	})
	w.slice("gpu-1", 3)
	object := w.job("alice", "train")
	jobtest.SetStatus(t, w.Cluster, object, preparing())
	w.pod(object, "gpu-1", 0, 1)

	c := until(t, f, "a job on two GPUs", func(c *Cluster) bool {
		m := c.machineNamed("gpu-1")
		return m != nil && len(m.GPUs) == 4 && m.GPUs[1].Owner != nil && m.GPUs[1].Owner.Job == "alice/train" && c.jobNamed("alice/train") != nil
	})
	m := c.machineNamed("gpu-1")
	assert.Equal(t, MachineReady, m.State)
	assert.Equal(t, []string{"pai-worker"}, m.Roles)
	assert.Equal(t, "worker[0]", m.GPUs[0].Owner.Task)
	assert.Equal(t, "NVIDIA A100", m.GPUs[0].Model)
	assert.Nil(t, m.GPUs[2].Owner)
	assert.Equal(t, GPUSick, m.GPUs[2].Health)
	assert.Equal(t, "XID 79: \u001b[31mgone", m.GPUs[2].Reason, "as it is; whoever prints it cleans it")
	assert.Equal(t, GPUMissing, m.GPUs[3].Health)
	assert.Equal(t, []string{"gpu-1"}, c.jobNamed("alice/train").Nodes)
	assert.Equal(t, string(job.Starting), c.jobNamed("alice/train").State)

	w.node("gpu-1", condition(corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."))
	c = until(t, f, "a silent machine", func(c *Cluster) bool { return c.machineNamed("gpu-1").State == MachineUnknown })
	m = c.machineNamed("gpu-1")
	assert.Equal(t, GPUUnknown, m.GPUs[0].Health)
	assert.Equal(t, LevelCritical, c.Verdict.Level)
	assert.Equal(t, StateAbsent, c.sourceNamed(SourceScheduler).State, "no scheduler yet")
	assert.Equal(t, StateAbsent, c.sourceNamed(SourcePrometheus).State)
	assert.Equal(t, StateAbsent, c.sourceNamed(SourceServices).State, "no configuration yet")
}

func TestNamesThatAreUsedAgainAreOthers(t *testing.T) {
	w := newWorld(t)
	f := followed(t, w.Cluster)
	w.node("again-1", condition(corev1.ConditionTrue, "", ""))
	w.slice("again-1", 2)
	object := w.job("again", "train")
	first := w.pod(object, "again-1", 0)
	has := func(c *Cluster, gpu int) bool {
		m := c.machineNamed("again-1")
		return m != nil && len(m.GPUs) == 2 && m.GPUs[gpu].Owner != nil && m.GPUs[gpu].Owner.Job == "again/train"
	}
	was := until(t, f, "the job's first pod", func(c *Cluster) bool { return has(c, 0) })

	// The claim exists for a while after its pod was deleted, even if a new pod has the same name.
	now := int64(0)
	require.NoError(t, w.Client.CoreV1().Pods(first.Namespace).Delete(t.Context(), first.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	w.pod(object, "again-1", 1)
	c := until(t, f, "its second pod", func(c *Cluster) bool { return has(c, 1) && !has(c, 0) })
	require.NotNil(t, c.machineNamed("again-1").GPUs[0].Owner, "the first claim is still there")
	assert.Empty(t, c.machineNamed("again-1").GPUs[0].Owner.Job)
	w.remove(first)

	w.forget(object)
	until(t, f, "no such job", func(c *Cluster) bool { return c.jobNamed("again/train") == nil })
	w.job("again", "train")
	c = until(t, f, "another job of that name", func(c *Cluster) bool { return c.jobNamed("again/train") != nil && has(c, 1) })
	assert.NotEqual(t, was.jobNamed("again/train").UID, c.jobNamed("again/train").UID)
	assert.Equal(t, c.jobNamed("again/train").UID, c.machineNamed("again-1").GPUs[1].Owner.JobUID)
	n := 0
	for _, j := range c.Jobs {
		if j.Title() == "again/train" {
			n++
		}
	}
	assert.Equal(t, 1, n)
}

func TestAnAPIServerThatIsAwayLeavesTheLastModelWithItsAge(t *testing.T) {
	w := newWorld(t)
	h, err := jobtest.Handler(w.Config, nil)
	require.NoError(t, err)
	d := newDoor(t, h)
	f := followed(t, through(t, d.address, ""))
	w.node("away-1", condition(corev1.ConditionTrue, "", ""))
	object := w.job("away", "train")
	until(t, f, "all is current", func(c *Cluster) bool {
		return c.machineNamed("away-1") != nil && c.jobNamed("away/train") != nil && c.sourceNamed(SourceAPI).State == StateCurrent && c.sourceNamed(SourceJobs).State == StateCurrent
	})
	before := time.Now()
	d.shut()
	c := until(t, f, "stale sources", func(c *Cluster) bool {
		return c.sourceNamed(SourceAPI).State == StateStale && c.sourceNamed(SourceJobs).State == StateStale
	})
	api := c.sourceNamed(SourceAPI)
	assert.Contains(t, api.Message, "does not answer")
	assert.NotEmpty(t, api.Hint)
	assert.WithinDuration(t, before, api.Since, 6*time.Second)
	assert.NotNil(t, c.machineNamed("away-1"), "what was known stays")
	scheduler := f.asker(SourceScheduler)
	scheduler.kick()
	require.Eventually(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return scheduler.asked.After(before)
	}, 30*time.Second, 20*time.Millisecond, "the scheduler is asked in vain")
	f.publish()
	assert.Equal(t, StateAbsent, f.Current().sourceNamed(SourceScheduler).State, "it was never installed, and nobody says anything else")
	assert.Equal(t, LevelCritical, c.Verdict.Level)
	require.Len(t, c.Verdict.Problems, 1, "%+v", c.Verdict.Problems)

	// The follower gets the changes of that time later, including removals.
	w.forget(object)
	w.job("away", "other")
	w.node("away-1", condition(corev1.ConditionFalse, "KubeletNotReady", "container runtime is down"))
	// A newly started API server rejects all requests until it has read its roles.
	var refused atomic.Int32
	starting := http.Handler(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if refused.Add(1) > 15 {
			h.ServeHTTP(out, r)
			return
		}
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(http.StatusForbidden)
		_, _ = out.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"nodes is forbidden","reason":"Forbidden","code":403}`))
	}))
	d.handler.Store(&starting)
	d.open()
	c = until(t, f, "all is current again", func(c *Cluster) bool {
		for _, name := range []string{SourceAPI, SourceJobs} {
			assert.False(t, c.sourceNamed(name).Refused, c.sourceNamed(name).Message)
		}
		return c.sourceNamed(SourceAPI).State == StateCurrent && c.sourceNamed(SourceJobs).State == StateCurrent && c.jobNamed("away/other") != nil && c.machineNamed("away-1").Message != ""
	})
	assert.Nil(t, c.jobNamed("away/train"))
	assert.Equal(t, "kubelet not ready: container runtime is down", c.machineNamed("away-1").Message)
}

// An API server may discard unread changes of a watch, and may end watches at any time.
func TestWhatWatchesMissedIsListed(t *testing.T) {
	w := newWorld(t)
	h, err := jobtest.Handler(w.Config, nil)
	require.NoError(t, err)
	var mu sync.Mutex
	var cut []context.CancelFunc
	expired := false
	d := newDoor(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			h.ServeHTTP(rw, r)
			return
		}
		mu.Lock()
		ctx, cancel := context.WithCancel(r.Context())
		cut = append(cut, cancel)
		gone := expired
		mu.Unlock()
		if gone {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusGone)
			_ = json.NewEncoder(rw).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone,
				Message: "too old resource version: 1 (2)"})
			return
		}
		h.ServeHTTP(rw, r.WithContext(ctx))
	}))
	f := followed(t, through(t, d.address, ""))
	w.node("lost-1", condition(corev1.ConditionTrue, "", ""))
	until(t, f, "a machine", func(c *Cluster) bool { return c.machineNamed("lost-1") != nil })
	mu.Lock()
	expired = true
	for _, c := range cut {
		c()
	}
	mu.Unlock()
	require.NoError(t, w.Client.CoreV1().Nodes().Delete(t.Context(), "lost-1", metav1.DeleteOptions{}))
	w.node("lost-2", condition(corev1.ConditionTrue, "", ""))
	until(t, f, "what only a list tells", func(c *Cluster) bool { return c.machineNamed("lost-2") != nil && c.machineNamed("lost-1") == nil })
	mu.Lock()
	expired = false
	mu.Unlock()
	until(t, f, "it is current again", func(c *Cluster) bool { return c.sourceNamed(SourceAPI).State == StateCurrent })
}

func TestPeopleWithFewRightsSeeWhatTheyMay(t *testing.T) {
	w := newWorld(t)
	h, err := jobtest.Handler(w.Config, nil)
	require.NoError(t, err)
	d := newDoor(t, h)
	rbac := w.Client.RbacV1()
	t.Cleanup(func() {
		_ = rbac.Roles(kube.JobNamespace).Delete(context.WithoutCancel(t.Context()), "status-few", metav1.DeleteOptions{})
		_ = rbac.RoleBindings(kube.JobNamespace).Delete(context.WithoutCancel(t.Context()), "status-few", metav1.DeleteOptions{})
	})
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "status-few"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"frameworkcontroller.microsoft.com"}, Resources: []string{"frameworks"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods", "events"}, Verbs: []string{"get", "list", "watch"}}}}
	_, err = rbac.Roles(kube.JobNamespace).Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = rbac.RoleBindings(kube.JobNamespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "status-few"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "few", APIGroup: "rbac.authorization.k8s.io"}}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "status-few", APIGroup: "rbac.authorization.k8s.io"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	object := w.job("few", "train")
	jobtest.SetStatus(t, w.Cluster, object, preparing())
	w.pod(object, "few-1", 0)
	w.node("few-1", condition(corev1.ConditionTrue, "", ""))

	until(t, followed(t, through(t, d.address, "few")), "the job, and what may not be read", func(c *Cluster) bool {
		api := c.sourceNamed(SourceAPI)
		j := c.jobNamed("few/train")
		return j != nil && j.State == string(job.Starting) && c.sourceNamed(SourceJobs).State == StateCurrent && api.State == StateFailed && api.Refused
	})
	c, err := once(t, through(t, d.address, "few"))
	require.NoError(t, err)
	api := c.sourceNamed(SourceAPI)
	assert.Equal(t, "you may not read nodes, resourceslices, resourceclaims", api.Message)
	assert.Contains(t, api.Hint, "administrator")
	assert.Equal(t, StateFailed, c.sourceNamed(SourceServices).State)
	assert.NotEmpty(t, c.sourceNamed(SourceServices).Hint)
	assert.Equal(t, LevelUnknown, c.Verdict.Level)
	assert.NotNil(t, c.jobNamed("few/train"))

	stranger, err := once(t, through(t, d.address, "stranger"))
	require.NoError(t, err)
	assert.Equal(t, StateFailed, stranger.sourceNamed(SourceJobs).State)
	assert.Empty(t, stranger.Jobs)
}

// once returns the model of a cluster after all sources have responded, however slow the machine is.
func once(t *testing.T, c *kube.Cluster) (*Cluster, error) {
	t.Helper()
	o := options(t, c)
	o.Patience = time.Hour
	f, err := New(c, o)
	require.NoError(t, err)
	return f.Once(t.Context())
}

func TestOnceSaysWhyNothingIsKnown(t *testing.T) {
	d := newDoor(t, http.NotFoundHandler())
	d.shut()
	c, err := once(t, through(t, d.address, ""))
	require.ErrorContains(t, err, "does not answer")
	assert.Equal(t, StateFailed, c.sourceNamed(SourceAPI).State)
	assert.Equal(t, LevelCritical, c.Verdict.Level)
}

// A web server or a load balancer at the address responds to each request with 404.
func TestAServerThatIsNoAPIServerIsNotHealthy(t *testing.T) {
	d := newDoor(t, http.NotFoundHandler())
	c, err := once(t, through(t, d.address, ""))
	require.ErrorContains(t, err, "http://"+d.address+" answers, but not as the API server of a Kubernetes cluster")
	assert.NotEmpty(t, hint.Of(err))
	assert.Equal(t, StateFailed, c.sourceNamed(SourceAPI).State)
	assert.Equal(t, LevelCritical, c.Verdict.Level)
}

// An API server that accepts connections but doesn't respond counts as silent, even if the deadline expires before the client
// returns an error.
func TestOnceSaysThatAServerHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c := through(t, l.Addr().String(), "")
	o := options(t, c)
	o.Patience = time.Millisecond
	f, err := New(c, o)
	require.NoError(t, err)
	_, err = f.Once(t.Context())
	require.ErrorContains(t, err, "has not answered in 1ms")
}

func platformed(t *testing.T, w *world) jobtest.Services {
	t.Helper()
	return jobtest.Services{
		"scheduler": http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == schedulerapi.PathQueue {
				_, _ = rw.Write([]byte(`{"items":[{"position":1,"positionInVC":1,"vc":"default","group":"web~train/default","state":"Waiting","gpus":8,"pods":1,"reason":"it asks for 8 GPUs, and 2 are free","since":"2026-01-01T00:00:00Z","priority":0}]}`))
				return
			}
			_, _ = rw.Write([]byte(`{"generation":1,"items":[{"name":"default","policy":"in-order","guaranteed":16,"used":8,"opportunistic":0,"free":6,"bad":2,"fragmentation":0,"waitingGangs":1,"waitingPods":1}],"deleted":[{"name":"old","policy":"in-order"}]}`))
		}),
		servicePrometheus: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("query") == queryUse {
				_, _ = rw.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[` +
					`{"metric":{"__name__":"DCGM_FI_DEV_GPU_UTIL","gpu":"1","node":"web-1"},"value":[1767225600.5,"87"]},` +
					`{"metric":{"__name__":"DCGM_FI_DEV_FB_USED","gpu":"1","node":"web-1"},"value":[1767225600.5,"40000"]},` +
					`{"metric":{"__name__":"DCGM_FI_DEV_GPU_TEMP","gpu":"x","node":"web-1"},"value":[1767225600.5,"1"]}]}}`))
				return
			}
			_, _ = rw.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"name":"web-1"},"value":[1767225600,"1798761600"]}]}}`))
		}),
		serviceAlerts: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = rw.Write([]byte(`[{"labels":{"alertname":"Heartbeat","severity":"info"},"annotations":{},"startsAt":"2026-01-01T00:00:00Z","status":{"silencedBy":[]}},` +
				`{"labels":{"alertname":"GpuHot","severity":"warning"},"annotations":{"summary":"hot"},"startsAt":"2026-01-01T00:00:00Z","status":{"silencedBy":["x"]}},` +
				`{"labels":{"alertname":"NodeDown","severity":"critical"},"annotations":{"summary":"down","runbook_url":"https://r"},"startsAt":"2026-01-01T00:00:00Z","status":{"silencedBy":[]}}]`))
		}),
	}
}

func TestTheSchedulerPrometheusAndAlertmanagerAreAsked(t *testing.T) {
	w := newWorld(t)
	h, err := jobtest.Handler(w.Config, platformed(t, w))
	require.NoError(t, err)
	d := newDoor(t, h)
	w.node("web-1", condition(corev1.ConditionTrue, "", ""))
	w.slice("web-1", 2)
	object := w.job("web", "train")
	jobtest.SetStatus(t, w.Cluster, object, preparing())
	f := followed(t, through(t, d.address, ""))
	c := until(t, f, "all three", func(c *Cluster) bool {
		m, j := c.machineNamed("web-1"), c.jobNamed("web/train")
		return m != nil && len(m.GPUs) == 2 && m.GPUs[1].Use != nil && len(c.Alerts) == 2 && len(c.VirtualClusters) == 2 && j != nil && j.Position == 1
	})
	m := c.machineNamed("web-1")
	assert.Equal(t, Use{At: time.Date(2026, 1, 1, 0, 0, 0, 500_000_000, time.UTC), Utilisation: 87, MemoryUsed: 40000}, *m.GPUs[1].Use)
	assert.Nil(t, m.GPUs[0].Use)
	assert.Equal(t, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), m.Certificates)
	assert.Equal(t, "NodeDown", c.Alerts[0].Name)
	assert.True(t, c.Alerts[1].Silenced)
	assert.Equal(t, 1, c.Counts.Alerts)
	assert.Equal(t, string(job.Queued), c.jobNamed("web/train").State)
	assert.Equal(t, "it asks for 8 GPUs, and 2 are free", c.jobNamed("web/train").Why)
	assert.Equal(t, "web/train", c.VirtualClusters[0].Queue[0].Job)
	assert.True(t, c.VirtualClusters[1].Deleted)
	for _, s := range []string{SourceScheduler, SourcePrometheus, SourceAlerts} {
		assert.Equal(t, StateCurrent, c.sourceNamed(s).State, s)
	}
	h, err = jobtest.Handler(w.Config, nil)
	require.NoError(t, err)
	d.handler.Store(&h) // the service is gone
	c = until(t, f, "nothing is measured", func(c *Cluster) bool { return c.machineNamed("web-1").GPUs[1].Use == nil && len(c.Alerts) == 0 })
	assert.Equal(t, StateAbsent, c.sourceNamed(SourcePrometheus).State)
}

func TestAChangeOfOneJobMakesOneRow(t *testing.T) {
	w := newWorld(t)
	f := followed(t, w.Cluster)
	w.job("one", "a")
	w.job("one", "b")
	was := until(t, f, "two jobs", func(c *Cluster) bool { return c.jobNamed("one/a") != nil && c.jobNamed("one/b") != nil })
	jobtest.SetStatus(t, w.Cluster, v1.ObjectName("one", "b"), preparing())
	w.pod(v1.ObjectName("one", "b"), "one-1", 0)
	c := until(t, f, "one changed", func(c *Cluster) bool { return c.jobNamed("one/b").State == string(job.Starting) })
	assert.Same(t, was.jobNamed("one/a"), c.jobNamed("one/a"))
	assert.NotSame(t, was.jobNamed("one/b"), c.jobNamed("one/b"))
	assert.Equal(t, string(job.Waiting), was.jobNamed("one/b").State, "an earlier model never changes")
}
