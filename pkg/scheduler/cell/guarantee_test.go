package cell

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reservedOverLazy returns a scheduler in which a gang runs without its guarantee on both nodes. A stronger gang has reserved
// the cells of one node.
func reservedOverLazy(t *testing.T) (s *Scheduler, strong *Request) {
	t.Helper()
	s = freshScheduler(t, quads(2, VirtualCluster{Name: "A", Cells: []Virtual{{"NODE", 2}}}))
	lazy := flatGang("A", "lazy", 3, 2, 4)
	lazy.LazyPreemption = true
	mustRun(t, s, lazy)
	strong = flatGang("A", "strong", 5, 1, 4)
	reserve(t, s, strong)
	g, _ := s.Gang("A", "lazy")
	require.True(t, g.Downgraded)
	return s, strong
}

func reserve(t *testing.T, s *Scheduler, r *Request) {
	t.Helper()
	d := s.Schedule(PodID(r.Gang), r, Preempting, nil)
	require.Equal(t, Preempt, d.Result, d.Reason)
	require.NoError(t, s.Check())
}

func TestAGangHasItsGuaranteeBackWhenTheReservationThatTookItEnds(t *testing.T) {
	s, strong := reservedOverLazy(t)
	back := s.DeleteUnallocated("strong", strong)
	require.Len(t, back, 1)
	assert.Equal(t, "lazy", back[0].Gang)
	assert.True(t, back[0].Restored)
	g, _ := s.Gang("A", "lazy")
	assert.False(t, g.Downgraded)
	require.NoError(t, s.Check())
}

func TestAGangStaysWithoutItsGuaranteeWhereAnotherHasReservedItsCells(t *testing.T) {
	s, strong := reservedOverLazy(t)
	reserve(t, s, flatGang("A", "weak", 1, 1, 4))
	assert.Empty(t, s.DeleteUnallocated("strong", strong))
	g, _ := s.Gang("A", "lazy")
	assert.True(t, g.Downgraded)
	require.NoError(t, s.Check())
}
