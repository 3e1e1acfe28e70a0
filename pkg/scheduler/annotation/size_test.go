package annotation

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// onBigMachines returns a gang with one pod on each of n machines, and its place. Each pod has all cells of its machine.
func onBigMachines(n, cells int) (*cell.Request, *cell.Placement) {
	r := &cell.Request{VirtualCluster: "team", Gang: "g", Root: gang("g", cell.PodSet{Count: n, Cells: cells})}
	p := &cell.Placement{Chain: "standard-d256-NODE", Order: 7}
	for i := range n {
		pod := cell.PodPlacement{Node: fmt.Sprintf("worker-%d", i)}
		for k := range cells {
			pod.Indices = append(pod.Indices, int32(k))
			pod.Preassigned = append(pod.Preassigned, "standard-d256-NODE")
			pod.Virtual = append(pod.Virtual, fmt.Sprintf("team/0/%d/%d", i, k))
		}
		p.Pods = append(p.Pods, pod)
	}
	return r, p
}

func TestTheBindInfoOfLargeGangsLeavesTypesToThePlacement(t *testing.T) {
	for _, n := range []int{1, 40} {
		r, p := onBigMachines(n, 255)
		b := Write(r, decide(p, n-1))
		if n == 1 {
			assert.Contains(t, b.BindInfo, "preassignedCellTypes", "as HiveD writes them")
		} else {
			assert.NotContains(t, b.BindInfo, "preassignedCellTypes")
		}
		size := len(b.Isolation) + len(b.BindInfo) + len(b.Placement)
		assert.Less(t, size, MaxSize)
		assert.GreaterOrEqual(t, Size(r, p), size)
		assert.LessOrEqual(t, LeastSize(r), size)
		back, slot, err := ReadBound(r, bound(b))
		require.NoError(t, err)
		assert.Equal(t, n-1, slot)
		assert.Equal(t, p, back)
	}
}

func TestGangsThatNoAnnotationHoldsAreKnownBefore(t *testing.T) {
	r, p := onBigMachines(100, 255)
	assert.Greater(t, LeastSize(r), MaxSize)
	assert.Greater(t, Size(r, p), MaxSize)
}
