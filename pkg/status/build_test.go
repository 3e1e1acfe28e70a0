package status

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

func TestASickGPUThatAJobHasIsBadForItsVirtualCluster(t *testing.T) {
	b := newBooks()
	b.setQueue(&schedulerapi.Queue{}, &schedulerapi.VirtualClusters{Items: []schedulerapi.VirtualCluster{{Name: "default", Guaranteed: 8, Used: 3, Bad: 1}, {Name: "vision", Guaranteed: 8}}})
	has := func(vc string, opportunistic bool) *Owner {
		return &Owner{Pod: "pai-jobs/p", VirtualCluster: vc, Opportunistic: opportunistic}
	}
	b.machineList = []Machine{{Name: "gpu-1", State: MachineReady, GPUs: []GPU{
		{Index: 0, Health: GPUHealthy, Owner: has("default", false)}, {Index: 1, Health: GPUHealthy, Owner: has("default", false)},
		{Index: 2, Health: GPUSick}, {Index: 3, Health: GPUIgnored, Owner: has("default", false)}, {Index: 4, Health: GPUSick, Owner: has("vision", true)},
	}}}
	b.refresh()
	before := b.ownerList
	require.Len(t, before, 2)
	assert.Equal(t, 1, before[0].Bad, "one that no one has is counted by the scheduler")
	assert.Zero(t, before[1].Bad, "it has no guarantee there")

	b.machineList = []Machine{b.machineList[0]}
	b.machineList[0].GPUs = append([]GPU{{Index: 0, Health: GPUSick, Reason: "XID 79", Owner: has("default", false)}}, b.machineList[0].GPUs[1:]...)
	b.refresh()
	assert.Equal(t, 2, b.ownerList[0].Bad)
	assert.Equal(t, 1, before[0].Bad, "a model that was published never changes")
	b.refresh()
	assert.Equal(t, 2, b.ownerList[0].Bad, "nor is it counted twice")
}
