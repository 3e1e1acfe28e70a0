package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

func machine(name, sku string, labels ...string) layout.Machine {
	m := layout.Machine{Hostname: name, SKU: sku, Roles: []string{layout.RoleWorker}, Labels: map[string]string{}}
	for i := 0; i+1 < len(labels); i += 2 {
		m.Labels[labels[i]] = labels[i+1]
	}
	return m
}

func twoSKUs(machines ...layout.Machine) layout.Layout {
	return layout.Layout{
		MachineSKU: map[string]layout.SKU{
			"8x-a100": {GPU: &layout.GPU{Type: "NVIDIA-A100-SXM4-80GB", Count: 8}},
			"4x-v1.5": {GPU: &layout.GPU{Type: "Tesla-V1.5", Count: 4}},
			"cpu":     {},
		},
		MachineList: machines,
	}
}

func plain() layout.Layout {
	master := machine("master", "8x-a100")
	master.Roles = []string{layout.RoleMaster}
	return twoSKUs(master, machine("a2", "8x-a100"), machine("v1", "4x-v1.5"), machine("a1", "8x-a100"), machine("c1", "cpu"))
}

func TestTheOrderOfMachinesInTheLayoutMeansNothing(t *testing.T) {
	l := twoSKUs(machine("b2", "8x-a100", "rack", "r1"), machine("a2", "8x-a100"), machine("b1", "8x-a100", "rack", "r1"), machine("a1", "8x-a100"))
	want, findings := FromCluster(l, "services.yaml", nil)
	require.NoError(t, findings.Err())
	slices.Reverse(l.MachineList)
	got, _ := FromCluster(l, "services.yaml", nil)
	assert.Equal(t, want, got)
}

func TestFromClusterOfALayout(t *testing.T) {
	want := cell.Config{
		Types: []cell.Type{
			{Name: "4x-v1-5-NODE", Child: "Tesla-V1-5", Children: 4, Node: true},
			{Name: "8x-a100-NODE", Child: "NVIDIA-A100-SXM4-80GB", Children: 8, Node: true},
		},
		Physical: []cell.Physical{
			{Type: "4x-v1-5-NODE", Address: "v1"},
			{Type: "8x-a100-NODE", Address: "a1"},
			{Type: "8x-a100-NODE", Address: "a2"},
		},
		VirtualClusters: []cell.VirtualCluster{{Name: "default", Cells: []cell.Virtual{{Type: "4x-v1-5-NODE", Count: 1}, {Type: "8x-a100-NODE", Count: 2}}}},
	}
	for name, services := range map[string]string{
		"without services":         "",
		"without a section":        "cluster: {common: {}}\n",
		"with the chart's alone":   "scheduler: {replicas: 2, physicalCluster: {}, virtualClusters: {}}\n",
		"with an empty section":    "scheduler:\n",
		"with OpenPAI's empty one": "hivedscheduler: {webservice-port: 30096, config: ''}\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, findings := FromCluster(plain(), "services.yaml", []byte(services))
			require.Empty(t, text(findings))
			assert.Equal(t, want, got)
		})
	}
}

// splitting returns the layout of plain, and a pointer to the GPU of its machine type. Tests may change the GPU.
func splitting() (layout.Layout, *layout.GPU) {
	l := plain()
	sku := l.MachineSKU["8x-a100"]
	gpu := *sku.GPU
	sku.GPU = &gpu
	l.MachineSKU["8x-a100"] = sku
	return l, &gpu
}

