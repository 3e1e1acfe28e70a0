package cell

// Idle virtual nodes are interchangeable, because the remaining nodes always have the same shape. Therefore the code below
// chooses virtual cells by their physical cells. This avoids preemptions, and keeps the gang in one rack.

// wholeNodes places a gang in which each pod needs a whole node. It returns false for any other gang, or if too few nodes are
// idle.
func (s *Scheduler) wholeNodes(t target) ([]spot, bool) {
	sp, sh := t.space, t.shape
	size := t.chain.leaves[t.chain.node]
	if sp == nil || !sh.root.flat() || len(sh.sets) != 1 || sh.sets[0].n != size {
		return nil, false
	}
	w := &chooser{s: s, space: sp, m: newMapper(s, sp, nil), want: sh.sets[0].count}
	nodes := w.choose()
	if nodes == nil {
		return nil, false
	}
	all := make([]int32, size)
	for i := range all {
		all[i] = int32(i)
	}
	spots := make([]spot, len(nodes))
	for i, n := range nodes {
		spots[i] = spot{n, append([]int32(nil), all...)}
	}
	return spots, true
}

type chooser struct {
	s     *Scheduler
	space *space
	m     *mapper
	want  int
	clean []int // number of idle nodes in the best free cell, by level; -1 until it is computed
}

// offer is a set of idle virtual nodes whose physical nodes are, or would be, in one rack.
type offer struct {
	nodes []int32
	cost  uint64
}

func (w *chooser) choose() []int32 {
	best := offer{cost: noCost}
	for i := range w.racks() {
		w.rack(i, &best)
	}
	w.standalone(&best)
	return best.nodes
}

func (w *chooser) racks() []upperCell {
	if len(w.space.view.upper) == 0 {
		return nil
	}
	return w.space.view.upper[0]
}

func (w *chooser) rack(i int, best *offer) {
	v := w.space.view
	c := &v.upper[0][i]
	size := v.leaves[v.node]
	if int(c.hist[size]) < w.want {
		return
	}
	up := w.space.leaves[v.nodes[c.lo].lo]
	for up.level <= v.node {
		up = up.parent
	}
	cost := uint64(c.hist[size])
	if up.bound == nil {
		cost |= 1 << 24
	}
	if cost >= best.cost {
		return
	}
	if p := up.bound; p != nil {
		cost |= w.m.killsFor(p.children, w.want, func(n *pcell) bool { return n.bound == nil }) << 32
	} else {
		cost |= uint64(max(0, w.want-w.cleanest(up.level))) << 32
	}
	if cost >= best.cost {
		return
	}
	best.cost, best.nodes = cost, w.take(c.lo, c.hi)
}

// take returns the first idle nodes of a range, as many as wanted.
func (w *chooser) take(lo, hi int32) []int32 {
	v := w.space.view
	size := int32(v.leaves[v.node])
	out := make([]int32, 0, w.want)
	for i := lo; i < hi && len(out) < w.want; i++ {
		if v.nodes[i].have == size && int(v.nodes[i].top) == v.node {
			out = append(out, i)
		}
	}
	return out
}

func (w *chooser) cleanest(level int) int {
	for len(w.clean) <= level {
		w.clean = append(w.clean, -1)
	}
	if w.clean[level] < 0 {
		w.clean[level] = w.m.cleanest(level)
	}
	return w.clean[level]
}

// cleanest returns the number of idle nodes in the best free cell of a level.
func (m *mapper) cleanest(level int) int {
	most := 0
	for i, c := range m.counts[level-m.node-1] {
		if int(c.clean) <= most {
			continue
		}
		if p := m.cells[level][i]; p.split == 0 && !p.taken() && m.safe(p) {
			most = int(c.clean)
		}
	}
	return most
}

// standalone offers idle nodes that the virtual cluster owns individually, outside racks.
func (w *chooser) standalone(best *offer) {
	v := w.space.view
	lo := int32(0)
	if racks := w.racks(); len(racks) > 0 {
		lo = racks[len(racks)-1].hi
	}
	nodes := w.take(lo, int32(len(v.nodes)))
	if len(nodes) < w.want {
		return
	}
	killed := uint64(w.want) * 4
	if len(v.upper) > 0 {
		if up := w.m.upperFor(w.m.node+1, w.want); up != nil {
			killed = w.m.killsIn(up, w.want)
		}
	}
	cost := killed<<32 | uint64(2)<<24
	if w.want == 1 {
		cost = killed << 32
	}
	if cost < best.cost {
		best.cost, best.nodes = cost, nodes
	}
}

// killsIn returns the weight of the evictions for n free nodes of a cell above the node level.
func (m *mapper) killsIn(up *pcell, n int) uint64 {
	if m.cleanIn(up) >= n {
		return 0
	}
	per := int32(m.leaves[m.node])
	return m.killsFor(m.cells[m.node][up.lo/per:up.hi/per], n, func(c *pcell) bool { return c.wasFree && m.open(c) })
}

// killsFor returns the weight of the evictions for n of the nodes. It takes the cheapest node repeatedly.
func (m *mapper) killsFor(nodes []*pcell, n int, usable func(*pcell) bool) uint64 {
	m.s.stamp++
	k := &killing{stamp: m.s.stamp, byNumber: m.kills.byNumber}
	m.s.stamp++
	used := m.s.stamp
	size := m.leaves[m.node]
	for range n {
		var best *pcell
		least := noCost
		for _, c := range nodes {
			if c.seen == used || c.badCount > 0 || !usable(c) {
				continue
			}
			if cost := k.cost(c, size); cost < least {
				best, least = c, cost
				if cost == 0 {
					break
				}
			}
		}
		if best == nil {
			return 1 << 20
		}
		best.seen = used
		for _, leaf := range m.cells[0][best.lo:best.hi] {
			if leaf.using != nil {
				k.mark(leaf.using)
			}
		}
	}
	total := uint64(0)
	for _, g := range k.gangs {
		total += k.weight(g)
	}
	return total
}
