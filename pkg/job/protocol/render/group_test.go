package render

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// The scheduler lets a pod join a gang only if the pod requests the same type of leaf cells. If each role without GPUs in an affinity group chose
// a type by its own size, this job could never start as a whole.
func TestAllPodsOfAGangMayJoinIt(t *testing.T) {
	o := options()
	o.Cluster.SKUs["SMALL"] = SKU{MilliCPU: 1000, MemoryMB: 4 << 10, PerNode: 8}
	o.Cluster.SKUs["WIDE"] = SKU{MilliCPU: 1000, MemoryMB: 4 << 10, PerNode: 32}
	o.Cluster.VirtualClusters["default"].Cells["SMALL"] = 64
	o.Cluster.VirtualClusters["default"].Cells["WIDE"] = 32
	role := func(name string, cpu int) string {
		return fmt.Sprintf("  %s: {instances: 1, dockerImage: img, resourcePerInstance: {cpu: %d, memoryMB: 1024, gpu: 0}, commands: [a]}\n", name, cpu)
	}
	f := mustRender(t, job(t, role("ps", 2)+role("w", 16), "extras: {hivedScheduler: {taskRoles: {ps: {affinityGroupName: g}, w: {affinityGroupName: g}}}}\n"), o).Framework

	var c cell.Config
	c.Processors = []string{"SMALL", "WIDE"}
	c.Types = []cell.Type{{Name: "SMALL-NODE", Child: "SMALL", Children: 8, Node: true}, {Name: "WIDE-NODE", Child: "WIDE", Children: 32, Node: true}}
	vc := cell.VirtualCluster{Name: "default", Cells: []cell.Virtual{{Type: "SMALL-NODE", Count: 8}, {Type: "WIDE-NODE", Count: 1}}}
	c.VirtualClusters = []cell.VirtualCluster{vc}
	for range 8 {
		c.Physical = append(c.Physical, cell.Physical{Type: "SMALL-NODE"})
	}
	c.Physical = append(c.Physical, cell.Physical{Type: "WIDE-NODE"})
	s, err := cell.New(c)
	require.NoError(t, err)
	for _, n := range s.Nodes() {
		s.SetNode(n, true)
	}
	// The large task comes first. It gets cells of the type whose machines have room for both tasks.
	for _, i := range []int{1, 0} {
		r, err := annotation.ParseRequest(f.Spec.TaskRoles[i].Task.Pod.Annotations[annotation.SpecKey], "pai-jobs/x")
		require.NoError(t, err)
		pod := cell.PodID(fmt.Sprint(i))
		d := s.Schedule(pod, r, cell.Filtering, nil)
		if assert.Equal(t, cell.Bind, d.Result, "%s (leaf type %s)", d.Reason, r.LeafType) {
			_, err = s.Allocate(pod, r, d.Placement, d.Slot)
			require.NoError(t, err)
		}
	}
}