func TestFromClusterWhereJobsShareGPUs(t *testing.T) {
	l, gpu := splitting()
	gpu.Parts = 4
	got, findings := FromCluster(l, "services.yaml", nil)
	require.Empty(t, text(findings))
	assert.Equal(t, []cell.Type{
		{Name: "4x-v1-5-NODE", Child: "Tesla-V1-5", Children: 4, Node: true},
		{Name: "8x-a100-GPU", Child: "NVIDIA-A100-SXM4-80GB-PART-4", Children: 4},
		{Name: "8x-a100-NODE", Child: "8x-a100-GPU", Children: 8, Node: true},
	}, got.Types)
	s, err := cell.New(got)
	require.NoError(t, err)
	assert.Len(t, s.Devices("a1"), 32)
	assert.Equal(t, []int32{4, 5, 6, 7}, s.Cells("a1")["8x-a100-GPU"][1])
}

func TestFromClusterWhereGPUsAreSplitIntoInstances(t *testing.T) {
	l, gpu := splitting()
	gpu.MIG = "2g.20gb"
	got, findings := FromCluster(l, "services.yaml", nil)
	require.Empty(t, text(findings))
	assert.Equal(t, []cell.Type{
		{Name: "4x-v1-5-NODE", Child: "Tesla-V1-5", Children: 4, Node: true},
		{Name: "8x-a100-GPU", Child: "NVIDIA-A100-SXM4-80GB-MIG-2G-20GB", Children: 3},
		{Name: "8x-a100-NODE", Child: "8x-a100-GPU", Children: 8, Node: true},
	}, got.Types)
	s, err := cell.New(got)
	require.NoError(t, err)
	assert.Len(t, s.Devices("a1"), 24)
	assert.Equal(t, []int32{3, 4, 5}, s.Cells("a1")["8x-a100-GPU"][1])

	gpu.MIG = "7g.80gb" // this instance is the whole GPU, but still an instance
	got, findings = FromCluster(l, "services.yaml", nil)
	require.Empty(t, text(findings))
	assert.Equal(t, cell.Type{Name: "8x-a100-NODE", Child: "NVIDIA-A100-SXM4-80GB-MIG-7G-80GB", Children: 8, Node: true}, got.Types[1])
}

func TestFromClusterWithRacks(t *testing.T) {
	l := twoSKUs(machine("a3", "8x-a100", "rack", "r2"), machine("a1", "8x-a100", "rack", "r1"), machine("a2", "8x-a100", "rack", "r1"),
		machine("a4", "8x-a100", "topology.kubernetes.io/rack", "r2"))
	got, findings := FromCluster(l, "services.yaml", nil)
	require.Empty(t, text(findings))
	assert.Equal(t, []cell.Type{{Name: "8x-a100-NODE", Child: "NVIDIA-A100-SXM4-80GB", Children: 8, Node: true}, {Name: "8x-a100-RACK-2", Child: "8x-a100-NODE", Children: 2}}, got.Types)
	assert.Equal(t, []cell.Physical{
		{Type: "8x-a100-RACK-2", Address: "r1", Children: []cell.Physical{{Address: "a1"}, {Address: "a2"}}},
		{Type: "8x-a100-RACK-2", Address: "r2", Children: []cell.Physical{{Address: "a3"}, {Address: "a4"}}},
	}, got.Physical)
	assert.Equal(t, []cell.Virtual{{Type: "8x-a100-RACK-2", Count: 2}}, got.VirtualClusters[0].Cells)

	l.MachineList = append(l.MachineList, machine("a5", "8x-a100"), machine("a6", "8x-a100", "rack", "r3"))
	got, findings = FromCluster(l, "services.yaml", nil)
	require.NoError(t, findings.Err())
	assert.Contains(t, text(findings), "the racks of 8x-a100 have different numbers of machines")
	assert.Equal(t, []cell.Virtual{{Type: "8x-a100-RACK-2", Count: 2}, {Type: "8x-a100-RACK-1", Count: 1}, {Type: "8x-a100-NODE", Count: 1}}, got.VirtualClusters[0].Cells)
}

