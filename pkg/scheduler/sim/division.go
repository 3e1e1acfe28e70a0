package sim

import (
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Division summarizes a configuration: the hardware, and the cells of each virtual cluster.
type Division struct {
	Nodes           int       `json:"nodes"`
	GPUs            int       `json:"gpus"`
	CPUCells        int       `json:"cpuCells,omitempty"`
	Chains          []Chain   `json:"chains"`
	VirtualClusters []Owner   `json:"virtualClusters"`
	Unassigned      Remainder `json:"unassigned"`
}

// Chain describes all hardware below top cells of one type.
type Chain struct {
	Name     string `json:"name"`
	LeafType string `json:"leafCellType"`
	Nodes    int    `json:"nodes"`
	GPUs     int    `json:"gpus"`
	CPUCells int    `json:"cpuCells,omitempty"`
	// Levels are the types of the chain, highest level first.
	Levels []Level `json:"levels"`
}

// Level describes the cells of one type in a chain.
type Level struct {
	CellType    string `json:"cellType"`
	GPUs        int    `json:"gpus"`
	CPUCells    int    `json:"cpuCells,omitempty"`
	Count       int    `json:"count"`
	IsNodeLevel bool   `json:"isNodeLevel,omitempty"`
}

// Owner is a virtual cluster with its cells.
type Owner struct {
	Name     string            `json:"name"`
	GPUs     int               `json:"gpus"`
	CPUCells int               `json:"cpuCells,omitempty"`
	Cells    []cell.LevelCount `json:"cells"`
	Pinned   []PinnedCell      `json:"pinnedCells,omitempty"`
}

// PinnedCell is a physical cell that always belongs to the same virtual cluster.
type PinnedCell struct {
	ID       string `json:"pinnedCellId"`
	CellType string `json:"cellType"`
	GPUs     int    `json:"gpus"`
	CPUCells int    `json:"cpuCells,omitempty"`
}

// Remainder holds the cells that no virtual cluster owns. It contains the largest remaining cells.
type Remainder struct {
	GPUs     int               `json:"gpus"`
	CPUCells int               `json:"cpuCells,omitempty"`
	Cells    []cell.LevelCount `json:"cells"`
}

// chainState is a chain with the number of unowned cells per level.
type chainState struct {
	Chain
	cpu    bool
	leaves []int // the numbers of leaves of a cell, by level, from the top down
	free   []int // the number of free cells, by level, from the top down
}

// Divide summarizes a valid configuration.
func Divide(c cell.Config) (*Division, error) {
	top, err := c.Expand()
	if err != nil {
		return nil, err
	}
	t, err := newTopology(c)
	if err != nil {
		return nil, err
	}
	nodes := map[string]bool{}
	for _, x := range c.Types {
		nodes[x.Name] = x.Node
	}
	var chains []*chainState
	at := map[string]*chainState{}
	pinned := map[string]PinnedCell{}
	for i := range top {
		s := at[top[i].Type]
		if s == nil {
			s = newChain(t.chains[top[i].Type], nodes, c.Processors)
			at[s.Name] = s
			chains = append(chains, s)
		}
		s.add(&top[i], 0, pinned)
	}
	out := &Division{GPUs: t.gpus, CPUCells: t.cpuCells, VirtualClusters: []Owner{}, Chains: []Chain{}}
	for _, v := range c.VirtualClusters {
		out.VirtualClusters = append(out.VirtualClusters, owner(v, t, pinned))
	}
	for _, s := range chains {
		s.assign(c.VirtualClusters)
		out.add(s)
	}
	out.Nodes = len(t.leaves)
	return out, nil
}

func newChain(stages []stage, nodes map[string]bool, processors []string) *chainState {
	s := &chainState{free: make([]int, len(stages)), cpu: slices.Contains(processors, stages[0].name)}
	for _, x := range slices.Backward(stages) {
		l := Level{CellType: x.name, IsNodeLevel: nodes[x.name]}
		l.GPUs, l.CPUCells = s.kind(x.gpus)
		s.Levels, s.leaves = append(s.Levels, l), append(s.leaves, x.gpus)
	}
	s.Name, s.LeafType = s.Levels[0].CellType, stages[0].name
	return s
}

// kind converts a number of leaves to GPUs or to CPU cells.
func (s *chainState) kind(leaves int) (gpus, cpuCells int) {
	if s.cpu {
		return 0, leaves
	}
	return leaves, 0
}

// add counts a cell and all cells below it. It reports whether any of them is pinned. A cell without pinned cells is free. It
// counts as one free cell if its parent isn't free.
func (s *chainState) add(x *cell.Expanded, level int, pinned map[string]PinnedCell) bool {
	s.Levels[level].Count++
	if level == 0 {
		s.GPUs, s.CPUCells = s.GPUs+s.Levels[0].GPUs, s.CPUCells+s.Levels[0].CPUCells
	}
	if s.Levels[level].IsNodeLevel {
		s.Nodes++
	}
	if x.Pinned != "" {
		pinned[x.Pinned] = PinnedCell{x.Pinned, x.Type, s.Levels[level].GPUs, s.Levels[level].CPUCells}
	}
	has := make([]bool, len(x.Children))
	for i := range x.Children {
		has[i] = s.add(&x.Children[i], level+1, pinned)
	}
	if x.Pinned != "" {
		return true
	}
	if !slices.Contains(has, true) {
		if level == 0 {
			s.free[0]++
		}
		return false
	}
	for _, h := range has {
		if !h {
			s.free[level+1]++
		}
	}
	return true
}

func owner(v cell.VirtualCluster, t *topology, pinned map[string]PinnedCell) Owner {
	o := Owner{Name: v.Name, GPUs: t.owned(v), CPUCells: t.ownedCPUCells(v), Cells: []cell.LevelCount{}}
	for _, c := range v.Cells {
		o.Cells = append(o.Cells, cell.LevelCount{CellType: c.Type, GPUs: t.sizes[lastType(c.Type)], CPUCells: t.cpuSizes[lastType(c.Type)], Count: c.Count})
	}
	for _, id := range v.Pinned {
		o.Pinned = append(o.Pinned, pinned[id])
	}
	return o
}

// assign removes the virtual cells from the free cells, largest first. It takes each virtual cell from the smallest free cell
// that can contain it.
func (s *chainState) assign(vcs []cell.VirtualCluster) {
	for level := range s.Levels {
		for _, v := range vcs {
			for _, c := range v.Cells {
				chain, _, _ := strings.Cut(c.Type, ".")
				if chain != s.Name || lastType(c.Type) != s.Levels[level].CellType {
					continue
				}
				for range c.Count {
					s.take(level)
				}
			}
		}
	}
}

func (s *chainState) take(level int) {
	from := level
	for from >= 0 && s.free[from] == 0 {
		from--
	}
	if from < 0 {
		return
	}
	for ; from < level; from++ {
		s.free[from]--
		s.free[from+1] += s.leaves[from] / s.leaves[from+1]
	}
	s.free[level]--
}

func (d *Division) add(s *chainState) {
	d.Chains = append(d.Chains, s.Chain)
	for level, n := range s.free {
		if n > 0 {
			l := s.Levels[level]
			d.Unassigned.Cells = append(d.Unassigned.Cells, cell.LevelCount{CellType: l.CellType, GPUs: l.GPUs, CPUCells: l.CPUCells, Count: n})
			d.Unassigned.GPUs += n * l.GPUs
			d.Unassigned.CPUCells += n * l.CPUCells
		}
	}
}
