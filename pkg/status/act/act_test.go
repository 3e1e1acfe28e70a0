package act

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/view"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// onServer returns a cluster with a real API server and without kubelets.
func onServer(t *testing.T) *Cluster {
	t.Helper()
	c := kubetest.Start(t)
	jobtest.Prepare(t, c)
	jobs, err := job.Open(kube.Options{Kubeconfig: jobtest.Front(t, c, jobtest.Services{})})
	require.NoError(t, err)
	return &Cluster{Kube: c, Jobs: Jobs{Client: direct{jobs}}}
}

// direct is a JobClient that uses the cluster without the platform's server.
type direct struct{ *job.Client }

func (d direct) Retry(ctx context.Context, j *job.Job) (job.Phase, error) {
	return d.Client.Retry(ctx, j, job.RetryOptions{})
}

func (d direct) Logs(ctx context.Context, j *job.Job, o logs.Options, give func(logs.Line) error) error {
	return logs.Lines(ctx, d.Client, j, o, give)
}

func submit(t *testing.T, c *Cluster, user, name string) *status.Job {
	t.Helper()
	text := "protocolVersion: 2\nname: " + name + "\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: 'busybox:1'}]\n" +
		"taskRoles: {worker: {instances: 2, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}, commands: [sleep 1]}}\n"
	j, found := protocol.Parse("job.yaml", []byte(text))
	require.NoError(t, found.Err())
	o, found := render.Render(j, render.Options{User: user, Namespace: kube.JobNamespace, Cluster: render.Cluster{RuntimeImage: "pai-runtime:1"}})
	require.NoError(t, found.Err())
	_, err := c.Client.(direct).Submit(t.Context(), o, job.SubmitOptions{})
	require.NoError(t, err)
	f, err := c.Client.(direct).Frameworks.Get(t.Context(), v1.ObjectName(user, name))
	require.NoError(t, err)
	return &status.Job{Row: job.Row{Job: api.Job{User: user, Name: name, UID: string(f.UID), Framework: f.Name}, Live: true}}
}

func TestAJobIsStopped(t *testing.T) {
	c := onServer(t)
	row := submit(t, c, "act", "stop")
	require.NoError(t, c.StopJob(t.Context(), row))
	f, err := c.Client.(direct).Frameworks.Get(t.Context(), row.Framework)
	require.NoError(t, err)
	assert.Equal(t, v1.ExecutionStop, f.Spec.ExecutionType)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, c.RetryJob(ctx, row), "has not stopped within", "it waits for the end")

	d, err := c.Tasks(t.Context(), row)
	require.NoError(t, err)
	assert.Equal(t, "stop", d.Name)
	w, err := c.Why(t.Context(), row)
	require.NoError(t, err)
	assert.NotEmpty(t, w.Sentence)
}

func TestAnotherJobOfTheSameNameIsLeftAlone(t *testing.T) {
	c := onServer(t)
	row := submit(t, c, "act", "again")
	row.UID = "of-yesterday"
	err := c.StopJob(t.Context(), row)
	require.EqualError(t, err, "another job is now named act/again")
	assert.NotEmpty(t, hint.Of(err))
	f, err := c.Client.(direct).Frameworks.Get(t.Context(), row.Framework)
	require.NoError(t, err)
	assert.Equal(t, v1.ExecutionStart, f.Spec.ExecutionType)
}

func node(t *testing.T, c *Cluster, name string) {
	t.Helper()
	_, err := c.Kube.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Kube.Client.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) // the test has ended
	})
}

// pod creates a pod on a node. The pod has no grace period, so that its deletion takes effect without a kubelet.
func pod(t *testing.T, c *Cluster, name, node string, owned bool) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: new(int64), AutomountServiceAccountToken: new(bool), Containers: []corev1.Container{{Name: "app", Image: "busybox:1"}}}}
	if owned {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "frameworkcontroller.microsoft.com/v1", Kind: "Framework", Name: "x", UID: "1", Controller: &yes}}
	}
	_, err := c.Kube.Client.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}) // no controller makes it here
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), err)
	made, err := c.Kube.Client.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Kube.Client.CoreV1().Pods("default").Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) // as above
	})
	return made
}

func cordoned(t *testing.T, c *Cluster, name string) bool {
	t.Helper()
	n, err := c.Kube.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return n.Spec.Unschedulable
}

func TestAMachineIsCordonedAndUncordoned(t *testing.T) {
	c := onServer(t)
	node(t, c, "act-cordon")
	require.NoError(t, c.Cordon(t.Context(), "act-cordon"))
	assert.True(t, cordoned(t, c, "act-cordon"))
	require.NoError(t, c.Uncordon(t.Context(), "act-cordon"))
	assert.False(t, cordoned(t, c, "act-cordon"))
	require.ErrorContains(t, c.Cordon(t.Context(), "nowhere"), "nowhere")
}