func TestFromClusterWithVirtualClusters(t *testing.T) {
	got, findings := FromCluster(plain(), "services.yaml", []byte("scheduler:\n  virtualClusters:\n    b: {virtualCells: [{cellType: 8x-a100-NODE, cellNumber: 1}]}\n    a: {quota: {perUser: 2}}\n"))
	require.Empty(t, text(findings))
	assert.Equal(t, []cell.VirtualCluster{{Name: "a", Quota: cell.Quota{PerUser: 2}}, {Name: "b", Cells: []cell.Virtual{{Type: "8x-a100-NODE", Count: 1}}}}, got.VirtualClusters)
	assert.Len(t, got.Physical, 3, "the hardware is the layout's")
}

func TestFromClusterSaysWhereAMistakeIs(t *testing.T) {
	tests := map[string]struct{ services, want string }{
		"in the section": {"scheduler:\n  virtualClusters:\n    b:\n      virtualCells:\n      - {cellType: 8x-a100-NODE, cellNumber: 3}\n",
			"services.yaml:5:46: scheduler.virtualClusters.b.virtualCells[0].cellNumber: the virtual clusters own 3 cells of type 8x-a100-NODE (b 3), and there are 2 [scheduler/virtual-cluster]"},
		"in a text": {"hivedscheduler:\n  webservice-port: 1\n  config: |\n    virtualClusters:\n      b:\n        virtualCells:\n        - cellType: X\n          cellNumber: 3\n",
			"services.yaml:7:21: hivedscheduler.config.virtualClusters.b.virtualCells[0].cellType: there is no top-level cell of type \"X\""},
		"in a text's form": {"scheduler:\n  config: |\n    virtualClusters: []\n",
			"services.yaml:3:22: scheduler.config.virtualClusters: expected a map, found a list"},
		"in a text on one line": {"scheduler:\n  config: 'virtualClusters: []'\n",
			"services.yaml:2:11: scheduler.config.virtualClusters: expected a map, found a list"},
		"in a key":        {"scheduler:\n  virtualClusters: {a: {quotas: {}}}\n", "scheduler.virtualClusters.a.quotas: there is no key \"quotas\" here"},
		"in both":         {"scheduler: {config: 'virtualClusters: {}', virtualClusters: {a: {}}}\n", "the section has both config and physicalCluster or virtualClusters"},
		"in two sections": {"scheduler: {virtualClusters: {a: {}}}\nhivedscheduler: {config: 'virtualClusters: {}'}\n", "hivedscheduler.config: it has no effect"},
		"in the form":     {"scheduler: [a]\n", "expected a map, found a list"},
		"in the hardware": {"scheduler:\n  physicalCluster:\n    cellTypes: {N: {childCellType: G, childCellNumber: 1, isNodeLevel: true}}\n    physicalCells: [{cellType: N, cellAddress: other}]\n",
			"services.yaml:4:20: warning: scheduler.physicalCluster.physicalCells: the layout has no machine other"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, findings := FromCluster(plain(), "services.yaml", []byte(tt.services))
			assert.Contains(t, text(findings), tt.want)
		})
	}
}

func TestFromClusterTakesOpenPAIsText(t *testing.T) {
	services := "hivedscheduler:\n  config: |\n    physicalCluster:\n      skuTypes: {V: {gpu: 1}}\n      cellTypes:\n        V-NODE: {childCellType: V, childCellNumber: 4, isNodeLevel: true}\n" +
		"        V-POOL: {childCellType: V-NODE, childCellNumber: 1}\n      physicalCells:\n      - cellType: V-POOL\n        cellChildren:\n        - cellAddress: v1\n    virtualClusters:\n      default:\n        virtualCells:\n        - {cellType: V-POOL.V-NODE, cellNumber: 1}\n"
	got, findings := FromCluster(plain(), "services.yaml", []byte(services))
	require.Empty(t, text(findings))
	assert.Equal(t, []cell.Physical{{Type: "V-POOL", Children: []cell.Physical{{Address: "v1"}}}}, got.Physical)
	assert.Equal(t, "V-POOL.V-NODE", got.VirtualClusters[0].Cells[0].Type)
}

