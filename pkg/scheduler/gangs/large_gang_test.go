package gangs

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/queue"
)

type freeRecorder struct {
	record.EventRecorder
	b    *Store
	free []bool
}

func (r *freeRecorder) Event(runtime.Object, string, string, string) {
	free := r.b.mu.TryLock()
	if free {
		r.b.mu.Unlock()
	}
	r.free = append(r.free, free)
}

func TestEventsAreToldWithoutTheLock(t *testing.T) {
	c := newBenchCluster(t, 1, 8)
	told := &freeRecorder{b: c.b}
	c.b.events = told
	c.decide()
	c.bound()
	c.gang("waits", -1, 2, 8)
	c.decide()
	assert.Equal(t, []bool{true, true}, told.free)
}

func TestPodsOfAGangAreBoundTogetherInAnyOrder(t *testing.T) {
	c := newBenchCluster(t, 1, 8)
	c.decide()
	for _, uid := range c.uids() {
		c.b.locked(func(s *state) { s.gone(uid) })
	}
	pods := c.gang("g", 5, 4, 8)
	c.decide()
	permit := func(i int) (n int, together bool) {
		of, together, has := c.b.Permit(pods[i].UID)
		require.True(t, has)
		return len(of), together
	}
	for _, i := range []int{2, 3, 0} {
		n, together := permit(i)
		assert.True(t, n == 0 && !together)
	}
	c.b.Withdraw(pods[2].UID)
	n, together := permit(1)
	assert.True(t, n == 0 && !together, "one of those before can't be bound any more")
	c.b.locked(func(s *state) { s.gone(pods[3].UID) })
	n, together = permit(2)
	assert.True(t, n == 3 && together, "the last one is gone")
	c.b.locked(func(s *state) {
		assert.Equal(t, api.Binding, s.pods[pods[0].UID].state)
		s.takeBack(s.pods[pods[0].UID].gang, "no reason")
	})
	_, together, has := c.b.Permit(pods[0].UID)
	assert.False(t, together || has)
}

func TestAPodOnTrialIsBesideThoseThatComeToItsNode(t *testing.T) {
	c := newBenchCluster(t, 1, 4)
	c.decide()
	c.bound()
	pods := c.gang("g", 5, 32, 4)
	c.decide()
	at := func(i int) string {
		place, ok := c.b.Place(pods[i].UID)
		require.True(t, ok && place.Trial)
		return place.Node
	}
	require.Equal(t, at(0), at(1))
	assert.Empty(t, c.b.Beside(pods[1].UID))
	c.b.Tried(pods[0].UID, at(0), true, "")
	beside := c.b.Beside(pods[1].UID)
	require.Len(t, beside, 1)
	assert.Equal(t, pods[0].UID, beside[0].UID)
	assert.Empty(t, c.b.Beside(pods[2].UID), "it is on another node")
	c.b.locked(func(s *state) { s.gone(pods[0].UID) })
	assert.Empty(t, c.b.Beside(pods[1].UID))
}

// Other requests get the lock between two parts of an eviction.
func TestAnEvictionInPartsGoesOnWithWhatIsThere(t *testing.T) {
	const nodes, all = 320, 2560
	for name, c := range map[string]struct {
		between func(c *benchCluster)
		told    int
	}{
		"nothing happens":          {func(*benchCluster) {}, all},
		"the last victims end":     {func(c *benchCluster) { c.leave(c.b.state.evicting.left[500:]) }, evictAtOnce + 500},
		"the preemptor is deleted": {func(c *benchCluster) { c.b.locked(func(s *state) { s.gone(c.large[0].UID) }) }, evictAtOnce},
		"another configuration":    {(*benchCluster).swapped, evictAtOnce},
		"another life": {func(c *benchCluster) {
			c.b.mu.Lock()
			defer c.b.unlock()
			s, err := c.b.newState(c.b.active, nil, nil)
			require.NoError(t, err)
			c.b.state = s
		}, evictAtOnce},
		"another replica leads": {func(c *benchCluster) { c.b.state = nil }, evictAtOnce},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBenchCluster(t, nodes/16, 1)
			for _, step := range []string{"fill", "come", "decide", "trials"} {
				b.step(step)
			}
			b.b.locked(func(s *state) { s.try(s.pods[b.large[0].UID].gang) })
			b.b.finish(queue.Waits)
			require.Len(t, b.tasks, evictAtOnce)
			require.Len(t, b.b.state.evicting.left, all-evictAtOnce)
			c.between(b)
			b.b.evictRest()
			assert.Len(t, b.tasks, c.told)
		})
	}
}

// swapped replaces the configuration with a different text that contains the same cells.
func (c *benchCluster) swapped() {
	c.b.mu.Lock()
	defer c.b.unlock()
	require.Empty(c.t, c.b.applyConfig(c.b.active.text+"\n"))
	for _, name := range c.b.state.core.Nodes() {
		c.b.state.reconcileNode(name, readyNode(name))
	}
}

func (c *benchCluster) inState(state string) (n int) {
	for _, p := range c.large {
		if known := c.b.state.pods[p.UID]; known != nil && known.state == state {
			n++
		}
	}
	return n
}

