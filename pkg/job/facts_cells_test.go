package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/protocol/render"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
)

const cellsOfBothKinds = `physicalCluster:
  skuTypes: {CPU: {cpu: 1}}
  cellTypes:
    NODE: {childCellType: G, childCellNumber: 8, isNodeLevel: true}
    CPU-NODE: {childCellType: CPU, childCellNumber: 15, isNodeLevel: true}
    SMALL-NODE: {childCellType: CPU, childCellNumber: 1, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: g1}
    - {cellType: CPU-NODE, cellAddress: c1}
    - {cellType: CPU-NODE, cellAddress: c2, pinnedCellId: prep}
    - {cellType: SMALL-NODE, cellAddress: c3}
virtualClusters:
  team: {virtualCells: [{cellType: CPU-NODE, cellNumber: 1}], pinnedCells: [{pinnedCellId: prep}]}
  other: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
`

func nodeOf(name, capacity, allocatable, memory string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Capacity:    corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(capacity)},
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(allocatable), corev1.ResourceMemory: resource.MustParse(memory)},
	}}
}

func TestACPUCellIsAProcessorWithItsShareOfTheMemory(t *testing.T) {
	config, found := schedulerconfig.Parse("x", []byte(cellsOfBothKinds))
	require.NoError(t, found.Err())
	core, err := cell.New(config)
	require.NoError(t, err)
	nodes := []corev1.Node{nodeOf("g1", "64", "64", "512Gi"), nodeOf("c1", "16", "16", "64Gi"), nodeOf("c2", "16", "16", "80Gi")}
	got := shares(nodes, machinesByLeaf(core.Physical()), config.Processors, 500, 0)
	assert.Equal(t, map[string]render.SKU{
		"G":   {GPU: 1, MilliCPU: 7937, MemoryMB: 64 << 10, PerNode: 8, NoRDMA: true},
		"CPU": {MilliCPU: 1000, MemoryMB: 4 << 10, PerNode: 15, NoRDMA: true},
	}, got, "fifteen cells of sixteen processors: one is the platform's, and so is its memory")

	small := shares([]corev1.Node{nodeOf("c3", "1", "900m", "1Gi")}, machinesByLeaf(core.Physical()), config.Processors, 200, 0)
	assert.Equal(t, map[string]render.SKU{"CPU": {MilliCPU: 700, MemoryMB: 1 << 10, PerNode: 1, NoRDMA: true}}, small, "of a small machine, what there is")

	fresh := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "c2"}}
	assert.Equal(t, 1000, shares([]corev1.Node{fresh, nodeOf("c1", "16", "15800m", "64Gi")}, machinesByLeaf(core.Physical()), config.Processors, 200, 200)["CPU"].MilliCPU, "what a node has that has just come is not known yet")
	full := shares([]corev1.Node{nodeOf("c3", "1", "100m", "100Mi")}, machinesByLeaf(core.Physical()), config.Processors, 200, 200)
	assert.Equal(t, map[string]render.SKU{"CPU": {MilliCPU: 1, MemoryMB: 1, PerNode: 1, NoRDMA: true}}, full, "0 would mean that it isn't known, and hold every task")

	vcs := owned(&config, core.Virtual())
	assert.Equal(t, map[string]int{"CPU": 30}, vcs["team"].Cells)
	assert.Equal(t, map[string]string{"prep": "CPU"}, vcs["team"].PinnedTypes)
	assert.Equal(t, map[string]int{"G": 8}, vcs["other"].Cells)
}

func TestOnlyMachinesOfJobsOfferRDMA(t *testing.T) {
	with, without, master := nodeOf("g1", "8", "8", "64Gi"), nodeOf("g2", "8", "8", "64Gi"), nodeOf("m1", "8", "8", "64Gi")
	with.Status.Capacity[render.ResourceRDMA] = resource.MustParse("1")
	with.Labels = map[string]string{labelWorker: "true"}
	master.Status.Capacity[render.ResourceRDMA] = resource.MustParse("1")
	without.Status.Capacity[render.ResourceRDMA] = resource.MustParse("0")
	marks := map[string]string{labelWorker: "true"}
	assert.Equal(t, 1, mostOf([]corev1.Node{with, without, master}, marks, render.ResourceRDMA))
	assert.Equal(t, 0, mostOf([]corev1.Node{without, master}, marks, render.ResourceRDMA), "the master runs no jobs")
	assert.Equal(t, 1, mostOf([]corev1.Node{without, master}, nil, render.ResourceRDMA), "no node is marked: all run jobs")
	of := shares([]corev1.Node{with, without}, map[string]map[string]int{"A": {"g1": 8, "g2": 8}, "B": {"g2": 8}}, nil, 0, 0)
	assert.False(t, of["A"].NoRDMA)
	assert.True(t, of["B"].NoRDMA)
}