func TestFromClusterWithoutGPUs(t *testing.T) {
	got, findings := FromCluster(twoSKUs(machine("c1", "cpu")), "services.yaml", nil)
	require.NoError(t, findings.Err())
	assert.Contains(t, text(findings), "no machine of the layout has GPUs")
	assert.Empty(t, got.Physical)
}

// withCPUs returns a layout of GPU machines and machines with a known number of processors.
func withCPUs(machines ...layout.Machine) layout.Layout {
	l := twoSKUs(append([]layout.Machine{machine("a1", "8x-a100")}, machines...)...)
	l.MachineSKU["cpu"] = layout.SKU{CPU: layout.CPU{VCore: 16}}
	return l
}

func TestMachinesWithoutGPUsAreCPUCells(t *testing.T) {
	master, storage := machine("m1", "cpu"), machine("s1", "cpu")
	master.Roles, storage.Roles = []string{layout.RoleMaster}, []string{"storage"}
	l := withCPUs(machine("c2", "cpu"), machine("c1", "cpu"), master, storage)
	got, findings := FromCluster(l, "services.yaml", nil)
	require.Empty(t, text(findings))
	want := cell.Config{
		Types: []cell.Type{
			{Name: "8x-a100-NODE", Child: "NVIDIA-A100-SXM4-80GB", Children: 8, Node: true},
			{Name: "cpu-NODE", Child: "CPU", Children: 15, Node: true},
		},
		Physical:        []cell.Physical{{Type: "8x-a100-NODE", Address: "a1"}, {Type: "cpu-NODE", Address: "c1"}, {Type: "cpu-NODE", Address: "c2"}},
		VirtualClusters: []cell.VirtualCluster{{Name: "default", Cells: []cell.Virtual{{Type: "8x-a100-NODE", Count: 1}, {Type: "cpu-NODE", Count: 2}}}},
		Processors:      []string{"CPU"},
	}
	assert.Equal(t, want, got, "a master alone, and a machine that is no worker, lend nothing")

	written, err := Encode(got)
	require.NoError(t, err)
	again, findings := Parse("x.yaml", written)
	require.Empty(t, text(findings))
	assert.Equal(t, want, again)
}

func TestAMasterThatIsAWorkerKeepsProcessorsForTheControlPlane(t *testing.T) {
	both := machine("m1", "cpu")
	both.Roles = []string{layout.RoleMaster, layout.RoleWorker}
	got, _ := FromCluster(withCPUs(both), "services.yaml", nil)
	assert.Equal(t, 13, got.Types[1].Children)

	l := withCPUs(both)
	l.MachineSKU["cpu"] = layout.SKU{CPU: layout.CPU{VCore: 2}}
	got, _ = FromCluster(l, "services.yaml", nil)
	for _, p := range got.Physical {
		assert.NotEqual(t, "m1", p.Address, "the control plane fills it")
	}

	l = withCPUs(both, machine("c1", "cpu"))
	l.MachineSKU["cpu"] = layout.SKU{CPU: layout.CPU{VCore: 2}}
	got, _ = FromCluster(l, "services.yaml", nil)
	assert.Equal(t, 1, got.Types[1].Children, "of its equals that are workers alone, what there is")
	assert.Equal(t, "c1", got.Physical[len(got.Physical)-1].Address)
}

func TestCPUCellsAreGivenToVirtualClusters(t *testing.T) {
	got, findings := FromCluster(withCPUs(machine("c1", "cpu"), machine("c2", "cpu")), "services.yaml",
		[]byte("scheduler: {virtualClusters: {prep: {virtualCells: [{cellType: cpu-NODE, cellNumber: 1}, {cellType: cpu-NODE.CPU, cellNumber: 4}]}}}\n"))
	require.Empty(t, text(findings))
	assert.Equal(t, []cell.VirtualCluster{{Name: "prep", Cells: []cell.Virtual{{Type: "cpu-NODE", Count: 1}, {Type: "cpu-NODE.CPU", Count: 4}}}}, got.VirtualClusters)
}

