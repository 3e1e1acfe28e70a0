package gangs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/test/tier"
)

// rackYAML returns a configuration of n nodes n00, n01, … with two GPUs each. A owns all nodes. B owns no cells but may run
// opportunistic gangs. rackYAML also returns the nodes and their names.
func rackYAML(n int) (string, []runtime.Object, []string) {
	var b strings.Builder
	var nodes []runtime.Object
	var names []string
	b.WriteString("physicalCluster:\n  cellTypes:\n    NODE: {childCellType: G, childCellNumber: 2, isNodeLevel: true}\n  physicalCells:\n")
	for i := range n {
		name := fmt.Sprintf("n%02d", i)
		names = append(names, name)
		fmt.Fprintf(&b, "    - {cellType: NODE, cellAddress: %s}\n", name)
		nodes = append(nodes, readyNode(name))
	}
	fmt.Fprintf(&b, "virtualClusters:\n  A:\n    virtualCells: [{cellType: NODE, cellNumber: %d}]\n", n)
	return b.String(), nodes, names
}

// Only some nodes can use a volume. The gang must find one of these nodes.
func TestAGangGetsPastTheNodesThatCannotRunIt(t *testing.T) {
	for _, bad := range []int{4, 8} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			yaml, nodes, names := rackYAML(16)
			c := newCluster(t, yaml, nodes...)
			for i := range names {
				name := fmt.Sprintf("o%02d", i)
				c.run(newPod(name, spec("A", -1, name+":1:2")))
			}
			deleted := c.holdDeletes()
			p := c.create(newPod("p", spec("A", 1, "p:1:2")))
			c.refusing = map[string]string{}
			var seen []string
			start := c.clock.now()
			for c.clock.now().Sub(start) < 12*time.Hour && c.state(p) != api.Preempting {
				c.b.Decide()
				for {
					at := c.onTrial(p)
					if at == "" {
						break
					}
					if _, known := c.refusing[at]; !known && len(c.refusing) < bad {
						c.refusing[at] = "its volume is in another zone"
					}
					seen = append(seen, fmt.Sprintf("%s@%s", at, c.clock.now().Sub(start)))
					c.answer()
					c.b.Decide()
				}
				c.clock.add(time.Second)
			}
			assert.Equal(t, api.Preempting, c.state(p), "%d of 16 nodes can't run it; it was tried %d times, %d nodes refused it", bad, len(seen), len(c.refusing))
			c.eventually(func() bool { return c.state(p) != api.Preempting || len(deleted()) == 1 })
		})
	}
}

