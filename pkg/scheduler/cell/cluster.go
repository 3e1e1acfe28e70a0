package cell

import "slices"

// Scheduler is the state of a cluster: its cells, and the gangs in these cells.
type Scheduler struct {
	config    Config
	chains    []*chain
	vcs       []*vc
	byVC      map[string]*vc
	machines  map[string]*machine
	names     []string // the names of machines, in the configuration's order
	gangs     map[gangKey]*gang
	pods      map[PodID]seat
	order     uint64 // the order of the youngest gang
	epoch     uint64 // increases with every change; a plan is valid only in its epoch
	stamp     uint64 // marks gangs during one search
	unsettled bool   // whether the doomed cells have to be chosen again
	possible  map[string]bool
	bereft    []*gang // gangs that may regain their guarantee
	expected  []*gang // gangs that may have expected slots
	killed    []*gang // an empty buffer
}

// chain holds all physical cells below top cells of one type.
type chain struct {
	*tree
	id    int
	cpu   bool       // whether its leaves are CPU cells
	cells [][]*pcell // by level, in order
	view  *view      // index of the leaves that no gang uses, for opportunistic gangs
	// The next fields are for the buddy allocation of preassigned cells. A cell is free if neither the cell nor an ancestor nor
	// a descendant is preassigned. free counts the largest free cells by level.
	largest  []bitset
	free     []int
	owed     []int // by level, the cells of virtual clusters that are not bound to physical cells
	pending  []int32
	doomed   []*vcell
	bad      int // number of bad leaves
	badNodes bitset
	empty    *view
	counts   [][]nodeCount // counts of the cells above the node, by level − node − 1
	clean    int           // number of idle nodes that could be preassigned
	memos    []memo        // the memos of the nodes
	pressure pressure
}

type pcell struct {
	chain         *chain
	level         int
	index         int32
	lo, hi        int32 // the range of its leaves
	parent        *pcell
	children      []*pcell
	address       string
	machine       *machine // for cells at or below the node level
	pinned        string
	bound         *vcell
	split         int    // number of preassigned cells among its descendants
	badCount      int    // number of bad leaves
	claim, inside uint64 // stamp of the mapping that takes it, or that takes a cell inside it
	seen          uint64
	// The next fields are for leaves.
	device           int32
	using, reserving *gang
	slot             int32 // the slot of using
	bad              bool
	// The next fields are for nodes.
	wasFree, wasClean, isPending bool
	node                         *pcell // for a leaf: its node
}

// memo caches search results for a node. It contains the node's cost in one killing for a number of leaves, and whether a
// mapping may use the node.
type memo struct {
	costStamp, offerStamp uint64
	need                  int
	cost                  uint64
	offered               bool
}

// nodeCount counts the nodes inside a cell that could be preassigned (free), and the idle nodes among them (clean).
type nodeCount struct{ free, clean int32 }

func (p *pcell) freeNodes() int  { return int(p.chain.counts[p.level-p.chain.node-1][p.index].free) }
func (p *pcell) cleanNodes() int { return int(p.chain.counts[p.level-p.chain.node-1][p.index].clean) }

// machine is a Kubernetes node. Its cells may be in several chains.
type machine struct {
	name    string
	rank    int32 // its position in the order of names
	cells   []*pcell
	healthy bool
	broken  map[int32]bool // the broken devices
}

type vc struct {
	name     string
	spaces   []*space // one for each chain in which it owns cells
	pinned   map[string]*space
	quota    Quota
	policy   int            // index in Policies
	userUse  map[string]int // used GPUs by user; "" counts gangs without a user
	groupUse map[string]int
}

// space holds the cells of a virtual cluster that one gang can use: all its cells in one chain, or one pinned cell.
type space struct {
	vc        *vc
	chain     *chain
	pinned    string
	roots     []*vcell
	leaves    []*vcell
	view      *view
	unbound   []int // number of roots without a physical cell, by level
	pending   []int32
	empty     *view
	used      []int // number of used leaves, by priority
	addresses map[string]*vcell
}

type vcell struct {
	space     *space
	level     int
	lo, hi    int32
	parent    *vcell
	root      *vcell
	children  []*vcell
	address   string
	bound     *pcell
	boundKids int
	doomed    bool // whether it is bound only because the physical cell is bad
	isPending bool
	// During a mapping, need is the number of leaves that the gang needs in this cell. target is the physical cell.
	need   int
	target *pcell
	// The next fields are for leaves.
	owner *gang
	node  int32 // its node in the view
	base  int32 // the first leaf of that node
}

// Nodes returns the names of all nodes in the order of the configuration, without duplicates.
func (s *Scheduler) Nodes() []string { return slices.Clone(s.names) }

// UsedDevices returns the devices of a node that gangs use, in ascending order.
func (s *Scheduler) UsedDevices(node string) []int32 {
	s.settle()
	m := s.machines[node]
	if m == nil {
		return nil
	}
	var out []int32
	for _, c := range m.cells {
		for i := c.lo; i < c.hi && !c.chain.cpu; i++ {
			if leaf := c.chain.cells[0][i]; leaf.using != nil {
				out = append(out, leaf.device)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Devices returns the indices of a node's GPUs in the configuration, in ascending order. It returns nil for an unknown node.
// CPU cells don't count as devices.
func (s *Scheduler) Devices(node string) []int32 {
	m := s.machines[node]
	if m == nil {
		return nil
	}
	out := []int32{}
	for _, c := range m.cells {
		if c.chain.cpu {
			continue
		}
		for i := c.lo; i < c.hi; i++ {
			out = append(out, c.chain.cells[0][i].device)
		}
	}
	slices.Sort(out)
	return out
}

// LeafType returns the type of a node's GPUs in the configuration, or "" for a node without GPUs.
func (s *Scheduler) LeafType(node string) string {
	if m := s.machines[node]; m != nil {
		for _, c := range m.cells {
			if !c.chain.cpu {
				return c.chain.names[0]
			}
		}
	}
	return ""
}

// Cells returns the devices of each cell inside a node, by cell type. It omits single GPUs and the node itself.
func (s *Scheduler) Cells(node string) map[string][][]int32 {
	m := s.machines[node]
	if m == nil {
		return nil
	}
	out := map[string][][]int32{}
	for _, c := range m.cells {
		ch := c.chain
		for level := min(c.level, ch.node) - 1; level > 0 && !ch.cpu; level-- {
			size := int32(ch.leaves[level])
			for lo := c.lo; lo < c.hi; lo += size {
				var devices []int32
				for i := lo; i < min(lo+size, c.hi); i++ {
					devices = append(devices, ch.cells[0][i].device)
				}
				out[ch.names[level]] = append(out[ch.names[level]], devices)
			}
		}
	}
	return out
}
