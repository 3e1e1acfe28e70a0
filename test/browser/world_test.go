package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/job/jobtest"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// world is a server with simulated jobs, whose tasks run no programs.
type world struct {
	*servertest.Server
	t       *testing.T
	cluster *kube.Cluster
	tokens  map[string]string
	// lines delivers the lines that are sent to all clients that follow a log.
	lines chan string
	// away makes all requests fail.
	away atomic.Bool
	// files runs the job runtime in the folder of a task. If it is nil, the tasks have no files.
	files func(*jobtest.Process) *metav1.Status
	// onMachine holds the number of GPUs of each machine that pods use.
	onMachine map[string]int32
}

func newWorld(t *testing.T, change ...func(*servertest.Options)) *world {
	t.Helper()
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	// In these tests, the virtual clusters own more GPUs than in the tests of other packages.
	larger, err := json.Marshal(map[string]any{"data": map[string]string{"hivedscheduler.yaml": strings.Replace(servertest.Teams, "childCellNumber: 2", "childCellNumber: 64", 1)}})
	require.NoError(t, err)
	_, err = c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Patch(t.Context(), "scheduler-configuration", types.MergePatchType, larger, metav1.PatchOptions{})
	require.NoError(t, err)
	w := &world{t: t, cluster: c, tokens: map[string]string{}, lines: make(chan string), onMachine: map[string]int32{}}
	w.empty()
	proxied, err := jobtest.Handler(c.Config, nil)
	require.NoError(t, err)
	front := httptest.NewServer((&jobtest.Kubelet{Exec: w.exec}).Before(w.kubelet(proxied)))
	t.Cleanup(front.Close)
	o := servertest.Options{API: func(config *rest.Config) { *config = rest.Config{Host: front.URL, QPS: 200, Burst: 400} }, Scheduler: scheduler()}
	for _, f := range change {
		f(&o)
	}
	w.Server = servertest.Start(t, c, o)
	server := w.TLS.Config.Handler
	w.TLS.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if w.away.Load() {
			panic(http.ErrAbortHandler)
		}
		server.ServeHTTP(out, r)
	})
	w.Group("speech", func(g *v1.GroupSpec) { g.VirtualClusters = []v1.VCGrant{{Name: "speech", SeeJobs: true}} })
	w.Group("vision", func(g *v1.GroupSpec) { g.VirtualClusters = []v1.VCGrant{{Name: "vision"}} })
	for name, groups := range map[string][]string{"ann": {"speech", "vision"}, "bob": {"speech"}, "vic": {"vision"}} {
		w.Person(name, groups...)
		w.tokens[name] = w.SignIn(name)
	}
	return w
}

// exec runs a command in a task. The command is either the job runtime or a shell.
func (w *world) exec(p *jobtest.Process) *metav1.Status {
	if c := servertest.RuntimeCommand(p); len(c) > 0 && strings.HasPrefix(c[0], "cp-") && w.files != nil {
		return w.files(p)
	}
	return shell(p)
}