// Other requests get the lock between two parts of the placement.
func TestPlacesThatAreGivenInPartsGoOnWithWhatIsThere(t *testing.T) {
	const all = placeAtOnce + 280
	for name, tt := range map[string]struct {
		between     func(c *benchCluster)
		then, later int
	}{
		"nothing happens": {func(*benchCluster) {}, all, all},
		"some are deleted": {func(c *benchCluster) {
			for _, p := range c.large[all-30:] {
				c.b.locked(func(s *state) { s.gone(p.UID) })
			}
		}, all - 30, all - 30},
		"a node refuses one": {func(c *benchCluster) {
			c.b.Refuse(c.large[5].UID, c.b.state.pods[c.large[5].UID].node, "the node is not ready")
		}, 0, all},
		"another configuration": {(*benchCluster).swapped, 0, all},
		"all are deleted, and come again": {func(c *benchCluster) {
			for _, p := range c.large {
				c.b.locked(func(s *state) { s.gone(p.UID) })
			}
			for _, p := range c.large {
				c.b.locked(func(s *state) { s.observe(p) })
			}
		}, 0, all},
	} {
		t.Run(name, func(t *testing.T) {
			c := newBenchCluster(t, 11, 8)
			for _, uid := range c.uids() {
				c.b.locked(func(s *state) { s.gone(uid) })
			}
			c.large = c.gang("large", 5, all, 1)
			var attempt queue.Attempt
			c.b.locked(func(s *state) { attempt, _ = s.try(s.pods[c.large[0].UID].gang) })
			require.Equal(t, queue.Starts, attempt)
			require.Equal(t, placeAtOnce, c.inState(api.Binding))
			tt.between(c)
			c.b.finish(attempt)
			assert.Equal(t, tt.then, c.inState(api.Binding))
			c.decide()
			assert.Equal(t, tt.later, c.inState(api.Binding))
		})
	}
}

// Other requests get the lock between the search and the reservation.
func TestWhatWasFoundIsReservedOnlyIfItIsStillSo(t *testing.T) {
	for name, tt := range map[string]struct {
		between func(c *benchCluster)
		then    queue.Attempt
		trial   bool
		later   string // the final state of the gang's pods
	}{
		"nothing happens":               {func(*benchCluster) {}, queue.Waits, true, api.Waiting},
		"one of it is deleted":          {func(c *benchCluster) { c.b.locked(func(s *state) { s.gone(c.large[3].UID) }) }, queue.Waits, true, api.Waiting},
		"the pod that asked is deleted": {func(c *benchCluster) { c.b.locked(func(s *state) { s.gone(c.large[0].UID) }) }, queue.Unfit, false, api.Waiting},
		"the others end": {func(c *benchCluster) {
			for _, uid := range c.uids() {
				c.b.locked(func(s *state) {
					if s.pods[uid].request.Gang != "large" {
						s.gone(uid)
					}
				})
			}
		}, queue.Starts, false, api.Binding},
		"another configuration": {(*benchCluster).swapped, queue.Waits, false, api.Waiting},
	} {
		t.Run(name, func(t *testing.T) {
			c := newBenchCluster(t, 1, 8)
			c.step("fill")
			c.step("come")
			var attempt queue.Attempt
			c.b.locked(func(s *state) { attempt, _ = s.try(s.pods[c.large[0].UID].gang) })
			require.Equal(t, queue.Waits, attempt)
			_, reserved := c.b.Place(c.large[1].UID)
			require.False(t, reserved)
			tt.between(c)
			attempt, _ = c.b.finish(attempt)
			assert.Equal(t, tt.then, attempt)
			at, has := c.b.Place(c.large[1].UID)
			assert.Equal(t, tt.trial, has && at.Trial)
			c.decide()
			assert.Positive(t, c.inState(tt.later))
			at, has = c.b.Place(c.large[1].UID)
			assert.True(t, has && at.Trial == (tt.later == api.Waiting))
		})
	}
}

func TestAVictimIsToldAgainOnlyIfItIsStillThereAfterAMinute(t *testing.T) {
	c := newBenchCluster(t, 1, 8)
	for _, step := range []string{"fill", "come", "decide", "trials", "preempt", "evict"} {
		c.step(step)
	}
	for after, told := range map[time.Duration]int{evictAgain - time.Second: 0, evictAgain: 16} {
		c.tasks = nil
		at := c.clock.at
		c.clock.add(after)
		c.decide()
		assert.Len(t, c.tasks, told, after)
		c.clock.at = at
		c.b.state.refreshed = at.Add(-refreshEvery)
	}
}

func TestAQueueThatIsMadeInPartsHasAllGangs(t *testing.T) {
	c := newBenchCluster(t, partOf/128+1, 1)
	q, leading := c.b.waiting()
	assert.True(t, leading)
	whole := c.b.state.order()
	require.Equal(t, partOf+128, q.Len())
	names := func(order []*queue.Gang) (out []string) {
		for _, g := range order {
			out = append(out, g.Name)
		}
		return out
	}
	assert.Equal(t, names(whole), names(q.Order()))
}

func TestMetricsAreSentWithoutTheLock(t *testing.T) {
	c := newBenchCluster(t, 1, 8)
	metrics := make(chan prometheus.Metric)
	go func() {
		defer close(metrics)
		(&gauges{c.b}).Collect(metrics)
	}()
	n := 0
	for range metrics {
		n++
		require.True(t, c.b.mu.TryLock())
		c.b.mu.Unlock()
	}
	assert.Greater(t, n, 20)
}

func TestPartsEndWithTheLead(t *testing.T) {
	c := newBenchCluster(t, 1, 8)
	seen := 0
	assert.False(t, inParts(c.b, make([]int, 2*partOf), func(*state, int) {
		seen++
		c.b.state = nil // another replica is the leader now
	}))
	assert.Equal(t, partOf, seen)
}
