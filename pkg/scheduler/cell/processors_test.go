package cell

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mixed returns a scheduler for two machines with two GPUs each and two machines with four CPU cells each. A owns one machine
// of each kind. B owns only GPUs.
func mixed(t *testing.T) *Scheduler {
	t.Helper()
	s, err := New(Config{
		Types:      []Type{{Name: "G-NODE", Child: "G", Children: 2, Node: true}, {Name: "C-NODE", Child: "CPU", Children: 4, Node: true}},
		Physical:   []Physical{{Type: "C-NODE", Address: "c1"}, {Type: "C-NODE", Address: "c2"}, {Type: "G-NODE", Address: "g1"}, {Type: "G-NODE", Address: "g2"}},
		Processors: []string{"CPU"},
		VirtualClusters: []VirtualCluster{
			{Name: "A", Cells: []Virtual{{Type: "G-NODE", Count: 1}, {Type: "C-NODE", Count: 1}}, Quota: Quota{PerUser: 1}},
			{Name: "B", Cells: []Virtual{{Type: "G-NODE", Count: 1}}},
			{Name: "C", Cells: []Virtual{{Type: "C-NODE", Count: 1}}},
		},
	})
	require.NoError(t, err)
	for _, name := range s.Nodes() {
		s.SetNode(name, true)
		for _, device := range s.Devices(name) {
			s.SetDevice(name, device, true)
		}
	}
	return s
}

func ask(vc, gang, leaf string, priority, pods, cells int) *Request {
	return &Request{VirtualCluster: vc, Priority: priority, Gang: gang, LeafType: leaf, User: "ann", Root: Group{Pods: []PodSet{{Count: pods, Cells: cells}}}}
}

func put(t *testing.T, s *Scheduler, r *Request, pod PodID) Decision {
	t.Helper()
	d := s.Schedule(pod, r, Filtering, nil)
	require.Equal(t, Bind, d.Result, d.Reason)
	_, err := s.Allocate(pod, r, d.Placement, d.Slot)
	require.NoError(t, err)
	require.NoError(t, s.Check())
	return d
}

func TestCPUCellsAreGivenOnlyToWhoNamesThem(t *testing.T) {
	s := mixed(t)
	assert.Equal(t, "g1", put(t, s, ask("B", "gpu", "", 0, 1, 2), "1").Node, "a request without a type wants GPUs")
	cpu := put(t, s, ask("A", "cpu", "CPU", 0, 1, 3), "2")
	assert.Equal(t, []int32{0, 1, 2}, cpu.Indices)
	assert.Equal(t, "c1", cpu.Node, "three CPU cells of a user who may hold one GPU")
	assert.Equal(t, "c2", put(t, s, ask("B", "idle", "CPU", Opportunistic, 1, 4), "3").Node, "opportunistic, whoever owns them")

	d := s.Schedule("4", ask("B", "more", "", Opportunistic, 3, 2), Filtering, nil)
	assert.Equal(t, Refuse, d.Result, "CPU cells don't hold GPUs")
	d = s.Schedule("5", ask("C", "gpu", "", 0, 1, 1), Filtering, nil)
	assert.Equal(t, Refuse, d.Result)
	assert.Equal(t, "virtual cluster C owns no GPUs; name another, or use priority -1", d.Reason)
	d = s.Schedule("6", ask("B", "cpu", "CPU", 0, 1, 1), Filtering, nil)
	assert.Equal(t, "virtual cluster B has no cells of the type CPU", d.Reason)
	d = s.Schedule("7", ask("A", "cpu2", "CPU", 0, 1, 3), Filtering, nil)
	assert.Equal(t, Wait, d.Result)
	assert.Contains(t, d.Reason, "virtual cluster A has 1 CPU cells for priority 0, the gang requests 3")
}