// unique removes duplicates. Deletions are repeated, because the pods in the harness have no deletion timestamp.
func unique(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// A result of kube-scheduler is valid only at the time of its check. A gang that lost its reservation must be checked again
// when it gets its next reservation, hours later.
func TestAnAnswerOfLongAgoEndsNoOthers(t *testing.T) {
	tier.More(t, "it waits to see that nothing happens")
	yaml, nodes, _ := rackYAML(1)
	c := newCluster(t, yaml, nodes...)
	c.run(newPod("mid", spec("A", 3, "mid:1:2")))
	deleted := c.holdDeletes()
	l := c.create(newPod("l", spec("A", 5, "l:1:2")))
	c.b.Decide()
	require.Equal(t, "n00", c.onTrial(l))
	// A gang with a higher priority arrives and takes the reservation.
	h := c.create(newPod("h", spec("A", 9, "h:1:2")))
	c.b.Decide()
	require.Equal(t, "n00", c.onTrial(h))
	c.b.Tried(l.UID, "n00", true, "")
	for range 5 * 3600 { // h keeps the reservation for five hours, because kube-scheduler sends no result for it
		c.b.Decide()
		c.clock.add(time.Second)
	}
	require.Empty(t, deleted())
	require.Equal(t, api.Waiting, c.state(l))
	c.vanishes(h)
	// By now, another process on the node uses a port that l needs.
	c.refusing = map[string]string{"n00": "its port is taken"}
	c.waits(l)
	time.Sleep(100 * time.Millisecond)
	assert.Empty(t, deleted(), "it ended although kube-scheduler wasn't asked again: %s", c.reason(l))
	assert.Equal(t, api.Waiting, c.state(l))
}

func TestATrialThatIsNeverAnsweredHoldsNoCellsForGood(t *testing.T) {
	yaml, nodes, names := rackYAML(4)
	c := newCluster(t, yaml, nodes...)
	for i := range names[1:] {
		name := fmt.Sprintf("o%02d", i)
		c.run(newPod(name, spec("A", -1, name+":1:2")))
	}
	// One node is idle. The gang stuck needs that node and another node. The resource claim of its pods doesn't exist, so
	// kube-scheduler never checks the pods.
	s0 := c.create(newPod("s0", spec("A", 5, "stuck:2:2")))
	c.create(newPod("s1", spec("A", 5, "stuck:2:2")))
	c.b.Decide()
	require.NotEmpty(t, c.onTrial(s0))
	small := c.create(newPod("small", spec("A", -1, "small:1:2")))
	start := c.clock.now()
	for c.clock.now().Sub(start) < 6*time.Hour {
		c.b.Decide()
		if node, _ := c.b.Place(small.UID); node.Node != "" {
			return
		}
		c.clock.add(time.Second)
	}
	var why api.Why
	c.get("/v1/why/A/small", &why)
	t.Errorf("in 6 h the idle node was never given to anyone: %s", why.Sentence)
}

// A pod of a running gang is recreated while another gang has reserved its cells. kube-scheduler never checks that gang.
func TestATrialThatIsNeverAnsweredKeepsNoPodOfAGangThatRuns(t *testing.T) {
	yaml, nodes, _ := rackYAML(2)
	c := newCluster(t, yaml, nodes...)
	o0, o1 := c.create(newPod("o0", spec("A", -1, "o:2:2"))), c.create(newPod("o1", spec("A", -1, "o:2:2")))
	c.bind(o0, c.place(o0))
	c.bind(o1, c.place(o1))
	c.wait(o1, api.Bound)
	stuck := c.create(newPod("stuck", spec("A", 5, "stuck:1:2")))
	c.b.Decide()
	require.NotEmpty(t, c.onTrial(stuck))
	c.finish(o1, corev1.PodFailed)
	again := c.create(newPod("again", spec("A", -1, "o:2:2")))
	for range 6 * 3600 {
		c.b.Decide()
		if at, _ := c.b.Place(again.UID); at.Node != "" {
			return
		}
		c.clock.add(time.Second)
	}
	t.Errorf("in 6 h the pod didn't start again beside the other one, which runs: %s", c.reason(again))
}

// A queued task for one gang must not be executed for another gang that is only on trial.
func TestNothingEndsForAGangOnTrial(t *testing.T) {
	yaml, nodes, _ := rackYAML(1)
	c := newCluster(t, yaml, nodes...)
	o := c.run(newPod("o", spec("A", -1, "o:1:2")))
	c.holdDeletes()
	m := c.create(newPod("m", spec("A", 5, "m:1:2")))
	// The API server is slow: the Store has decided to evict o, but hasn't sent the request yet.
	c.b.mu.Lock()
	c.b.state.todo = func(task) {}
	c.b.mu.Unlock()
	c.waits(m)
	require.Equal(t, api.Preempting, c.state(m))
	c.vanishes(m)
	h := c.create(newPod("h", spec("A", 9, "h:1:2")))
	c.b.Decide()
	require.Equal(t, "n00", c.onTrial(h))
	obj, _ := c.b.subject(task{evict, o.UID}) // the worker calls this before it deletes a pod
	assert.Nil(t, obj, "h is only on trial, and m, for which o was to end, is gone")
}

func (c *cluster) vanishes(p *corev1.Pod) {
	c.t.Helper()
	c.b.podSeen(c.pod(p), nil)
	c.wait(p, "")
}

// A gang that accepts a downgrade must not lose its guarantee to a gang that can't run, not even after a change of the leader.
func TestATrialInVainTakesNoGuarantee(t *testing.T) {
	tier.More(t, "it waits to see that nothing happens")
	c := newCluster(t, twoTeams)
	lazy := "lazyPreemptionEnable: true\n"
	c.run(newPod("low", spec("B", 1, "low:1:2", lazy)))
	for _, name := range []string{"o1", "o2", "o3"} {
		c.run(newPod(name, spec("A", -1, name+":1:2")))
	}
	high := c.create(newPod("high", spec("B", 9, "high:1:2")))
	c.b.Decide()
	require.NotEmpty(t, c.onTrial(high))
	said := strings.Join(c.said(), "\n")
	assert.NotContains(t, said, "Downgraded", "it is only on trial")
	time.Sleep(200 * time.Millisecond) // its annotation is written in this time
	c.restart()
	var got group
	c.get("/v1/inspect/affinitygroups/B/low", &got)
	assert.Nil(t, got.Status.LazyPreemptionStatus, "after a change of the leader it has its guarantee")
	c.refusing = map[string]string{"a0": "no volume", "a1": "no volume", "b0": "no volume", "b1": "no volume"}
	c.waits(high)
	c.delete(high)
	c.b.Decide()
	c.get("/v1/inspect/affinitygroups/B/low", &got)
	assert.Nil(t, got.Status.LazyPreemptionStatus, "high is gone and never could run: low has its guarantee again")
}

// A pod of the gang has a finalizer and is deleted during its trial, so kube-scheduler ignores the pod.
func TestAPodThatIsDeletedOnTrialDoesNotCostItsGangTheReservation(t *testing.T) {
	tier.More(t, "it waits to see that nothing happens")
	yaml, nodes, names := rackYAML(4)
	c := newCluster(t, yaml, nodes...)
	for i := range names {
		name := fmt.Sprintf("o%02d", i)
		c.run(newPod(name, spec("A", -1, name+":1:2")))
	}
	deleted := c.holdDeletes()
	p0 := c.create(newPod("p0", spec("A", 5, "p:2:2")))
	p1 := c.create(newPod("p1", spec("A", 5, "p:2:2")))
	c.b.Decide()
	require.NotEmpty(t, c.onTrial(p0))
	require.NotEmpty(t, c.onTrial(p1))
	going := c.pod(p0).DeepCopy()
	going.ResourceVersion = ""
	going.DeletionTimestamp = &metav1.Time{Time: c.clock.now()}
	going.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	c.b.podSeen(p0, going)
	// The pod's controller creates another pod.
	p2 := c.create(newPod("p2", spec("A", 5, "p:2:2")))
	step := func() {
		c.b.Decide()
		for range 10 {
			for _, p := range []*corev1.Pod{p1, p2} {
				if at := c.onTrial(p); at != "" {
					c.b.Tried(p.UID, at, true, "")
				}
			}
			c.b.Decide()
		}
	}
	step()
	require.Equal(t, api.Preempting, c.state(p1))
	require.Equal(t, api.Preempting, c.state(p2))
	c.eventually(func() bool { return len(deleted()) == 2 })
	first := strings.Join(deleted(), " ")
	// The victims have a grace period of five minutes.
	for range 180 {
		c.clock.add(time.Second)
		c.b.Decide()
		if c.state(p1) != api.Preempting {
			t.Errorf("%s after the victims were told to end: the reservation was given back: %s", "2 min", c.reason(p1))
			break
		}
	}
	step()
	time.Sleep(100 * time.Millisecond)
	assert.Len(t, unique(deleted()), 2, "first %s", first)
}

func (c *cluster) reason(p *corev1.Pod) string {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	return c.b.state.pods[p.UID].reason
}

// Two gangs are on trial on one node. Only one of them fits.
func TestPodsOfAnotherGangThatEndsOthersCount(t *testing.T) {
	yaml, nodes, _ := rackYAML(1)
	c := newCluster(t, yaml, nodes...)
	c.run(newPod("o", spec("A", -1, "o:1:1")))
	c.run(newPod("q", spec("A", -1, "q:1:1")))
	p := c.create(newPod("p", spec("A", 5, "p:1:1")))
	r := c.create(newPod("r", spec("A", 5, "r:1:1")))
	c.b.Decide()
	c.b.Decide()
	require.Equal(t, "n00", c.onTrial(p))
	c.b.Tried(p.UID, "n00", true, "")
	c.b.Decide()
	require.Equal(t, api.Preempting, c.state(p))
	require.Equal(t, "n00", c.onTrial(r))
	beside := c.b.Beside(r.UID)
	var names []types.UID
	for _, b := range beside {
		names = append(names, b.UID)
	}
	assert.Contains(t, names, p.UID, "p has reserved its cells there, and others end for it: r must fit beside it")
}

// Other gangs with the same shape must not get an event about a trial of this gang.
func TestATrialIsNoEventOfOthers(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.fill()
	c.said()
	c.create(newPod("p", spec("A", 5, "p:1:2")))
	c.create(newPod("q", spec("A", 5, "q:1:2")))
	c.b.Decide()
	for _, e := range c.said() {
		assert.NotContains(t, e, "kube-scheduler is checking")
	}
}

// Users must get kube-scheduler's reason instead of a message that the gang will start.
func TestWhyTellsOfATrial(t *testing.T) {
	yaml, nodes, _ := rackYAML(1)
	c := newCluster(t, yaml, nodes...)
	c.run(newPod("o", spec("A", -1, "o:1:2")))
	p := c.create(newPod("p", spec("A", 1, "p:1:2")))
	c.b.Decide()
	var why api.Why
	c.get("/v1/why/A/p", &why)
	assert.Contains(t, why.Sentence, "kube-scheduler is checking")
	c.refusing = map[string]string{"n00": "no such volume"}
	c.waits(p)
	c.get("/v1/why/A/p", &why)
	assert.Contains(t, why.Sentence, "n00 can't run jobs/p: no such volume")
}
