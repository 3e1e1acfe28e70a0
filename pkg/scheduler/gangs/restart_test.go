package gangs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

// restart stops the Store and starts a new Store, which gets its state only from the API server.
func (c *cluster) restart() {
	c.t.Helper()
	c.start(testOptions)
	require.NoError(c.t, c.b.Lead(c.t.Context()))
}

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
	// The places of the gangs' other pods are still reserved.
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
	c.place(p)
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
	var said []string
	c.eventually(func() bool { said = append(said, c.said()...); return len(said) >= 3 })
	require.Len(t, said, 3)
	for _, text := range said {
		assert.Contains(t, text, "Warning NotManaged ")
	}
	p := c.create(newPod("p", spec("B", 5, "g:1:2")))
	assert.NotContains(t, []string{"b0", "b1"}, c.place(p), "what they use isn't given away")
	c.finish(foreign, corev1.PodFailed)
	q := c.create(newPod("q", spec("B", -1, "q:1:2")))
	for c.place(q) != "b0" { // a pod gets a place on b0 as soon as the others have ended
		q = c.create(newPod("q"+string(q.UID), spec("B", -1, "q"+string(q.UID)+":1:2")))
	}
}

func TestAPodBoundElsewhereThanChosenLosesItsPlace(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("B", 5, "g:1:2")))
	c.place(p)
	now := c.pod(p)
	now.Spec.NodeName = "nowhere"
	_, err := c.client.CoreV1().Pods("jobs").Update(t.Context(), now, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.wait(p, api.Ignored)
	c.place(c.create(newPod("q", spec("B", 5, "h:1:2"))))
}

func TestANewPodOfTheSameNameIsAnotherPod(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(newPod("p", spec("B", 5, "g:1:2")))
	again := newPod("p", spec("B", 5, "g:1:2"))
	again.UID = "another"
	c.b.podSeen(p, again) // the informer reports an update that skips the deletion
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

func versioned(p *corev1.Pod, version string) *corev1.Pod {
	p = p.DeepCopy()
	p.ResourceVersion = version
	return p
}

func TestEventsOfAFormerLifeChangeNothing(t *testing.T) {
	c := newCluster(t, twoTeams)
	former := versioned(newPod("p", spec("B", 5, "g:1:2")), "10")
	p := newPod("p", spec("B", 5, "g:1:2"))
	p.UID = "present"
	bound := c.run(p)
	c.b.mu.Lock()
	s := c.b.state
	s.listed = "20" // the pod already ran at this version
	s.pods[p.UID].object = versioned(bound, "20")
	c.b.mu.Unlock()
	for _, event := range []func(){
		func() { c.b.podSeen(nil, former) },
		func() { c.b.podSeen(former, versioned(former, "11")) },
		func() { c.b.podSeen(former, nil) },
		func() { c.b.podSeen(cache.DeletedFinalStateUnknown{Key: "jobs/p", Obj: former}, nil) },
		func() { c.b.podSeen(former, versioned(bound, "19")) },
	} {
		event()
		assert.Empty(t, c.state(former))
		assert.Equal(t, api.Bound, c.state(p))
	}
}

func TestAPodWhoseEndIsNotToldIsForgotten(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.run(newPod("p", spec("B", 5, "g:1:2")))
	q := c.create(newPod("q", spec("B", 5, "h:1:2")))
	lost := versioned(p, "30")
	synced := "29"
	look := func() {
		c.clock.add(sweepEvery)
		c.b.sweep(func(key string) *corev1.Pod {
			if key == "jobs/q" {
				return q
			}
			return nil
		}, synced)
	}
	c.b.mu.Lock()
	c.b.state.pods[p.UID].object = lost
	c.b.mu.Unlock()
	look()
	look()
	assert.Equal(t, api.Bound, c.state(p), "the informer is behind")
	synced = "30"
	look()
	assert.Equal(t, api.Bound, c.state(p), "it may not have stored it yet")
	look()
	assert.Empty(t, c.state(p))
	assert.Equal(t, api.Waiting, c.state(q))
	c.place(q)
}

type testLock struct {
	resourcelock.Interface
	holder, identity string
	err              error
	updating         func()
}

func (l *testLock) Identity() string { return l.identity }

func (l *testLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, l.err
}

func (l *testLock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	if l.updating != nil {
		l.updating()
	}
	if l.err == nil {
		l.holder = r.HolderIdentity
	}
	return l.err
}

func (l *testLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

func TestOnlyWhoHoldsTheLockActs(t *testing.T) {
	clock := &clock{at: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	lock := &testLock{identity: "me_1"}
	l := NewElection(clock.now)
	assert.True(t, l.Leads(time.Hour), "there is only one")
	l.Follow(lock, 6*time.Second)
	assert.False(t, l.Leads(0))
	ours := resourcelock.LeaderElectionRecord{HolderIdentity: "me_1"}
	require.NoError(t, l.Create(t.Context(), ours))
	assert.True(t, l.Leads(5*time.Second))
	assert.False(t, l.Leads(6*time.Second), "it isn't sure for so long")
	lock.updating = func() { clock.add(4 * time.Second) } // a slow response
	require.NoError(t, l.Update(t.Context(), ours))
	assert.False(t, l.Leads(2*time.Second), "a renewal counts from when it was asked for")
	lock.updating, lock.err = nil, errors.New("no answer")
	require.Error(t, l.Update(t.Context(), ours))
	assert.True(t, l.Leads(time.Second))
	clock.add(6 * time.Second)
	assert.False(t, l.Leads(0))
	_, ok := l.Begin(0)
	assert.False(t, ok)

	lock.err = nil
	require.NoError(t, l.Update(t.Context(), ours))
	done, ok := l.Begin(3 * time.Second)
	require.True(t, ok)
	given := make(chan error)
	go func() { given <- l.Update(context.WithoutCancel(t.Context()), resourcelock.LeaderElectionRecord{}) }()
	for l.Leads(0) {
		time.Sleep(time.Millisecond)
	}
	_, ok = l.Begin(0)
	assert.False(t, ok, "nothing new is begun")
	assert.Equal(t, "me_1", l.Leader(), "a request is under way")
	done()
	require.NoError(t, <-given)
	assert.Empty(t, l.Leader())

	require.NoError(t, l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "other_1"}))
	assert.False(t, l.Leads(0))
	assert.Equal(t, "other_1", l.Leader())
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
	c.b.mu.Lock()
	c.b.state.observe(late)
	c.b.mu.Unlock()
	assert.Equal(t, api.Bound, c.state(p))
}
