package bound_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/research/bound"
)

// One place without a queue is Erlang's loss system, whose figures are known. With two servers and load 1 for each, 2/5 of all jobs find both servers
// busy, and no job waits while a server is free.
func TestSolveAgreesWithErlang(t *testing.T) {
	s, err := bound.NewSolver(bound.Model{Places: []int{1, 1}, Sizes: []int{1}, Shares: []float64{1}, Load: 1})
	require.NoError(t, err)
	assert.Equal(t, 3, s.States())
	share, _ := s.Solve(bound.Waits, nil, 1e-9)
	assert.InDelta(t, 0, share, 1e-9)
	held, _ := s.Solve(bound.Nodes, nil, 1e-9)
	assert.InDelta(t, 2*(1-2./5)/8, held, 1e-8)
}

// The test compares the core's rule, which chooses the smallest room that is large enough, with the best of all policies.
func TestFullestFirstIsCloseToTheBestPolicy(t *testing.T) {
	models := []bound.Model{small(2), {Places: []int{8, 8}, Sizes: []int{1, 2, 4, 8}, Shares: []float64{.40, .14, .14, .32}, Load: .63, Queue: 2}}
	if os.Getenv("PAICTL_BOUND") != "" {
		models = append(models, large(2))
	}
	for _, m := range models {
		s, err := bound.NewSolver(m)
		require.NoError(t, err)
		best, _ := s.Solve(bound.Waits, nil, 1e-4)
		fullest, _ := s.Solve(bound.Waits, bound.FullestFirst, 1e-4)
		emptiest, _ := s.Solve(bound.Waits, bound.EmptiestFirst, 1e-4)
		nodes, _ := s.Solve(bound.Nodes, nil, 1e-4)
		fullestNodes, _ := s.Solve(bound.Nodes, bound.FullestFirst, 1e-4)
		t.Logf("places %v, %d states: waits %.4f, fullest first %.4f, emptiest first %.4f; nodes %.3f, fullest first %.3f",
			m.Places, s.States(), best, fullest, emptiest, nodes, fullestNodes)
		assert.Less(t, best, fullest)
		assert.Less(t, fullest, emptiest/3)
		assert.Less(t, fullestNodes, nodes*1.03, "no policy without moves holds much less")
	}
}

func TestNewSolverRefusesWhatItHasNoRoomFor(t *testing.T) {
	for _, m := range []bound.Model{
		{Places: []int{8, 8, 8, 8, 8}, Sizes: []int{1}, Shares: []float64{1}},
		{Places: []int{8, 4}, Sizes: []int{1}, Shares: []float64{1}},
		{Places: []int{8}, Sizes: []int{1, 2}, Shares: []float64{1}},
	} {
		_, err := bound.NewSolver(m)
		assert.ErrorContains(t, err, "in order of size")
	}
}
