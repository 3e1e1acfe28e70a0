package extender

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

// restart stops the extender and starts another, which has the API server alone to learn from.
func (c *cluster) restart() {
	c.t.Helper()
	c.start(testOptions)
	require.NoError(c.t, c.e.lead(c.t.Context(), 0))
}

// finish ends a pod and waits until the extender has forgotten it.
func (c *cluster) finish(p *corev1.Pod, phase corev1.PodPhase) {
	c.t.Helper()
	now := c.pod(p)
	now.Status.Phase = phase
	_, err := c.client.CoreV1().Pods(p.Namespace).UpdateStatus(c.t.Context(), now, metav1.UpdateOptions{})
	require.NoError(c.t, err)
	c.wait(p, "")
}

func TestARestartKnowsEverything(t *testing.T) {
	c := newCluster(t, twoTeams)
	for _, p := range []*corev1.Pod{
		newPod("p1", spec("A", 5, "g:2:2")), newPod("o1", spec("A", -1, "o:1:1")), newPod("b1", spec("B", 3, "b:2:1")),
	} {
		c.run(p)
	}
	c.create(newPod("w", spec("B", 3, "w:1:2")))
	var before, after groups
	var queue, queueAfter api.Queue
	var cells, cellsAfter clusterStatus
	c.get("/v1/inspect/affinitygroups/", &before)
	c.get("/v1/inspect/clusterstatus", &cells)
	c.get("/v1/queue", &queue)
	c.restart()
	c.get("/v1/inspect/affinitygroups/", &after)
	c.get("/v1/inspect/clusterstatus", &cellsAfter)
	c.get("/v1/queue", &queueAfter)
	assert.Equal(t, before, after)
	assert.Equal(t, cells, cellsAfter)
	assert.Equal(t, queue, queueAfter)
	require.Len(t, after.Items, 3)
	// What was promised to the gangs' other pods still holds.
	second := c.run(newPod("p2", spec("A", 5, "g:2:2")))
	third := c.run(newPod("b2", spec("B", 3, "b:2:1")))
	pods, err := c.client.CoreV1().Pods("jobs").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	noDoubleUse(t, pods.Items)
	assert.NotEqual(t, gpus(second), gpus(third))
}

func TestAPlaceThatWasNotBoundIsNotRemembered(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	c.filter(p)
	c.restart()
	assert.Equal(t, api.Waiting, c.state(p))
	var got groups
	c.get("/v1/inspect/affinitygroups/", &got)
	assert.Empty(t, got.Items)
}

func TestPodsThatHiveDBoundAreTakenOver(t *testing.T) {
	p := newPod("old", spec("B", 5, "g:1:1"))
	p.Spec.NodeName = "b0"
	p.Annotations["hivedscheduler.microsoft.com/pod-leaf-cell-isolation"] = "1"
	p.Annotations["hivedscheduler.microsoft.com/pod-bind-info"] = `node: b0
leafCellIsolation: [1]
cellChain: RACK
affinityGroupBindInfo:
- podPlacements:
  - physicalNode: b0
    physicalLeafCellIndices: [1]
    preassignedCellTypes: [NODE]
`
	c := newCluster(t, twoTeams, p)
	assert.Equal(t, api.Bound, c.state(p))
	next := c.run(newPod("new", spec("B", 5, "n:1:1")))
	assert.Equal(t, "b0:0", gpus(next))
}

func TestPodsBoundByOthersAreIgnored(t *testing.T) {
	foreign := newPod("foreign", spec("B", 5, "f:1:2"))
	foreign.Spec.NodeName = "b0"
	garbled := newPod("garbled", spec("B", 5, "x:1:2"))
	garbled.Spec.NodeName = "b1"
	garbled.Annotations[annotation.BindInfoKey] = "]["
	garbled.Annotations[annotation.IsolationKey] = "0,1"
	unreadable := newPod("unreadable", "priority: much")
	unreadable.Spec.NodeName = "b1"
	c := newCluster(t, twoTeams, foreign, garbled, unreadable)
	for _, p := range []*corev1.Pod{foreign, garbled, unreadable} {
		assert.Equal(t, api.Ignored, c.state(p), p.Name)
	}
	said := c.said()
	require.Len(t, said, 3)
	for _, text := range said {
		assert.Contains(t, text, "Warning NotManaged ")
	}
	assert.NotEmpty(t, c.run(newPod("p", spec("B", 5, "g:1:2"))).Spec.NodeName)
	c.finish(foreign, corev1.PodFailed)
}

func TestAPodBoundElsewhereThanChosenLosesItsPlace(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("B", 5, "g:1:2")))
	c.filter(p)
	now := c.pod(p)
	now.Spec.NodeName = "nowhere"
	_, err := c.client.CoreV1().Pods("jobs").Update(t.Context(), now, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.wait(p, api.Ignored)
	assert.Len(t, c.filter(c.create(newPod("q", spec("B", 5, "h:1:2")))).NodeNames, 1)
}

func TestANewPodOfTheSameNameIsAnotherPod(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(newPod("p", spec("B", 5, "g:1:2")))
	again := newPod("p", spec("B", 5, "g:1:2"))
	again.UID = "another"
	require.NoError(t, c.e.pods.GetStore().Update(again)) // as an update that skipped the deletion
	c.e.podChanged("jobs/p")
	assert.Empty(t, c.state(p))
	assert.Equal(t, api.Waiting, c.state(again))
}