// empty removes the jobs and templates that other tests have created.
func (w *world) empty() {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.cluster.Config)
	require.NoError(w.t, err)
	jobs, now := client.Resource(fv1.Resource).Namespace(kube.JobNamespace), int64(0)
	require.NoError(w.t, jobs.DeleteCollection(w.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	left, err := jobs.List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	for i := range left.Items { // no controller runs here that would remove the finalizers
		_, err := jobs.Patch(w.t.Context(), left.Items[i].GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			require.NoError(w.t, err)
		}
	}
	require.NoError(w.t, client.Resource(v1.Templates).DeleteCollection(w.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(w.t, w.cluster.Client.CoreV1().Pods(kube.JobNamespace).DeleteCollection(w.t.Context(), metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}))
	claims := w.cluster.Client.ResourceV1().ResourceClaims(kube.JobNamespace)
	require.NoError(w.t, claims.DeleteCollection(w.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	held, err := claims.List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	for i := range held.Items { // as above
		_, err := claims.Patch(w.t.Context(), held.Items[i].Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			require.NoError(w.t, err)
		}
	}
}

// letGo removes the finalizers of a job when the job is being deleted. No job controller runs here that would do so.
func (w *world) letGo(user, name string) {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.cluster.Config)
	require.NoError(w.t, err)
	jobs, object := client.Resource(fv1.Resource).Namespace(kube.JobNamespace), fv1.ObjectName(user, name)
	w.Eventually(name+" is being deleted", func() bool {
		f, err := jobs.Get(w.t.Context(), object, metav1.GetOptions{})
		require.NoError(w.t, err)
		return f.GetDeletionTimestamp() != nil
	})
	_, err = jobs.Patch(w.t.Context(), object, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// kubelet serves the log of a pod in place of the API server and the kubelet. It passes on other requests.
func (w *world) kubelet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			next.ServeHTTP(out, r)
			return
		}
		begun := time.Now().Add(-time.Hour)
		write := func(i int, text string) {
			stamp := ""
			if r.URL.Query().Get("timestamps") == "true" {
				stamp = begun.Add(time.Duration(i)*time.Second).UTC().Format(time.RFC3339Nano) + " "
			}
			_, _ = fmt.Fprintf(out, "%s%s\n", stamp, text)
		}
		for i, text := range training() {
			write(i, text)
		}
		if r.URL.Query().Get("follow") != "true" {
			return
		}
		for i := len(training()); ; i++ {
			_ = http.NewResponseController(out).Flush()
			select {
			case text, open := <-w.lines:
				if !open {
					return
				}
				write(i, text)
			case <-r.Context().Done():
				return
			}
		}
	})
}

// training returns the log of a program that trains a model.
func training() []string {
	out := []string{"\x1b[32mINFO\x1b[0m loading 1281167 images from /data/imagenet", "\x1b[33mWARN\x1b[0m 4 workers for 8 GPUs: data loading may be slow", "INFO <b>not bold</b> <script>alert(1)</script>"}
	for i := range 180 {
		out = append(out, fmt.Sprintf("epoch %2d step %5d  loss %.4f  lr 3.0e-04  throughput %d img/s", i/60, i*100, 6.9/(1+float64(i)/20), 11800+i%7*31))
	}
	return out
}

// scheduler responds in place of pai-scheduler.
func scheduler() http.Handler {
	answers := map[string]any{
		"/v1/virtualclusters": api.VirtualClusters{Items: []api.VirtualCluster{
			{Name: "speech", Cells: []api.Cells{{CellType: "g-NODE", CellNumber: 8}}, Quota: &api.Quota{PerUser: 32}, Guaranteed: 64, Used: 40, Free: 22, Bad: 2, WaitingGangs: 3, WaitingPods: 9, FreeByLevel: []cell.LevelCount{{CellType: "NODE", Count: 2, GPUs: 8}, {CellType: "G", Count: 6, GPUs: 1}}},
			{Name: "vision", Cells: []api.Cells{{CellType: "g-NODE", CellNumber: 4}}, Guaranteed: 32, Used: 32, WaitingGangs: 1, Opportunistic: 4, FreeByLevel: []cell.LevelCount{{CellType: "NODE", Count: 0, GPUs: 8}}},
		}},
		"/v1/queue": api.Queue{Total: 2, Items: []api.Queued{
			{Position: 1, PositionInVC: 1, VC: "speech", Group: "ann~eval-librispeech/worker", User: "ann", Request: api.Request{GPUs: 8}, Pods: 1, State: "Waiting", Reason: "8 free GPUs of one machine are missing", Since: time.Now().Add(-20 * time.Minute)},
			{Position: 2, PositionInVC: 1, VC: "vision", Group: "vic~segment/worker", User: "vic", Request: api.Request{GPUs: 16}, Pods: 2, State: "Waiting", Reason: "vision holds all of its 32 GPUs", Since: time.Now().Add(-5 * time.Minute)},
		}},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case api.PathValidate:
			judge(w, r)
			return
		case api.PathOutlook:
			outlook(w, r)
			return
		}
		if answers[r.URL.Path] == nil {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(answers[r.URL.Path])
	})
}

// outlook responds with recorded predictions of a scheduler. It predicts that gangs with one task start.
func outlook(w http.ResponseWriter, r *http.Request) {
	var q api.OutlookQuery
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(q.Pods) != 1 {
		http.Error(w, "no question", http.StatusBadRequest)
		return
	}
	out := api.NewGang{VC: "speech", Count: 1, Starting: 1, Pods: 1, Result: api.Starts, Nodes: []string{"gpu-1"}, Largest: &cell.Smaller{Pods: 6, GPUsPerPod: 1}}
	if n := q.Pods[0].Count; n > 1 {
		out = api.NewGang{VC: "speech", Count: 1, Pods: n, Result: api.Waits, Code: cell.NoCapacity, PositionInVC: 3, QueueInVC: 5, Largest: &cell.Smaller{Pods: 6, GPUsPerPod: 1},
			Reason: "Virtual cluster speech has 6 of 64 GPUs free for jobs of priority 10, but the gang requests 7."}
	}
	_ = json.NewEncoder(w).Encode(api.Outlook{Gangs: []api.NewGang{out}})
}

