package gangs

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

// holdDeletes keeps deleted pods, as if they were in their grace period. It returns a function that returns the names of the
// deleted pods.
func (c *cluster) holdDeletes() func() []string {
	var mu sync.Mutex
	var deleted []string
	c.client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		deleted = append(deleted, a.(clienttesting.DeleteAction).GetName())
		return true, nil, nil
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(deleted)
	}
}

func TestGuaranteedWorkReplacesOpportunisticWork(t *testing.T) {
	c := newCluster(t, twoTeams)
	for _, name := range []string{"o1", "o2", "o3", "o4"} {
		c.run(newPod(name, spec("B", -1, name+":1:2")))
	}
	p1 := c.create(newPod("p1", spec("A", 5, "g:2:2")))
	p2 := c.create(newPod("p2", spec("A", 5, "g:2:2")))
	assert.Contains(t, c.waits(p1), "2 pods of B/o")
	assert.Equal(t, api.Preempting, c.state(p1))
	assert.Equal(t, api.Preempting, c.state(p2))
	c.eventually(func() bool { return len(c.podNames()) == 4 }) // two victims have ended
	c.eventually(func() bool { node, _ := c.decide(p1); return node != "" })
	c.bind(p1, c.place(p1))
	c.bind(p2, c.place(p2))
	var reasons []string
	for e := range strings.Lines(c.hears(" "+api.ReasonPreempting+" ", " "+api.ReasonPreempted+" ")) {
		reasons = append(reasons, strings.Fields(e)[1])
	}
	assert.Contains(t, reasons, api.ReasonPreempting)
	assert.Equal(t, 2, strings.Count(strings.Join(reasons, " "), api.ReasonPreempted+" ")+strings.Count(strings.Join(reasons, " ")+"$", api.ReasonPreempted+"$"), "%v", reasons)
	_, metrics := c.ask(http.MethodGet, "/metrics", nil)
	assert.Contains(t, metrics, `pai_scheduler_preempted_gangs_total{vc="B"} 2`)
}

func (c *cluster) podNames() []string {
	var out []string
	for _, obj := range c.b.pods.GetStore().List() {
		out = append(out, obj.(*corev1.Pod).Name)
	}
	return out
}

func TestVictimsAreNotedAndDeletedWithTheirUID(t *testing.T) {
	c := newCluster(t, twoTeams)
	o := c.run(newPod("o", spec("A", -1, "o:4:2")))
	for _, name := range []string{"o2", "o3", "o4"} {
		c.run(newPod(name, spec("A", -1, "o:4:2")))
	}
	deleted := c.holdDeletes()
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	c.waits(p)
	c.eventually(func() bool { return len(deleted()) == 4 })
	assert.ElementsMatch(t, []string{"o", "o2", "o3", "o4"}, deleted(), "the whole gang")
	conditions := c.pod(o).Status.Conditions
	require.Len(t, conditions, 1)
	assert.Equal(t, corev1.DisruptionTarget, conditions[0].Type)
	assert.Equal(t, corev1.PodReasonPreemptionByScheduler, conditions[0].Reason)
	c.waits(p) // as long as victims exist
}

func TestTheReservationOfAGangThatLeavesIsGivenBack(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.run(newPod("o1", spec("B", -1, "o:4:2")))
	for _, name := range []string{"o2", "o3", "o4"} {
		c.run(newPod(name, spec("B", -1, "o:4:2")))
	}
	deleted := c.holdDeletes()
	p := c.create(newPod("p", spec("A", 5, "g:2:2")))
	c.waits(p)
	c.eventually(func() bool { return len(deleted()) == 4 })
	var status struct {
		Status struct{ State string }
	}
	c.get("/v1/inspect/affinitygroups/o", &status)
	assert.Equal(t, "BeingPreempted", status.Status.State)
	c.client.Lock()
	c.client.ReactionChain = c.client.ReactionChain[1:] // deletes work again
	c.client.Unlock()
	c.delete(p)
	c.get("/v1/inspect/affinitygroups/o", &status)
	assert.Equal(t, "Allocated", status.Status.State)
	c.b.mu.Lock()
	o := c.b.state.pods["uid-o2"]
	c.b.mu.Unlock()
	obj, _ := c.b.subject(task{evict, o.uid})
	assert.Nil(t, obj, "no one needs its cells any more")
}

