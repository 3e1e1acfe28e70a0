package sim

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Beyond is the level name for a gang whose GPUs aren't all in one cell.
const Beyond = "CLUSTER"

// stage is a level of a chain. Lists of stages begin with the leaf.
type stage struct {
	name string
	gpus int
}

// leaf is the position of a GPU: its chain, and the numbers of the cells around the GPU, from the leaf up.
type leaf struct {
	chain string
	cells []int32
}

// topology determines how close GPUs are to each other.
type topology struct {
	gpus   int
	chains map[string][]stage
	leaves map[string]map[int32]leaf // positions of GPUs by node and device index
	pinned map[string]int            // GPUs by the name of the pinned cell
	sizes  map[string]int            // GPUs by cell type
	// cpuCells, cpuPinned and cpuSizes count CPU cells on machines without GPUs.
	cpuCells            int
	cpuPinned, cpuSizes map[string]int
	next                int32
}

// newTopology returns the topology of a valid configuration.
func newTopology(c cell.Config) (*topology, error) {
	top, err := c.Expand()
	if err != nil {
		return nil, err
	}
	t := &topology{chains: map[string][]stage{}, leaves: map[string]map[int32]leaf{}, pinned: map[string]int{}, sizes: map[string]int{},
		cpuPinned: map[string]int{}, cpuSizes: map[string]int{}}
	nodes, types := map[string]bool{}, c.Hierarchy()
	for _, x := range c.Types {
		nodes[x.Name] = x.Node
	}
	for i := range top {
		stages := t.chains[top[i].Type]
		if stages == nil {
			levels, err := types.Levels(top[i].Type)
			if err != nil {
				return nil, err
			}
			stages = stagesOf(levels)
			t.chains[top[i].Type] = stages
		}
		if slices.Contains(c.Processors, stages[0].name) {
			t.cpuCells += t.add(&top[i], top[i].Type, "", nil, nodes, t.cpuPinned)
			sizesOf(stages, t.cpuSizes)
			continue
		}
		t.gpus += t.add(&top[i], top[i].Type, "", nil, nodes, t.pinned)
		sizesOf(stages, t.sizes)
	}
	return t, nil
}

func sizesOf(stages []stage, to map[string]int) {
	for _, s := range stages {
		to[s.name] = s.gpus
	}
}

// stagesOf returns the levels in reverse order, with the number of GPUs per cell.
func stagesOf(levels []cell.Level) []stage {
	var out []stage
	gpus := 1
	for _, l := range slices.Backward(levels) {
		gpus *= max(l.Children, 1)
		out = append(out, stage{l.Type, gpus})
	}
	return out
}

// add numbers a cell and the cells below it, and returns the cell's number of GPUs or CPU cells.
func (t *topology) add(x *cell.Expanded, chain, node string, above []int32, nodes map[string]bool, pinned map[string]int) int {
	t.next++
	path := append(append(make([]int32, 0, len(above)+1), t.next), above...)
	if nodes[x.Type] {
		node = x.Address
	}
	gpus := 0
	for i := range x.Children {
		gpus += t.add(&x.Children[i], chain, node, path, nodes, pinned)
	}
	if len(x.Children) == 0 {
		gpus = 1
		if t.leaves[node] == nil {
			t.leaves[node] = map[int32]leaf{}
		}
		if index, err := strconv.ParseInt(x.Address, 10, 32); err == nil {
			t.leaves[node][int32(index)] = leaf{chain, path}
		}
	}
	if x.Pinned != "" {
		pinned[x.Pinned] = gpus
	}
	return gpus
}

func (t *topology) owned(v cell.VirtualCluster) int { return sum(v, t.sizes, t.pinned) }

func (t *topology) ownedCPUCells(v cell.VirtualCluster) int { return sum(v, t.cpuSizes, t.cpuPinned) }

func sum(v cell.VirtualCluster, sizes, pinned map[string]int) int {
	n := 0
	for _, c := range v.Cells {
		n += sizes[lastType(c.Type)] * c.Count
	}
	for _, id := range v.Pinned {
		n += pinned[id]
	}
	return n
}

// common returns the lowest level with a cell that contains all GPUs of the pods, and the lowest level with large enough cells.
func (t *topology) common(pods []cell.PodPlacement) (is, best string) {
	var first leaf
	at, gpus := 0, 0
	for _, p := range pods {
		on := t.leaves[p.Node]
		for _, index := range p.Indices {
			l := on[index]
			if gpus++; gpus == 1 {
				first = l
				continue
			}
			if l.chain != first.chain || len(l.cells) != len(first.cells) {
				at = math.MaxInt
			}
			for at < len(l.cells) && l.cells[at] != first.cells[at] {
				at++
			}
		}
	}
	is, best = Beyond, Beyond
	steps := t.chains[first.chain]
	if at < len(steps) {
		is = steps[at].name
	}
	for _, s := range steps {
		if s.gpus >= gpus {
			best = s.name
			break
		}
	}
	return is, best
}

// lastType returns the type of a virtual cell, which is the last component of the path.
func lastType(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