// submit submits a job with one role, which has the given number of tasks.
func (w *world) submit(user, name, vc string, tasks int) {
	w.t.Helper()
	file := strings.Replace(servertest.JobFile(name, vc), "instances: 1", fmt.Sprintf("instances: %d", tasks), 1)
	a := w.Do("POST", "/api/v2/jobs", w.tokens[user], file, "Content-Type", "text/yaml")
	require.Equal(w.t, http.StatusAccepted, a.Status, a.Body)
}

// run makes the tasks of a job running.
func (w *world) run(user, name string) { w.status(user, name, fv1.AttemptRunning, nil) }

// finish makes all tasks of a job finished.
func (w *world) finish(user, name string, code int32, phrase, diagnostics string) {
	kind := fv1.CompletionTypeName("Succeeded")
	if code != 0 {
		kind = "Failed"
	}
	w.status(user, name, fv1.Completed, &fv1.CompletionStatus{Code: code, Phrase: phrase, Type: fv1.CompletionType{Name: kind, Attributes: []fv1.CompletionTypeAttribute{}}, Diagnostics: diagnostics})
}

func (w *world) status(user, name string, state fv1.State, end *fv1.CompletionStatus) {
	w.t.Helper()
	object := fv1.ObjectName(user, name)
	f := jobtest.Framework(w.t, w.cluster, object)
	begun := metav1.NewTime(time.Now().Add(-42 * time.Minute).Truncate(time.Second))
	role := f.Spec.TaskRoles[0]
	var ended *metav1.Time
	if end != nil {
		at := metav1.NewTime(time.Now().Add(-3 * time.Minute).Truncate(time.Second))
		ended = &at
	}
	r := &fv1.TaskRoleStatus{Name: role.Name, Counts: fv1.TaskCounts{Total: role.TaskNumber, Running: role.TaskNumber}}
	for i := range role.TaskNumber {
		pod, node := fv1.PodName(object, role.Name, i), fmt.Sprintf("gpu-%d", i%2+1)
		ip := fmt.Sprintf("10.2.%d.%d", i/200, 10+i%200)
		a := fv1.TaskAttemptStatus{StartTime: begun, RunTime: &begun, CompletionTime: ended, PodName: pod, PodNodeName: &node, PodIP: &ip}
		if end != nil {
			a.CompletionStatus = &fv1.TaskAttemptCompletionStatus{CompletionStatus: end}
		} else {
			w.pod(object, role.Name, pod, node, i)
		}
		r.TaskStatuses = append(r.TaskStatuses, &fv1.TaskStatus{Index: i, StartTime: begun, RunTime: &begun, CompletionTime: ended, State: state, TransitionTime: begun, AttemptStatus: a})
	}
	s := &fv1.FrameworkStatus{StartTime: begun, RunTime: &begun, CompletionTime: ended, State: state, TransitionTime: begun,
		AttemptStatus: fv1.FrameworkAttemptStatus{StartTime: begun, RunTime: &begun, PeersTime: &begun, CompletionTime: ended, TaskRoleStatuses: []*fv1.TaskRoleStatus{r}}}
	if end != nil {
		index := int32(0)
		s.AttemptStatus.CompletionStatus = &fv1.FrameworkAttemptCompletionStatus{CompletionStatus: end, Trigger: &fv1.CompletionTrigger{Message: end.Diagnostics, TaskRoleName: role.Name, TaskIndex: &index}}
	}
	jobtest.SetStatus(w.t, w.cluster, object, s)
}