func TestADowngradeIsWrittenOnThePodsThatRun(t *testing.T) {
	c := newCluster(t, twoTeams)
	lazy := "lazyPreemptionEnable: true\n"
	low := c.run(newPod("low", spec("B", 1, "low:1:2", lazy)))
	before := low.Annotations[annotation.PlacementKey]
	high := c.run(newPod("high", spec("B", 9, "high:1:2")))
	assert.NotEqual(t, low.Spec.NodeName, high.Spec.NodeName)
	c.eventually(func() bool { return c.pod(low).Annotations[annotation.PlacementKey] != before })
	c.hears("Normal Downgraded ")
	var got group
	c.get("/v1/inspect/affinitygroups/B/low", &got)
	require.NotNil(t, got.Status.LazyPreemptionStatus)
	assert.Equal(t, c.clock.now(), got.Status.LazyPreemptionStatus.PreemptionTime)

	c.restart()
	var again group
	c.get("/v1/inspect/affinitygroups/B/low", &again)
	assert.NotNil(t, again.Status.LazyPreemptionStatus, "a restart knows")
	_, metrics := c.ask(http.MethodGet, "/metrics", nil)
	assert.Contains(t, metrics, `pai_scheduler_gangs{state="downgraded"} 1`)
}

func TestACompletedVictimFreesItsCells(t *testing.T) {
	c := newCluster(t, twoTeams)
	o := c.run(newPod("o", spec("B", 1, "o:1:2")))
	p := c.create(newPod("p", spec("B", 1, "p:1:2")))
	c.waits(p)
	c.finish(o, corev1.PodSucceeded)
	c.place(p)
}

func TestATerminatingPodKeepsItsCells(t *testing.T) {
	c := newCluster(t, twoTeams)
	o := c.run(newPod("o", spec("B", 1, "o:1:2")))
	now := c.pod(o)
	now.DeletionTimestamp = &o.CreationTimestamp
	c.b.podSeen(o, now)
	assert.Equal(t, api.Bound, c.state(o))
}

func TestGangsInTheWayOfProcessorsMustGo(t *testing.T) {
	c := newCluster(t, twoTeams)
	low := []*corev1.Pod{c.run(newPod("o1", spec("B", -1, "o:2:1"))), c.run(newPod("o2", spec("B", -1, "o:2:1")))}
	same := c.run(newPod("same", spec("A", 5, "same:1:1")))
	p := c.create(newPod("p", spec("A", 5, "g:1:1")))
	c.place(p)
	lower := c.b.Lower(p.UID)
	gang, may, ok := lower(low[0].UID)
	assert.True(t, may && ok)
	assert.Equal(t, "B/o", gang)
	_, may, ok = lower(same.UID)
	assert.True(t, ok && !may, "it has its guarantee and the same priority")
	_, _, ok = lower("stranger")
	assert.False(t, ok)

	deleted := c.holdDeletes()
	c.b.Evict(p.UID, []types.UID{low[0].UID, same.UID})
	c.eventually(func() bool { return len(deleted()) == 2 })
	assert.ElementsMatch(t, []string{"o1", "o2"}, deleted(), "the whole gang, and no gang that may stay")
	c.clock.add(placeLimit - time.Second)
	assert.NotEmpty(t, c.place(p), "its place is kept while they end")
	c.b.mu.Lock()
	c.b.state.takeBack(c.b.state.pods[p.UID].gang, "it changed its mind")
	c.b.mu.Unlock()
	obj, _ := c.b.subject(task{evict, low[1].UID})
	assert.Nil(t, obj, "no one needs its place any more")
}