func TestADrainMovesPodsAndSaysWhich(t *testing.T) {
	c := onServer(t)
	node(t, c, "act-drain")
	pod(t, c, "act-moves", "act-drain", true)
	var out bytes.Buffer
	require.NoError(t, c.Drain(t.Context(), "act-drain", &out))
	assert.True(t, cordoned(t, c, "act-drain"))
	assert.Contains(t, out.String(), "1 pod to move")
	assert.Contains(t, out.String(), "left: default/act-moves")
	assert.Contains(t, out.String(), "it stays cordoned until you uncordon it")
	_, err := c.Kube.Client.CoreV1().Pods("default").Get(t.Context(), "act-moves", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err))
}

func TestADrainLeavesPodsThatNothingMakesAgain(t *testing.T) {
	c := onServer(t)
	node(t, c, "act-alone")
	pod(t, c, "act-stays", "act-alone", false)
	err := c.Drain(t.Context(), "act-alone", &bytes.Buffer{})
	require.ErrorContains(t, err, "act-stays")
	assert.Contains(t, hint.Of(err), "drain again")
	_, err = c.Kube.Client.CoreV1().Pods("default").Get(t.Context(), "act-stays", metav1.GetOptions{})
	require.NoError(t, err)
}

func TestADrainThatIsBrokenOffEnds(t *testing.T) {
	c := onServer(t)
	node(t, c, "act-held")
	p := pod(t, c, "act-budget", "act-held", true)
	p.Status.Phase, p.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_, err := c.Kube.Client.CoreV1().Pods("default").UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
	one := intstr.FromInt32(1)
	_, err = c.Kube.Client.PolicyV1().PodDisruptionBudgets("default").Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "act-budget"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "act-budget"}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	require.Error(t, c.Drain(ctx, "act-held", &bytes.Buffer{}))
	_, err = c.Kube.Client.CoreV1().Pods("default").Get(t.Context(), "act-budget", metav1.GetOptions{})
	require.NoError(t, err, "the budget holds")
}

func TestAJournalThatCanNotBeHadSaysWhereItIs(t *testing.T) {
	c := onServer(t)
	node(t, c, "act-journal")
	err := c.MachineJournal(t.Context(), &status.Machine{Name: "act-journal", Address: "10.0.0.7"}, &bytes.Buffer{})
	require.ErrorContains(t, err, "doesn't show the journal")
	assert.Contains(t, hint.Of(err), "ssh 10.0.0.7 journalctl -f")

	c.Journal = func(_ context.Context, machine string, out io.Writer) error {
		_, err := out.Write([]byte("of " + machine + "\n"))
		return err
	}
	var out bytes.Buffer
	require.NoError(t, c.MachineJournal(t.Context(), &status.Machine{Name: "act-journal"}, &out))
	assert.Equal(t, "of act-journal\n", out.String())
}

func TestPodsSayWhatTheirContainersWaitFor(t *testing.T) {
	now := time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)
	made := metav1.NewTime(now.Add(-3 * time.Hour))
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want view.Pod
	}{
		"ready": {corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready, ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 2}}}},
			view.Pod{Node: "n", State: "Running", Ready: true, Restarts: 2}},
		"no image": {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}}},
			view.Pod{State: "ImagePullBackOff", Message: "no such image"}},
		"no place": {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes"}}}},
			view.Pod{State: "Pending", Message: "0/3 nodes"}},
		"ends":     {corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &made}, Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready}}, view.Pod{State: "Terminating", Ready: true}},
		"has done": {corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, view.Pod{State: "Succeeded", Ready: true}},
	} {
		tc.pod.CreationTimestamp = made
		tc.want.Age = "3h"
		assert.Equal(t, tc.want, podOf(&tc.pod, now), name)
	}
}

func TestARestartIsToldInLines(t *testing.T) {
	var out bytes.Buffer
	s := sink{&lines{w: &out}}
	for _, e := range []services.Event{
		{Kind: services.EventStarted, Service: "grafana"},
		{Kind: services.EventApplied, Service: "grafana", Action: release.Upgraded, Revision: 3},
		{Kind: services.EventProgress, Service: "grafana", State: &ready.State{Pods: 2, ReadyPods: 1}},
		{Kind: services.EventProblem, Service: "grafana", Problem: &ready.Problem{Object: "pod/grafana-0", Reason: "ImagePullBackOff", Message: "image can't be pulled: no such image", Hint: "check image.tag"}},
		{Kind: services.EventReady, Service: "grafana"},
		{Kind: services.EventFailed, Service: "grafana", Error: "gave up", Hint: "see its log"},
		{Kind: services.EventRunDone, Summary: &services.Summary{Changes: 4, Elapsed: 25 * time.Second}},
	} {
		s.Emit(e)
	}
	assert.Equal(t, strings.Join([]string{"grafana  begins", "grafana  upgraded, revision 3", "grafana  1 of 2 pods ready", "grafana  pod/grafana-0: image can't be pulled: no such image", "  -> check image.tag",
		"grafana  ready", "grafana  FAILED: gave up", "  -> see its log", "4 objects changed in 25s", ""}, "\n"), out.String())
}