func TestLeafTypesThatOpenPAIDescribesWithoutGPUsAreCPUCells(t *testing.T) {
	const file = `physicalCluster:
  skuTypes:
    DT: {gpu: 1, cpu: 4, memory: 8192Mi}
    DC: {cpu: 1, memory: 4096Mi}
    D0: {gpu: 0, cpu: 2, memory: 4096Mi}
  cellTypes:
    DT-NODE: {childCellType: DT, childCellNumber: 4, isNodeLevel: true}
    DC-NODE: {childCellType: DC, childCellNumber: 8, isNodeLevel: true}
  physicalCells: [{cellType: DT-NODE, cellAddress: g1}, {cellType: DC-NODE, cellAddress: c1}]
virtualClusters: {default: {virtualCells: [{cellType: DT-NODE, cellNumber: 1}]}}
`
	c, findings := Parse("x.yaml", []byte(file))
	require.Empty(t, text(findings))
	assert.Equal(t, []string{"D0", "DC"}, c.Processors)
	for _, odd := range []string{"skuTypes: 7", "skuTypes: [a]", "skuTypes: {DC: 3}", "skuTypes: {DC: {cpu: many}}", "skuTypes: {DC: {memory: 1Gi}}", "gpuTypes: {DT: {cpu: 1}}"} {
		c, findings := Parse("x.yaml", []byte("physicalCluster: {"+odd+"}\nvirtualClusters: {}\n"))
		require.NoError(t, findings.Err(), odd)
		assert.Empty(t, c.Processors, odd)
	}
}

func TestGPUsForPodsAreInNoCell(t *testing.T) {
	l := twoSKUs(machine("a1", "8x-a100"), machine("a2", "8x-a100", "rack", "r1"), machine("a3", "8x-a100"), machine("v1", "4x-v1.5"))
	l.MachineList[1].GPUsForPods = []int{7, 0}
	l.MachineList[2].GPUsForPods = []int{0, 1, 2, 3, 4, 5, 6, 7}
	l.MachineList[3].GPUsForPods = []int{3}
	got, findings := FromCluster(l, "services.yaml", nil)
	require.Empty(t, text(findings))
	gpus := func(indices ...string) (out []cell.Physical) {
		for _, index := range indices {
			out = append(out, cell.Physical{Address: index})
		}
		return out
	}
	assert.Equal(t, []cell.Type{
		{Name: "4x-v1-5-NODE-3", Child: "Tesla-V1-5", Children: 3, Node: true},
		{Name: "8x-a100-NODE", Child: "NVIDIA-A100-SXM4-80GB", Children: 8, Node: true},
		{Name: "8x-a100-NODE-6", Child: "NVIDIA-A100-SXM4-80GB", Children: 6, Node: true},
	}, got.Types)
	assert.Equal(t, []cell.Physical{
		{Type: "4x-v1-5-NODE-3", Address: "v1", Children: gpus("0", "1", "2")},
		{Type: "8x-a100-NODE", Address: "a1"},
		{Type: "8x-a100-NODE-6", Address: "a2", Children: gpus("1", "2", "3", "4", "5", "6")},
	}, got.Physical)
	assert.Equal(t, []cell.Virtual{{Type: "4x-v1-5-NODE-3", Count: 1}, {Type: "8x-a100-NODE", Count: 1}, {Type: "8x-a100-NODE-6", Count: 1}}, got.VirtualClusters[0].Cells)
	encoded, err := Encode(got)
	require.NoError(t, err)
	again, findings := Parse("encoded.yaml", encoded)
	require.Empty(t, text(findings))
	assert.Equal(t, got, again)
}

