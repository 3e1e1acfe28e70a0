package bound_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
	"github.com/openpai/paictl/research/bound"
)

// small and large return models of the virtual clusters in the traces of 64 GPUs. small has one node and a quad, and large has two nodes and a quad.
func small(queue int) bound.Model {
	return bound.Model{Places: []int{4, 8}, Sizes: []int{1, 2, 4}, Shares: []float64{.40, .14, .46}, Load: .418, Queue: queue}
}

func large(queue int) bound.Model {
	return bound.Model{Places: []int{4, 8, 8}, Sizes: []int{1, 2, 4, 8}, Shares: []float64{.40, .14, .14, .32}, Load: .63, Queue: queue}
}

// guaranteed returns the guaranteed jobs of a virtual cluster.
func guaranteed(jobs []trace.Job, vc string) []trace.Job {
	var out []trace.Job
	for _, j := range jobs {
		if j.Priority >= 0 && j.VC == vc {
			out = append(out, j)
		}
	}
	return out
}

// For every placement of four jobs of 4 GPUs on two nodes, the two jobs that finish first may be on different nodes. A policy that knows the future
// avoids that. A policy that doesn't know the future can't avoid it in all three futures.
func TestNoPolicyThatDoesNotKnowTheFutureIsRightInAllFutures(t *testing.T) {
	m := bound.Model{Places: []int{8, 8}, Sizes: []int{4, 8}, Shares: []float64{.5, .5}, Load: .5}
	s, err := bound.NewSolver(m)
	require.NoError(t, err)
	_, value := s.Solve(bound.Waits, nil, 1e-6)
	waited := 0
	for _, partner := range []int{1, 2, 3} { // the job that finishes first together with job 0
		var jobs []trace.Job
		for i := range 4 {
			j := trace.Job{ID: i, Arrival: i, Duration: 100, Pods: 1, GPUsPerPod: 4}
			if i == 0 || i == partner {
				j.Duration = 10
			}
			jobs = append(jobs, j)
		}
		jobs = append(jobs, trace.Job{ID: 4, Arrival: 50, Duration: 10, Pods: 1, GPUsPerPod: 8})
		c := bound.NewClairvoyant(m.Places, jobs)
		fewest, ok := c.Fewest(1)
		assert.True(t, ok)
		assert.Equal(t, 0, fewest)
		waited += c.Follow(s, value)
	}
	assert.Equal(t, 2, waited, "the choice is the same in all three, and right in one")
}

func TestFewestSaysWhereItIsMoreThanAsked(t *testing.T) {
	jobs := []trace.Job{
		{ID: 0, Arrival: 0, Duration: 10, Pods: 1, GPUsPerPod: 6}, {ID: 1, Arrival: 0, Duration: 10, Pods: 1, GPUsPerPod: 6},
		{ID: 2, Arrival: 1, Duration: 10, Pods: 1, GPUsPerPod: 4},
	}
	c := bound.NewClairvoyant([]int{8, 8}, jobs)
	_, ok := c.Fewest(0)
	assert.False(t, ok)
	fewest, ok := c.Fewest(5)
	assert.True(t, ok)
	assert.Equal(t, 1, fewest)
	jobs[2].Priority = 1
	fewest, _ = bound.NewClairvoyant([]int{8, 8}, jobs).Fewest(5)
	assert.Equal(t, 0, fewest, "the one that was preempted is tried when another ends, and fits then")
}

// PAICTL_BOUND=1 runs the test for all virtual clusters and seeds, which takes minutes.
func TestFewestWaitsOfTheTracesOf64GPUs(t *testing.T) {
	all := os.Getenv("PAICTL_BOUND") != ""
	seeds, models := []uint64{7}, []bound.Model{small(2)}
	if all {
		seeds, models = []uint64{1, 7, 42}, append(models, large(1))
	}
	for m, model := range models {
		s, err := bound.NewSolver(model)
		require.NoError(t, err)
		_, value := s.Solve(bound.Waits, nil, 1e-3)
		for _, seed := range seeds {
			tr, err := trace.Generate(64, seed)
			require.NoError(t, err)
			for v := 2 * m; v < 2*m+2; v++ {
				c := bound.NewClairvoyant(model.Places, guaranteed(tr.Jobs, fmt.Sprintf("vc%d", v)))
				best := c.Follow(s, value)
				least := " more than 5"
				if fewest, ok := c.Fewest(5); ok {
					least = fmt.Sprintf(" %d", fewest)
					assert.LessOrEqual(t, fewest, best)
				}
				t.Log(strings.Join([]string{fmt.Sprintf("seed %d, vc%d: the best policy of the model %d, who knows the future", seed, v, best), least}, ""))
			}
		}
	}
}
