package books

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

// freeRecorder notes whether the lock was free when an event was told.
type freeRecorder struct {
	record.EventRecorder
	b    *Books
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

// Between two parts of an eviction others have the lock.
func TestAnEvictionInPartsGoesOnWithWhatIsThere(t *testing.T) {
	const nodes, all = 320, 2560
	for name, c := range map[string]struct {
		between func(c *benchCluster)
		told    int
	}{
		"nothing happens":          {func(*benchCluster) {}, all},
		"the last victims end":     {func(c *benchCluster) { c.leave(c.b.state.evicting.left[500:]) }, evictAtOnce + 500},
		"the preemptor is deleted": {func(c *benchCluster) { c.b.locked(func(s *state) { s.gone(c.large[0].UID) }) }, evictAtOnce},
		"another configuration": {func(c *benchCluster) {
			c.b.mu.Lock()
			defer c.b.unlock()
			require.Empty(t, c.b.applyConfig(c.b.active.text+"\n"))
		}, evictAtOnce},
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
			require.Len(t, b.tasks, evictAtOnce)
			require.Len(t, b.b.state.evicting.left, all-evictAtOnce)
			c.between(b)
			b.b.evictRest()
			assert.Len(t, b.tasks, c.told)
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
	whole := c.b.state.queue()
	require.Equal(t, partOf+128, q.Len())
	names := func(order []*queue.Gang) (out []string) {
		for _, g := range order {
			out = append(out, g.Name)
		}
		return out
	}
	assert.Equal(t, names(whole.Order()), names(q.Order()))
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
		c.b.state = nil // another replica leads from now on
	}))
	assert.Equal(t, partOf, seen)
}
