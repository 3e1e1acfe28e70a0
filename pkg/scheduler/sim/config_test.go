package sim_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/scheduler/sim"
	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
)

func TestAGeneratedClusterIsTheSameAsAValueAndAsAFile(t *testing.T) {
	for _, gpus := range trace.Sizes()[:4] {
		t.Run(strconv.Itoa(gpus), func(t *testing.T) {
			tr, err := trace.Generate(gpus, 1)
			require.NoError(t, err)
			parsed, findings := config.Parse("hived.yaml", tr.YAML)
			require.NoError(t, findings.Err())
			assert.Empty(t, tr.Config.Validate())
			want, err := tr.Config.Expand()
			require.NoError(t, err)
			got, err := parsed.Expand()
			require.NoError(t, err)
			assert.Equal(t, want, got)
			assert.Equal(t, tr.Config.VirtualClusters, parsed.VirtualClusters)

			d, err := sim.Divide(parsed)
			require.NoError(t, err)
			assert.Equal(t, gpus, d.GPUs)
			assert.Equal(t, gpus/8, d.Nodes)
			assert.Zero(t, d.Unassigned.GPUs)
		})
	}
}

func TestDivideNamesTheLargestCellsThatBelongToNobody(t *testing.T) {
	const text = `
physicalCluster:
  cellTypes:
    NODE: {childCellType: V100, childCellNumber: 4, isNodeLevel: true}
    RACK: {childCellType: NODE, childCellNumber: 3}
    CPU-NODE: {childCellType: T4, childCellNumber: 2, isNodeLevel: true}
  physicalCells:
  - {cellType: RACK, cellChildren: [{cellAddress: a0}, {cellAddress: a1, pinnedCellId: PIN}, {cellAddress: a2}]}
  - {cellType: RACK, cellChildren: [{cellAddress: b0}, {cellAddress: b1}, {cellAddress: b2}]}
  - {cellType: CPU-NODE, cellAddress: c0}
virtualClusters:
  A: {virtualCells: [{cellType: RACK.NODE, cellNumber: 1}], pinnedCells: [{pinnedCellId: PIN}]}
  B: {virtualCells: [{cellType: RACK.NODE.V100, cellNumber: 2}]}
`
	c, findings := config.Parse("c.yaml", []byte(text))
	require.NoError(t, findings.Err())
	d, err := sim.Divide(c)
	require.NoError(t, err)
	assert.Equal(t, 26, d.GPUs)
	assert.Equal(t, 7, d.Nodes)
	require.Len(t, d.Chains, 2)
	assert.Equal(t, sim.Chain{Name: "RACK", LeafType: "V100", Nodes: 6, GPUs: 24, Levels: []sim.Level{
		{CellType: "RACK", GPUs: 12, Count: 2}, {CellType: "NODE", GPUs: 4, Count: 6, IsNodeLevel: true}, {CellType: "V100", GPUs: 1, Count: 24}}}, d.Chains[0])
	assert.Equal(t, []sim.PinnedCell{{ID: "PIN", CellType: "NODE", GPUs: 4}}, d.VirtualClusters[0].Pinned)
	assert.Equal(t, 8, d.VirtualClusters[0].GPUs)
	assert.Equal(t, 2, d.VirtualClusters[1].GPUs)
	// The rack of the pinned node has two more nodes: A owns one node, and B owns two GPUs of the other node. The second rack
	// is whole.
	assert.Equal(t, 16, d.Unassigned.GPUs)
	var left []string
	for _, l := range d.Unassigned.Cells {
		left = append(left, strconv.Itoa(l.Count)+" "+l.CellType)
	}
	assert.Equal(t, []string{"1 RACK", "2 V100", "1 CPU-NODE"}, left)
}
