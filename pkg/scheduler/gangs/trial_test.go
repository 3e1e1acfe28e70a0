package gangs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/scheduler/api"
)

// fill assigns all GPUs to opportunistic gangs, and returns the node of each gang.
func (c *cluster) fill() map[string]string {
	at := map[string]string{}
	for _, name := range []string{"o0", "o1", "o2", "o3"} {
		at[name] = c.run(newPod(name, spec("B", -1, name+":1:2"))).Spec.NodeName
	}
	return at
}

// onTrial returns the node on which a pod is on trial, or "".
func (c *cluster) onTrial(p *corev1.Pod) string {
	at, _ := c.b.Place(p.UID)
	if !at.Trial {
		return ""
	}
	return at.Node
}

func TestNothingEndsForAGangThatItsNodesCannotRun(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.fill()
	deleted := c.holdDeletes()
	c.refusing = map[string]string{"a0": "no such volume", "a1": "no such volume", "b0": "no such volume", "b1": "no such volume"}
	p0 := c.create(newPod("p0", spec("A", 1, "p:2:2")))
	p1 := c.create(newPod("p1", spec("A", 1, "p:2:2")))
	for range 20 { // the gang tries one node after the other, less and less often
		c.waits(p0)
		c.clock.add(time.Minute)
	}
	assert.Contains(t, c.waits(p1), "no such volume")
	assert.Empty(t, deleted())
	for _, o := range []string{"o0", "o1", "o2", "o3"} {
		var status struct{ Status struct{ State string } }
		c.get("/v1/inspect/affinitygroups/B/"+o, &status)
		assert.Equal(t, "Allocated", status.Status.State, "what was reserved is given back")
	}
}

// One of the two nodes for the gang can't run it. The gang gets other nodes, and only the pods on those nodes are evicted.
func TestAGangTriesOtherNodesBeforeOthersEnd(t *testing.T) {
	c := newCluster(t, twoTeams)
	at := c.fill()
	deleted := c.holdDeletes()
	p0 := c.create(newPod("p0", spec("A", 1, "p:2:2")))
	p1 := c.create(newPod("p1", spec("A", 1, "p:2:2")))
	c.b.Decide()
	first := [2]string{c.onTrial(p0), c.onTrial(p1)}
	assert.NotEmpty(t, first[0])
	assert.NotEqual(t, first[0], first[1])
	c.refusing = map[string]string{first[0]: "its port is taken"}
	assert.Contains(t, c.waits(p0), "its port is taken")
	assert.Empty(t, deleted())
	c.clock.add(10 * time.Second)
	c.waits(p0)
	assert.Equal(t, api.Preempting, c.state(p0))
	assert.Equal(t, api.Preempting, c.state(p1))
	c.eventually(func() bool { return len(deleted()) == 2 })
	for _, name := range deleted() {
		assert.NotContains(t, first, at[name])
	}
}
