package job

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/jobtest"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/gangs"
)

// twoTeams is the configuration of two machines with two GPUs each. One machine belongs to the virtual cluster speech, the other to vision.
const twoTeams = `physicalCluster:
  cellTypes:
    NODE: {childCellType: G, childCellNumber: 2, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: gpu-1}
    - {cellType: NODE, cellAddress: gpu-2}
virtualClusters:
  speech:
    virtualCells: [{cellType: NODE, cellNumber: 1}]
  vision:
    virtualCells: [{cellType: NODE, cellNumber: 1}]
`

// gpuScheduler is the core of pai-scheduler without kube-scheduler. It uses a real API server.
type gpuScheduler struct {
	t       *testing.T
	cluster *kube.Cluster
	api     http.Handler
}

// noQueue replaces the queue of kube-scheduler. It never binds a pod.
type noQueue struct{}

func (noQueue) Activate([]*corev1.Pod)     {}
func (noQueue) Reject([]types.UID, string) {}

func startScheduler(t *testing.T, cluster *kube.Cluster) *gpuScheduler {
	t.Helper()
	core := cluster.Client.CoreV1()
	for _, name := range []string{"gpu-1", "gpu-2"} {
		n, err := core.Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		n.Spec.Taints = nil // no controller does it
		n, err = core.Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
		require.NoError(t, err)
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		_, err = core.Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	_, err := core.ConfigMaps(kube.SystemNamespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "scheduler-configuration"},
		Data: map[string]string{"hivedscheduler.yaml": twoTeams}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { // others use this server, too
		ctx := context.WithoutCancel(t.Context())
		_ = core.ConfigMaps(kube.SystemNamespace).Delete(ctx, "scheduler-configuration", metav1.DeleteOptions{})
		_ = core.Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	shared := informers.NewSharedInformerFactory(cluster.Client, 0)
	b := gangs.New(cluster.Client, shared, noQueue{}, gangs.Options{Namespace: kube.SystemNamespace, ConfigMap: "scheduler-configuration", ConfigKey: "hivedscheduler.yaml"},
		slog.New(slog.DiscardHandler), &record.FakeRecorder{}, time.Now)
	shared.Start(ctx.Done())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended; shared.Shutdown() })
	return &gpuScheduler{t, cluster, b.API()}
}

// pod creates one pod of a gang, as the job controller does.
func (s *gpuScheduler) pod(name, vc string, priority int, group string, pods, gpus int) {
	s.t.Helper()
	request := fmt.Sprintf("virtualCluster: %s\npriority: %d\nleafCellType: G\nleafCellNumber: %d\naffinityGroup:\n  name: %s\n  members: [{podNumber: %d, leafCellNumber: %d}]\n", vc, priority, gpus, group, pods, gpus)
	var gates []corev1.PodSchedulingGate
	if vc == "speech" { // they wait, though there is room
		gates = []corev1.PodSchedulingGate{{Name: "example.org/later"}}
	}
	_, err := s.cluster.Client.CoreV1().Pods(kube.JobNamespace).Create(s.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotation.SpecKey: request}},
		Spec: corev1.PodSpec{AutomountServiceAccountToken: new(false), SchedulingGates: gates, Containers: []corev1.Container{{Name: "app", Image: "i",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{annotation.EnableKey: resource.MustParse("1")}}}}}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		now := int64(0)
		_ = s.cluster.Client.CoreV1().Pods(kube.JobNamespace).Delete(context.WithoutCancel(s.t.Context()), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	})
}

// decided waits until a gang is in the given state. If the state is waiting, it also checks that there is a reason.
func (s *gpuScheduler) decided(group, state string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		w := httptest.NewRecorder()
		s.api.ServeHTTP(w, httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, schedulerapi.PathWhy+group, nil))
		var why schedulerapi.Why
		return w.Code == http.StatusOK && json.Unmarshal(w.Body.Bytes(), &why) == nil && why.State == state && (state != schedulerapi.Waiting || why.Pods[0].Reason != "")
	}, time.Minute, 20*time.Millisecond, group)
}