// pod creates a running pod.
func (w *world) pod(object, role, name, node string, index int32) {
	w.t.Helper()
	pods := w.cluster.Client.CoreV1().Pods(kube.JobNamespace)
	made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{fv1.LabelFramework: object, fv1.LabelTaskRole: role, fv1.LabelTaskIndex: fmt.Sprint(index)}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app", Image: "i"}}}}
	gpu := w.onMachine[node]
	if gpu < gpusOfMachine {
		claim.Expect(made, func(*corev1.Container) bool { return true })
		w.onMachine[node]++
	}
	p, err := pods.Create(w.t.Context(), made, metav1.CreateOptions{})
	require.NoError(w.t, err)
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
	_, err = pods.UpdateStatus(w.t.Context(), p, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	if gpu == gpusOfMachine {
		return
	}
	claims := w.cluster.Client.ResourceV1().ResourceClaims(kube.JobNamespace)
	c, err := claims.Create(w.t.Context(), claim.New(p, 1), metav1.CreateOptions{})
	require.NoError(w.t, err)
	c.Status = claim.Status(p, claim.Place{Node: node, Indices: []int32{gpu}, Details: []byte(`{}`)}, metav1.Now())
	_, err = claims.UpdateStatus(w.t.Context(), c, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

// gpusOfMachine is the number of GPUs of each machine.
const gpusOfMachine = 8

// machines creates n machines with GPUs, gpu-1 and so on. The last machine isn't ready.
func (w *world) machines(n int) {
	w.t.Helper()
	config := rest.CopyConfig(w.cluster.Config)
	config.QPS = -1 // a test makes many
	client, err := kubernetes.NewForConfig(config)
	require.NoError(w.t, err)
	nodes, slices := client.CoreV1().Nodes(), client.ResourceV1().ResourceSlices()
	for i := range n {
		name := fmt.Sprintf("gpu-%d", i+1)
		remove := func() {
			ctx := context.WithoutCancel(w.t.Context())
			_ = nodes.Delete(ctx, name, metav1.DeleteOptions{})
			_ = slices.Delete(ctx, name+"-gpus", metav1.DeleteOptions{})
		}
		remove() // servertest has a machine of this name
		w.t.Cleanup(remove)
		node, err := nodes.Create(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pai-worker": "true"}}}, metav1.CreateOptions{})
		require.NoError(w.t, err)
		ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: metav1.NewTime(time.Now().Add(-50 * time.Hour))}
		if i == n-1 {
			ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "KubeletNotReady", "container runtime is down"
		}
		node.Status.Conditions = []corev1.NodeCondition{ready}
		node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("1Ti")}
		node.Status.Allocatable = node.Status.Capacity
		_, err = nodes.UpdateStatus(w.t.Context(), node, metav1.UpdateOptions{})
		require.NoError(w.t, err)
		s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name + "-gpus"}, Spec: resourceapi.ResourceSliceSpec{Driver: claim.Driver, NodeName: &name, Pool: resourceapi.ResourcePool{Name: name, ResourceSliceCount: 1}}}
		for k := range int32(gpusOfMachine) {
			model, uuid := "NVIDIA A100-SXM4-80GB", fmt.Sprintf("GPU-%d-%d", i, k)
			s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: claim.DeviceName(k), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": {StringValue: &model}, "uuid": {StringValue: &uuid}}})
		}
		_, err = slices.Create(w.t.Context(), s, metav1.CreateOptions{})
		require.NoError(w.t, err)
	}
}

// fill creates the jobs of a team, in all states.
func (w *world) fill() {
	w.t.Helper()
	w.machines(14)
	for i := range 60 {
		user, vc := []string{"ann", "bob", "vic"}[i%3], "speech"
		if user == "vic" {
			vc = "vision"
		}
		w.Ended(user, vc, fmt.Sprintf("sweep-%03d", i), time.Now().Add(-time.Duration(i+2)*7*time.Hour))
	}
	w.submit("ann", "wav2vec-large-960h", "speech", 8)
	w.run("ann", "wav2vec-large-960h")
	w.submit("ann", "whisper-finetune", "speech", 1)
	w.finish("ann", "whisper-finetune", 137, "ContainerOOMKilled", "Container app was killed because it used more memory than its limit of 64 MiB")
	w.submit("bob", "conformer-s", "speech", 4)
	w.run("bob", "conformer-s")
	w.submit("bob", "tokenize", "speech", 1)
	w.finish("bob", "tokenize", 0, "Succeeded", "")
	w.submit("ann", "eval-librispeech", "speech", 1)
	w.submit("vic", "resnet-152", "vision", 2)
	w.run("vic", "resnet-152")
	w.submit("ann", "a-name-so-long-that-no-person-would-choose-it-but-programs-do-2026-11-30", "speech", 1)
}
