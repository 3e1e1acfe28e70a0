package gangs

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/test/tier"
)

// own returns a pod that isn't equivalent to any other pod.
func own(p *corev1.Pod) *corev1.Pod {
	p.Labels = map[string]string{api.UserLabel: p.Name}
	return p
}

func TestALowerPriorityDoesNotOvertakeOneThatWasNotLookedAt(t *testing.T) {
	tier.More(t, "it waits to see that nothing happens")
	c := newCluster(t, twoTeams)
	full1 := c.run(newPod("full1", spec("A", 9, "full1:1:2")))
	c.run(newPod("full2", spec("A", 9, "full2:1:2")))
	c.b.share = 1
	var x []*corev1.Pod
	for i := range 3 { // they wait, and no two are equivalent; the third keeps the round from ending
		x = append(x, c.create(own(newPod(fmt.Sprintf("x%d", i), spec("A", 1, fmt.Sprintf("x%d:1:2", i))))))
	}
	c.b.Decide() // a place is searched for x0, but not for x1 and x2
	deleted := c.holdDeletes()
	a1 := c.create(own(newPod("a1", spec("A", 8, "a1:2:2")))) // too large
	c.create(own(newPod("a1b", spec("A", 8, "a1:2:2"))))
	a1.Labels = nil
	a2 := c.create(own(newPod("a2", spec("A", 7, "a2:1:2")))) // fits into the cells that become free
	c.vanishes(full1)
	c.b.Decide()
	at0, _ := c.b.Place(x[0].UID)
	at2, _ := c.b.Place(a2.UID)
	t.Logf("x0 (priority 1) has %q, a2 (priority 7) has %q", at0.Node, at2.Node)
	assert.Empty(t, at0.Node, "priority 1 started before priority 7 that fits and was there")
	if at0.Node != "" {
		c.bind(x[0], at0.Node)
		c.wait(x[0], api.Bound)
	}
	for range 5 {
		c.b.Decide()
		c.answer()
	}
	time.Sleep(200 * time.Millisecond)
	assert.Empty(t, unique(deleted()), "and is ended at once for it")
}

// A large gang waits until its victims have ended. Each check of the gang takes longer than the share of its virtual cluster in
// a pass.
func TestALargePreemptionKeepsNoOthersOfItsVirtualClusterWaiting(t *testing.T) {
	c := newBenchCluster(t, 4, 1)
	c.step("fill")
	c.bound()
	nodes := len(c.b.state.nodes)
	c.large = c.gang("large", 5, nodes-32, 8)
	c.step("decide")
	c.step("trials")
	c.step("preempt")
	victims := map[types.UID]bool{}
	list := c.b.state.core.VictimsOf("A", "large")
	for _, v := range list {
		victims[types.UID(v.Pod)] = true
	}
	for _, uid := range c.uids() {
		if p := c.b.state.pods[uid]; p.request.Gang != "large" && !victims[uid] {
			c.b.locked(func(s *state) { s.gone(uid) })
		}
	}
	c.b.share = time.Nanosecond
	x := c.gang("x", 5, 1, 8)[0]
	for range 10 {
		c.leave(list[:1]) // one victim after the other ends
		list = list[1:]
		c.b.Decide()
	}
	at, ok := c.b.Place(x.UID)
	assert.True(t, ok && !at.Trial, c.b.state.pods[x.UID].reason)
}

// Guaranteed gangs that a pass hasn't reached yet would evict an opportunistic gang on their cells.
func TestOpportunisticGangsWaitUntilGuaranteedOnesWereLookedAt(t *testing.T) {
	c := newCluster(t, fourNodes)
	for i := range 3 {
		c.run(newPod(fmt.Sprintf("full%d", i), spec("A", 9, fmt.Sprintf("full%d:1:2", i))))
	}
	c.b.share = 1
	for i := range 3 { // these gangs are too large for the free cells
		for k := range 2 {
			p := newPod(fmt.Sprintf("x%d-%d", i, k), spec("A", 5, fmt.Sprintf("x%d:2:2", i)))
			p.Labels = map[string]string{api.UserLabel: fmt.Sprint("x", i)}
			c.create(p)
		}
	}
	g := c.create(own(newPod("g", spec("A", 1, "g:1:2"))))
	o := c.create(own(newPod("o", spec("A", -1, "o:1:2"))))
	for range 4 {
		c.b.Decide()
	}
	_, ok := c.b.Place(o.UID)
	assert.False(t, ok, "it is ended again for g")
	_, ok = c.b.Place(g.UID)
	assert.True(t, ok)
}

func TestOpportunisticGangsStartThoughGuaranteedOnesAreLookedAtAllTheTime(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.b.share = 1
	for _, vc := range []string{"A", "B"} {
		for i := range map[string]int{"A": 2, "B": 3}[vc] { // the rounds of the two virtual clusters seldom end in the same pass; no gang fits in its virtual cluster
			name := fmt.Sprint(vc, i)
			p := own(newPod(name, spec(vc, 5, name+":1:2")))
			p.Spec.NodeSelector = map[string]string{"no": "node"}
			c.create(p)
		}
	}
	o := c.create(own(newPod("o", spec("A", -1, "o:1:2"))))
	for i := range 20 {
		c.b.Decide()
		if _, ok := c.b.Place(o.UID); ok {
			t.Logf("after %d passes", i+1)
			return
		}
		c.b.locked(func(s *state) { s.epoch++ }) // changes happen all the time
	}
	assert.Fail(t, "it never starts")
}

// Each pass adds a new gang that isn't equivalent to any other gang, so there are always more gangs than a pass tries.
func TestOpportunisticGangsStartThoughGuaranteedOnesComeFasterThanTheyAreLookedAt(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.run(newPod("full", spec("A", 9, "full:1:2")))
	c.run(newPod("full2", spec("A", 9, "full2:1:2")))
	c.b.share = 1
	come := func(name string) { c.create(own(newPod(name, spec("A", 5, name+":1:2")))) }
	come("first0")
	come("first1")
	o := c.create(own(newPod("o", spec("B", -1, "o:1:2"))))
	for pass := range 2 * mostSecond {
		come(fmt.Sprint("g", pass))
		c.b.Decide()
		if _, ok := c.b.Place(o.UID); ok {
			t.Logf("after %d passes", pass+1)
			return
		}
	}
	assert.Fail(t, "it never starts, beside two idle nodes")
}