func TestCellsWrittenByHandHaveNoGPUsForPods(t *testing.T) {
	l := plain()
	for i := range l.MachineList {
		if l.MachineList[i].Hostname == "v1" {
			l.MachineList[i].GPUsForPods = []int{1, 3}
		}
	}
	const types = "    cellTypes:\n      N: {childCellType: V, childCellNumber: 4, isNodeLevel: true}\n      S: {childCellType: V, childCellNumber: 2}\n      T: {childCellType: S, childCellNumber: 2, isNodeLevel: true}\n" +
		"      R: {childCellType: N, childCellNumber: 2}\n      L: {childCellType: V, childCellNumber: 2, isNodeLevel: true}\n    physicalCells:\n"
	const both = "has the GPUs [1 3], which layout.yaml gives to ordinary pods (gpus-for-pods)"
	for name, tt := range map[string]struct{ cells, want string }{
		"a node":                    {"    - {cellType: N, cellAddress: v1}\n", "services.yaml:10:7: scheduler.physicalCluster.physicalCells[0]: the cell v1 " + both},
		"a node in a rack":          {"    - {cellType: R, cellChildren: [{cellAddress: a1}, {cellAddress: v1}]}\n", "services.yaml:10:55: scheduler.physicalCluster.physicalCells[0].cellChildren[1]: the cell 0/v1 " + both},
		"GPUs below a switch":       {"    - {cellType: T, cellAddress: v1}\n", both},
		"another node":              {"    - {cellType: N, cellAddress: a1}\n", ""},
		"only the GPUs of jobs":     {"    - {cellType: L, cellAddress: v1, cellChildren: [{cellAddress: 0}, {cellAddress: 2}]}\n", ""},
		"one GPU that isn't theirs": {"    - {cellType: L, cellAddress: v1}\n", "has the GPUs [1], which"},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := FromCluster(l, "services.yaml", []byte("scheduler:\n  physicalCluster:\n"+types+tt.cells))
			if tt.want == "" {
				assert.NotContains(t, text(findings), "gpus-for-pods")
			} else {
				assert.Contains(t, text(findings), tt.want)
				assert.Error(t, findings.Err())
			}
			config := "physicalCluster:\n" + types + tt.cells
			indented := ""
			for line := range strings.Lines(config) {
				indented += "    " + line
			}
			_, findings = FromCluster(l, "services.yaml", []byte("hivedscheduler:\n  config: |\n"+indented))
			assert.Equal(t, tt.want != "", strings.Contains(text(findings), "scheduler/gpus-for-pods"), "as HiveD's text")
		})
	}
}

func TestMachinesWithGPUsAreReservedWhereverThatIsWritten(t *testing.T) {
	for name, services := range map[string]string{
		"in the section":     "scheduler: {reserveGPUMachines: true}\n",
		"beside a division":  "scheduler:\n  reserveGPUMachines: true\n  virtualClusters: {a: {}}\n",
		"in a text":          "scheduler:\n  config: |\n    reserveGPUMachines: true\n",
		"beside a text":      "scheduler:\n  reserveGPUMachines: true\n  config: |\n    virtualClusters: {a: {}}\n",
		"beside HiveD's own": "scheduler: {reserveGPUMachines: true}\nhivedscheduler:\n  config: |\n    virtualClusters: {a: {}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, findings := FromCluster(plain(), "services.yaml", []byte(services))
			require.NoError(t, findings.Err())
			assert.True(t, got.ReserveGPUMachines)
			written, err := Encode(got)
			require.NoError(t, err)
			again, findings := Parse("x.yaml", written)
			require.NoError(t, findings.Err())
			assert.True(t, again.ReserveGPUMachines)
		})
	}
	none, _ := FromCluster(plain(), "services.yaml", []byte("scheduler: {virtualClusters: {a: {}}}\n"))
	assert.False(t, none.ReserveGPUMachines)
	_, findings := FromCluster(plain(), "services.yaml", []byte("scheduler:\n  reserveGPUMachines: always\n"))
	assert.Contains(t, text(findings), "services.yaml:2:23: scheduler.reserveGPUMachines: expected true or false, found text")
}
