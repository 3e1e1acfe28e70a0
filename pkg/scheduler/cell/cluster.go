package cell

import "slices"

// Scheduler is the state of one cluster: its cells, and the gangs in these cells.
type Scheduler struct {
	config    Config
	chains    []*chain
	vcs       []*vc
	byVC      map[string]*vc
	machines  map[string]*machine
	names     []string // the names of machines, in the configuration's order
	gangs     map[gangKey]*gang
	pods      map[PodID]seat
	order     uint64 // of the youngest gang
	epoch     uint64 // grows with every change; a plan is only valid in its own epoch
	stamp     uint64 // marks gangs during one search
	unsettled bool   // the doomed cells have to be chosen again
	possible  map[string]bool
	bereft    []*gang // may get their guarantee back
	expected  []*gang // may have expected slots
	killed    []*gang // a buffer; empty
}

// chain holds all physical cells below top cells of one type.
type chain struct {
	*tree
	id    int
	cpu   bool       // its leaves are CPU cells
	cells [][]*pcell // by level, in order
	view  *view      // over the leaves that no gang uses, for opportunistic gangs
	// The next fields are for the buddy allocation of preassigned cells. A cell is free if neither it nor an ancestor
	// nor a descendant is preassigned; free counts the largest free cells, by level.
	largest  []bitset
	free     []int
	owed     []int // cells of virtual clusters that are not bound to a physical one, by level
	pending  []int32
	doomed   []*vcell
	bad      int // bad leaves
	badNodes bitset
	empty    *view
	counts   [][]nodeCount // of the cells above the node, by level − node − 1
	clean    int           // nodes that could be preassigned and are idle
	memos    []memo        // the memos of the nodes
	pressure pressure
}

// pcell is a physical cell.
type pcell struct {
	chain         *chain
	level         int
	index         int32
	lo, hi        int32 // leaves
	parent        *pcell
	children      []*pcell
	address       string
	machine       *machine // at the node and below
	pinned        string
	bound         *vcell
	split         int    // preassigned cells among its descendants
	badCount      int    // leaves that are bad
	claim, inside uint64 // stamps of the mapping that takes it, or a cell in it
	seen          uint64
	// The leaf.
	device           int32
	using, reserving *gang
	slot             int32 // of using
	bad              bool
	// The node.
	wasFree, wasClean, isPending bool
	node                         *pcell // the node of a leaf
}

// memo caches the results of searches for a node: its cost for one killing by the number of leaves that a gang needs, and whether a mapping
// may use it.
type memo struct {
	costStamp, offerStamp uint64
	need                  int
	cost                  uint64
	offered               bool
}

// nodeCount counts the nodes below a cell that could be preassigned (free), and how many of these nodes are idle (clean).
type nodeCount struct{ free, clean int32 }

func (p *pcell) freeNodes() int  { return int(p.chain.counts[p.level-p.chain.node-1][p.index].free) }
func (p *pcell) cleanNodes() int { return int(p.chain.counts[p.level-p.chain.node-1][p.index].clean) }

// machine is a Kubernetes node: its cells may be in several chains.
type machine struct {
	name    string
	rank    int32 // in the order of names
	cells   []*pcell
	healthy bool
	broken  map[int32]bool // devices
}

// vc is a virtual cluster.
type vc struct {
	name     string
	spaces   []*space // one per chain where it owns cells
	pinned   map[string]*space
	quota    Quota
	policy   int            // index of Policies
	userUse  map[string]int // "": of gangs without a user
	groupUse map[string]int
}

// space holds the cells of a virtual cluster that one gang can use: all that it owns of one chain, or one pinned cell.
type space struct {
	vc        *vc
	chain     *chain
	pinned    string
	roots     []*vcell
	leaves    []*vcell
	view      *view
	unbound   []int // roots without a physical cell, by level
	pending   []int32
	empty     *view
	used      []int // leaves used, by priority
	addresses map[string]*vcell
}

// vcell is a virtual cell.
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
	doomed    bool // bound only because the physical cell is bad
	isPending bool
	// While a gang is mapped: the number of leaves that it needs here, and their target.
	need   int
	target *pcell
	// The leaf.
	owner *gang
	node  int32 // in the view
	base  int32 // the first leaf of that node
}

// Nodes returns the names of all nodes of the configuration, in its order, without duplicates.
func (s *Scheduler) Nodes() []string { return slices.Clone(s.names) }

// UsedDevices returns the node's devices that gangs have, ascending.
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

// Devices returns the indices of the GPUs that the configuration has on a node, ascending; nil if it has no
// such node. CPU cells don't count as devices.
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

// LeafType returns the type of a node's GPUs in the configuration; "" for a node without GPUs.
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

// Cells returns the devices of each cell within a node, above a single GPU, by the cell's type; the node itself isn't included.
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