func TestFiguresKeepGPUsAndCPUCellsApart(t *testing.T) {
	s := mixed(t)
	put(t, s, ask("A", "cpu", "CPU", 0, 1, 3), "1")
	put(t, s, ask("B", "idle", "CPU", Opportunistic, 1, 2), "2")
	put(t, s, ask("A", "gpu", "", 0, 1, 1), "3")
	st := s.Stats()
	assert.Equal(t, []int{4, 0, 1, 8, 0, 5}, []int{st.GPUs, st.BadGPUs, st.UsedGPUs, st.CPUCells, st.BadCPUCells, st.UsedCPUCells})
	a, b := st.VirtualClusters[0], st.VirtualClusters[1]
	assert.Equal(t, []int{2, 1, 0}, []int{a.Guaranteed, a.UsedGuaranteed, a.Opportunistic})
	assert.Equal(t, CPUStats{Guaranteed: 4, Used: 3, Free: 1}, a.CPU)
	assert.Equal(t, CPUStats{Opportunistic: 2}, b.CPU)
	assert.Zero(t, b.Opportunistic)

	s.SetNode("c1", false)
	assert.Equal(t, 4, s.Stats().BadCPUCells)
	assert.Zero(t, s.Stats().BadGPUs)

	g, ok := s.Gang("A", "cpu")
	require.True(t, ok)
	assert.Equal(t, []int{0, 3}, []int{g.GPUs, g.CPUCells})
	assert.Equal(t, []int32{}, s.Devices("c1"), "CPU cells are no devices that a node could lack")
	assert.Equal(t, []int32{0, 1}, s.Devices("g1"))
	assert.Nil(t, s.Devices("nowhere"))
}

func TestWhyCountsCPUCells(t *testing.T) {
	s := mixed(t)
	put(t, s, ask("A", "first", "CPU", 0, 1, 3), "1")
	e := s.Why(ask("A", "second", "CPU", 0, 2, 1))
	assert.Equal(t, "Virtual cluster A has 1 of 4 CPU cells free for jobs of priority 0, but the gang requests 2. 1 pod of 1 CPU cell would start now.", e.Sentence)
	assert.Equal(t, []int{0, 0, 0, 0}, []int{e.GPUs, e.OwnedGPUs, e.UsedGPUs, e.FreeGPUs})
	assert.Equal(t, []int{2, 4, 3, 1}, []int{e.CPUCells, e.OwnedCPUCells, e.UsedCPUCells, e.FreeCPUCells})
	assert.Equal(t, []Holder{{VC: "A", Gang: "first", CPUCells: 3}}, e.Holders)
	assert.Equal(t, &Smaller{Pods: 1, CPUCellsPerPod: 1}, e.Smaller)
}

// When GPUs are added to or removed from a machine, its chain changes.
func TestGangsOnCPUCellsOutliveARestartAndAReconfiguration(t *testing.T) {
	s := mixed(t)
	d := put(t, s, ask("A", "cpu", "CPU", 0, 1, 3), "1")
	next := s.config
	next.VirtualClusters = []VirtualCluster{{Name: "A", Cells: []Virtual{{Type: "G-NODE", Count: 1}}}}
	n, changes, err := s.Reconfigure(next)
	require.NoError(t, err)
	require.NoError(t, n.Check())
	require.Len(t, changes, 1, "it loses its guarantee")
	assert.Equal(t, 3, n.Stats().UsedCPUCells)

	back, changes, err := n.Reconfigure(mixed(t).config)
	require.NoError(t, err)
	require.Len(t, changes, 1)
	assert.True(t, changes[0].Restored)
	assert.Equal(t, 3, back.Stats().VirtualClusters[0].CPU.Used)

	other := s.config
	other.Types = []Type{{Name: "G-NODE", Child: "G", Children: 2, Node: true}}
	other.Physical = []Physical{{Type: "G-NODE", Address: "c1"}, {Type: "G-NODE", Address: "g1"}}
	other.Processors, other.VirtualClusters = nil, []VirtualCluster{{Name: "A", Cells: []Virtual{{Type: "G-NODE", Count: 2}}}}
	m, _, err := s.Reconfigure(other)
	require.NoError(t, err)
	require.NoError(t, m.Check())
	assert.Equal(t, "c1", d.Node)
	assert.Equal(t, "g1", put(t, m, ask("A", "gpu", "", 0, 1, 2), "2").Node, "what runs on the processors keeps the machine until it ends")
}
