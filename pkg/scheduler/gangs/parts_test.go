package gangs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/queue"
)

// A change between two parts of the placement prevents the places of a gang's remaining pods.
func TestAGangThatLosesAPlaceBetweenTwoPartsStartsWithAllOrNone(t *testing.T) {
	for name, between := range map[string]func(c *benchCluster){
		"a node fails": func(c *benchCluster) {
			used := map[string]int{}
			for _, p := range c.large {
				if at, ok := c.b.Place(p.UID); ok {
					used[at.Node]++
				}
			}
			c.b.locked(func(s *state) {
				for _, name := range s.core.Nodes() {
					if used[name] == 0 { // the rest of the gang would run on this node
						n := readyNode(name)
						n.Status.Conditions[0].Status = corev1.ConditionFalse
						s.reconcileNode(name, n)
						return
					}
				}
			})
		},
		"its virtual cluster gets smaller": func(c *benchCluster) {
			c.b.mu.Lock()
			defer c.b.unlock()
			require.Empty(c.t, c.b.applyConfig(strings.Replace(c.b.active.text, "cellNumber: 8}]}", "cellNumber: 7}]}", 1)+"  B: {virtualCells: [{cellType: RACK, cellNumber: 1}]}\n"))
			for _, name := range c.b.state.core.Nodes() {
				c.b.state.reconcileNode(name, readyNode(name))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			const all = placeAtOnce + 24
			c := newBenchCluster(t, 8, 8)
			for _, uid := range c.uids() {
				c.b.locked(func(s *state) { s.gone(uid) })
			}
			c.large = c.gang("large", 5, all, 1)
			var attempt queue.Attempt
			c.b.locked(func(s *state) { attempt, _ = s.try(s.pods[c.large[0].UID].gang) })
			require.Equal(t, placeAtOnce, c.inState(api.Binding))
			between(c)
			c.b.finish(attempt)
			c.decide()
			c.decide()
			binding := c.inState(api.Binding)
			t.Logf("%d of %d have their place", binding, all)
			bound := 0
			for _, p := range c.large {
				if pods, together, _ := c.b.Permit(p.UID); together {
					bound = len(pods)
				}
			}
			assert.Contains(t, []int{0, all}, bound, "that many of %d pods are bound", all)
		})
	}
}

func TestTheFirstPartOfAGangIsNotBoundAlone(t *testing.T) {
	const all = placeAtOnce + 24
	c := newBenchCluster(t, 8, 8)
	for _, uid := range c.uids() {
		c.b.locked(func(s *state) { s.gone(uid) })
	}
	c.large = c.gang("large", 5, all, 1)
	c.b.locked(func(s *state) { s.try(s.pods[c.large[0].UID].gang) })
	require.Equal(t, placeAtOnce, c.inState(api.Binding))
	together := false
	n := 0
	for _, p := range c.large {
		pods, t, has := c.b.Permit(p.UID)
		if has {
			n++
		}
		if t {
			together = true
			n = len(pods)
		}
	}
	assert.False(t, together, "%d of %d pods are told to be bound, as if they were the whole gang", n, all)
}

// A different pod is the gang's first pod when the cells are reserved.
func TestWhatWasFoundForOnePodIsNotGivenToAnother(t *testing.T) {
	c := newCluster(t, twoTeams)
	text := func(own int) string {
		return fmt.Sprintf("virtualCluster: A\npriority: 5\nleafCellType: G\nleafCellNumber: %d\naffinityGroup:\n  name: g\n  members: [{podNumber: 1, leafCellNumber: 2}, {podNumber: 1, leafCellNumber: 1}]\n", own)
	}
	at := c.fill()
	p := c.create(newPod("z-two", text(2)))
	c.b.locked(func(s *state) { s.try(s.pods[p.UID].gang) })
	// The other gangs end, and the state contains the other pod of the gang, which has the same age.
	for name := range at {
		o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: name}}
		c.vanishes(c.pod(o))
	}
	q := newPod("a-one", text(1))
	q.CreationTimestamp = p.CreationTimestamp
	c.b.podSeen(nil, q)
	c.b.finish(queue.Waits)
	c.b.locked(func(s *state) {
		one, two := s.pods[q.UID], s.pods[p.UID]
		assert.Len(t, one.indices, 1, "a-one asks for 1 GPU: %s on %s %v", one.state, one.node, one.indices)
		assert.Len(t, two.indices, 2, "z-two asks for 2 GPUs: %s %q", two.state, two.reason)
	})
}

// If the chart's policy is installed, it prevents changes of requests.
func TestARequestThatChangesBeforeTheReservation(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.fill()
	p := c.create(newPod("p", spec("A", 5, "g:2:2")))
	c.create(newPod("p2", spec("A", 5, "g:2:2")))
	c.b.locked(func(s *state) { s.try(s.pods[p.UID].gang) })
	p = c.pod(p)
	p.Annotations[annotation.SpecKey] = "{{"
	changed := p.DeepCopy()
	changed.ResourceVersion = ""
	c.b.podSeen(p, changed)
	c.b.finish(queue.Waits)
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	assert.NotNil(t, c.b.state, "a bug: the state is gone")
}

func TestARequestThatChangesBetweenTwoParts(t *testing.T) {
	const all = placeAtOnce + 24
	for name, text := range map[string]string{"unreadable": "{{", "another gang": spec("A", 1, "other:2:1")} {
		t.Run(name, func(t *testing.T) {
			c := newBenchCluster(t, 10, 8)
			for _, uid := range c.uids() {
				c.b.locked(func(s *state) { s.gone(uid) })
			}
			c.large = c.gang("large", 5, all, 1)
			c.b.locked(func(s *state) { s.try(s.pods[c.large[0].UID].gang) })
			last := c.large[all-1]
			c.b.locked(func(s *state) {
				for _, p := range c.large {
					if s.pods[p.UID].state == api.Waiting {
						last = p
					}
				}
				changed := last.DeepCopy()
				changed.Annotations = map[string]string{annotation.SpecKey: text}
				s.observe(changed)
			})
			c.b.finish(queue.Starts)
			c.b.mu.Lock()
			defer c.b.mu.Unlock()
			require.NotNil(t, c.b.state, "a bug: the state is gone")
			assert.Equal(t, api.Waiting, c.b.state.pods[last.UID].state, "it has a place as if it were of the gang, and not in the order of the queue")
		})
	}
}