func TestPodsThatDoNotAskAreNotKnown(t *testing.T) {
	plain := newPod("plain", "")
	plain.Spec.Containers[0].Resources.Limits = nil
	done := newPod("done", spec("B", 5, "g:1:2"))
	done.Status.Phase = corev1.PodFailed
	first := newPod("init", spec("B", 5, "g:1:2"))
	first.Spec.InitContainers, first.Spec.Containers = first.Spec.Containers, nil
	c := newCluster(t, twoTeams, plain, done, first)
	assert.Empty(t, c.state(plain))
	assert.Empty(t, c.state(done))
	assert.Equal(t, api.Waiting, c.state(first), "an init container counts")
}

// elect writes the Lease as the kube-scheduler of a pod does.
func (c *cluster) elect(holder string, seconds int32, acquired time.Time) {
	c.t.Helper()
	at, renewed := metav1.NewMicroTime(acquired), metav1.NewMicroTime(c.clock.now())
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "pai-system", Name: "pai-scheduler"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &at, RenewTime: &renewed}}
	leases := c.client.CoordinationV1().Leases("pai-system")
	if _, err := leases.Update(c.t.Context(), l, metav1.UpdateOptions{}); err != nil {
		_, err = leases.Create(c.t.Context(), l, metav1.CreateOptions{})
		require.NoError(c.t, err)
	}
}

func TestTheExtenderLeadsWithTheKubeSchedulerBesideIt(t *testing.T) {
	c := prepare(t, twoTeams)
	opts := testOptions
	opts.Lease = "pai-scheduler"
	c.start(opts)
	lead := func(margin time.Duration) error { return c.e.lead(t.Context(), margin) }
	require.ErrorContains(t, lead(0), "this replica doesn't lead")

	c.elect("other_1", 10, c.clock.now())
	require.ErrorContains(t, lead(0), "this replica doesn't lead: other does")
	c.elect("menace_1", 10, c.clock.now())
	require.ErrorContains(t, lead(0), "menace does", "a name that only begins alike")

	c.clock.add(time.Minute) // the Lease ran out
	c.elect("me_1", 10, c.clock.now())
	require.NoError(t, lead(bindTimeout))
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	assert.Len(t, c.filter(p).NodeNames, 1)

	c.clock.add(8 * time.Second)
	require.NoError(t, lead(0))
	require.Error(t, lead(bindTimeout), "a binding could outlive the Lease")
	assert.Contains(t, c.bind(p, c.filter(p).NodeNames[0]), "doesn't lead")
	c.elect("me_1", 10, c.clock.now().Add(-8*time.Second)) // renewed
	require.NoError(t, lead(bindTimeout))
	assert.Equal(t, api.Binding, c.state(p), "the term goes on")

	c.elect("me_2", 10, c.clock.now().Add(-time.Minute)) // kube-scheduler was restarted
	c.clock.add(8 * time.Second)
	require.NoError(t, c.e.lease.read(t.Context()))
	require.NoError(t, lead(0))
	assert.Equal(t, api.Waiting, c.state(p), "a new term knows only what is bound")

	c.elect("other_2", 10, c.clock.now())
	c.clock.add(time.Minute)
	require.Error(t, lead(0))
	c.e.resign()
	assert.Empty(t, c.state(p))
}

func TestASuccessorWaitsForTheLastBindingOfItsPredecessor(t *testing.T) {
	c := prepare(t, twoTeams)
	l := &lease{client: c.client, namespace: "pai-system", name: "pai-scheduler", identity: "me", now: c.clock.now}
	read := func() {
		t.Helper()
		require.NoError(t, l.read(t.Context()))
	}
	c.elect("other_1", 10, c.clock.now())
	read()
	c.clock.add(10 * time.Second)
	c.elect("me_1", 10, c.clock.now())
	read()
	assert.Zero(t, l.settle(), "the Lease ran out")

	c.elect("other_2", 10, c.clock.now())
	read()
	c.clock.add(2 * time.Second)
	c.elect("", 1, c.clock.now()) // given back
	read()
	c.elect("me_2", 10, c.clock.now())
	read()
	assert.Equal(t, bindTimeout, l.settle())
	c.clock.add(time.Second)
	assert.Equal(t, bindTimeout-time.Second, l.settle())

	fresh := &lease{client: c.client, namespace: "pai-system", name: "pai-scheduler", identity: "me", now: c.clock.now}
	require.NoError(t, fresh.read(t.Context()))
	assert.Equal(t, bindTimeout-time.Second, fresh.settle(), "who was there before isn't known")
	c.clock.add(time.Minute)
	assert.Zero(t, fresh.settle())
}

func TestARestartIsNotDisturbedByWhatTheInformerTellsLate(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(newPod("p", spec("B", 5, "g:1:2")))
	late := p.DeepCopy()
	late.Spec.NodeName = ""
	for key := range late.Annotations {
		if !strings.HasSuffix(key, "pod-scheduling-spec") {
			delete(late.Annotations, key)
		}
	}
	c.e.mu.Lock()
	c.e.state.reconcile("jobs/p", late)
	c.e.mu.Unlock()
	assert.Equal(t, api.Bound, c.state(p))
}