func TestTheQueueIsThatOfTheScheduler(t *testing.T) {
	cluster := kubetest.Start(t)
	jobtest.Prepare(t, cluster)
	s := startScheduler(t, cluster)
	kubeconfig := jobtest.Front(t, cluster, jobtest.Services{"scheduler": s.api})
	run := func(args ...string) (string, string, error) {
		return paictl(t, nil, append([]string{"queue", "--kubeconfig", kubeconfig}, args...)...)
	}
	s.pod("runs", "vision", 500, "ann~runs/default", 1, 2)
	s.decided("ann~runs/default", schedulerapi.Binding) // it has all of vision
	for i, w := range []struct {
		vc, group string
		priority  int
		gpus      int
	}{
		{"vision", "ann~first/default", 10, 2}, {"speech", "bob~two/ps", 10, 2}, {"vision", "carol~urgent/default", 100, 2},
		{"speech", "bob~two/worker", 10, 2}, {"vision", "dan~odd/default", 42, 1}, {"vision", "eve~later/default", 10, 1},
	} {
		s.pod(fmt.Sprint("waits-", i), w.vc, w.priority, w.group, 1, w.gpus)
	}
	object := v1.ObjectName("fay", "alone")
	s.pod(object+"-worker-0", "speech", -1, "jobs/"+object+"-worker-0", 1, 1)
	s.decided("ann~first/default", schedulerapi.Waiting)
	s.decided("bob~two/ps", schedulerapi.Waiting)

	var said schedulerapi.Queue
	require.Eventually(t, func() bool { // its watch sends it the pods
		w := httptest.NewRecorder()
		s.api.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, schedulerapi.PathQueue, nil))
		said = schedulerapi.Queue{}
		return json.Unmarshal(w.Body.Bytes(), &said) == nil && len(said.Items) == 7 &&
			!slices.ContainsFunc(said.Items, func(q schedulerapi.Queued) bool { return q.Reason == "" })
	}, time.Minute, 20*time.Millisecond, "it has looked at all pods")
	out, _, err := run("-o", "json")
	require.NoError(t, err)
	var got job.WaitingList
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Len(t, got.Items, len(said.Items))
	for i := range said.Items {
		assert.Equal(t, said.Items[i], got.Items[i].Queued)
	}

	out, _, err = run()
	require.NoError(t, err)
	var rows []string
	for line := range strings.Lines(out) {
		rows = append(rows, strings.Join(strings.Fields(line)[:6], " "))
	}
	assert.Equal(t, []string{
		"JOB VC POSITION PRIORITY GPUS PODS",
		"bob/two (ps) speech 1 test 2",
		"bob/two (worker) speech 2 test 2",
		"jobs/" + object + "-worker-0 speech 3 oppo 1 1",
		"carol/urgent vision 1 prod 2 1",
		"dan/odd vision 2 42 1 1",
		"ann/first vision 3 test 2 1",
		"eve/later vision 4 test 1 1",
	}, rows)
	assert.Regexp(t, `(?m)^bob/two \(ps\) .* the gang waits for the scheduling gates of 1 pod`, out)
	assert.Regexp(t, `(?m)^ann/first .* virtual cluster vision has 0 GPUs for priority 10`, out)

	out, _, err = run("--vc", "vision", "-o", "name")
	require.NoError(t, err)
	assert.Equal(t, "carol/urgent\ndan/odd\nann/first\neve/later\n", out)
	out, _, err = run("-o", "name")
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(out, "bob/two"), "a job of two gangs is one")
	_, _, err = run("--vc", "visoin")
	require.EqualError(t, err, `there is no virtual cluster "visoin"`)
	assert.Equal(t, "there are: speech, vision", hint.Of(err))
}
