package cell

import "slices"

// mapper finds physical cells for the virtual leaves of a gang. It changes only marks in the cells.
type mapper struct {
	*chain
	s       *Scheduler
	policy  *Policy
	stamp   uint64
	offered Nodes // the nodes that may be used; nil means all nodes
	claims  *claims
	split   []*pcell // nodes of which this mapping takes only pieces
	trees   []*vcell // the topmost unbound cells that contain leaves of the gang
	kills   *killing
	entered []*pcell // cells that contain a claimed cell
}

func newMapper(s *Scheduler, sp *space, offered Nodes) *mapper {
	s.stamp++
	policy := &Policies[sp.vc.policy]
	return &mapper{s: s, chain: sp.chain, policy: policy, stamp: s.stamp, offered: offered, kills: &killing{stamp: s.stamp, byNumber: policy.byNumber}}
}

// mapLeaves finds a physical leaf for each virtual leaf in slots. It returns false if there are too few free, healthy, offered
// cells.
func (s *Scheduler) mapLeaves(sp *space, slots []slot, offered Nodes) bool {
	m := newMapper(s, sp, offered)
	m.kills.gangs = s.killed[:0]
	defer m.forget(slots)
	for i := range slots {
		for _, v := range slots[i].virtual {
			m.want(v)
		}
	}
	if !m.mapTrees() {
		return false
	}
	n := 0
	for i := range slots {
		n += len(slots[i].virtual)
	}
	leaves := make([]*pcell, n)
	for i := range slots {
		sl := &slots[i]
		n = len(sl.virtual)
		sl.leaves, leaves = leaves[:n:n], leaves[n:]
		for k, v := range sl.virtual {
			if sl.leaves[k] = v.bound; v.bound == nil {
				sl.leaves[k] = v.target
			}
			if !m.usable(sl.leaves[k].node) {
				return false
			}
		}
	}
	return true
}

func (m *mapper) usable(node *pcell) bool {
	if m.offered == nil {
		return true
	}
	o := &m.memos[node.index]
	if o.offerStamp != m.stamp {
		o.offerStamp, o.offered = m.stamp, m.offered.Has(node.machine.name)
	}
	return o.offered
}

// want counts a leaf as needed in all unbound cells around it.
func (m *mapper) want(v *vcell) {
	if v.bound != nil {
		if u := v.bound.using; u != nil {
			m.kills.mark(u)
		}
		return
	}
	for ; ; v = v.parent {
		v.need++
		if v.parent == nil || v.parent.bound != nil {
			if v.need == 1 {
				m.trees = append(m.trees, v)
			}
			return
		}
	}
}

func (m *mapper) forget(slots []slot) {
	clear(m.kills.gangs)
	m.s.killed = m.kills.gangs
	for i := range slots {
		for _, v := range slots[i].virtual {
			for ; v != nil && v.need > 0; v = v.parent {
				v.need, v.target = 0, nil
			}
		}
	}
}

// mapTrees first maps the cells below bound parents, and then the roots, highest cells first.
func (m *mapper) mapTrees() bool {
	if len(m.trees) > 1 {
		slices.SortStableFunc(m.trees, func(a, b *vcell) int {
			if a.level != b.level {
				return b.level - a.level
			}
			return b.need - a.need
		})
	}
	var nodes []*vcell
	for i, v := range m.trees {
		if v.parent != nil && v.level == 0 && (i == 0 || m.trees[i-1].parent != v.parent) {
			m.doom(v.parent.bound, m.wantedBeside(i))
		}
		if v.parent != nil && !m.child(v, v.parent.bound) {
			return false
		}
		if v.parent == nil && v.level == m.node {
			nodes = append(nodes, v)
		}
	}
	for _, v := range m.trees {
		if v.parent == nil && v.level > m.node && !m.upperRoot(v) {
			return false
		}
	}
	if len(nodes) > 0 && !m.nodeRoots(nodes) {
		return false
	}
	for _, v := range m.trees {
		if v.parent == nil && v.level < m.node && !m.smallRoot(v) {
			return false
		}
	}
	return true
}

// wantedBeside returns the number of trees from index i that share a parent.
func (m *mapper) wantedBeside(i int) int {
	n := 0
	for n < len(m.trees)-i && m.trees[i+n].parent == m.trees[i].parent {
		n++
	}
	return n
}

// down maps v to p, and the wanted descendants of v to cells below p.
func (m *mapper) down(v *vcell, p *pcell) bool {
	if p.level == m.node && !m.usable(p) {
		return false
	}
	p.claim, v.target = m.stamp, p
	if v.level > 0 && v.need == int(p.hi-p.lo) && p.badCount == 0 && p.bound == nil && p.split == 0 && p.inside != m.stamp {
		return m.allOf(v, p)
	}
	if v.level == 0 {
		if p.bad {
			return false
		}
		if p.using != nil {
			m.kills.mark(p.using)
		}
		return true
	}
	if v.level == 1 {
		m.doom(p, v.need)
	}
	for _, k := range v.children {
		if k.need > 0 && !m.child(k, p) {
			return false
		}
	}
	return true
}

// allOf maps v to the unused cell p if all leaves of v are needed. Each cell below v is mapped to the cell at the same position
// below p.
func (m *mapper) allOf(v *vcell, p *pcell) bool {
	leaves := m.cells[0][p.lo:p.hi]
	for i, w := range v.space.leaves[v.lo:v.hi] {
		c := leaves[i]
		if !m.usable(c.node) {
			return false
		}
		c.claim, w.target = m.stamp, c
		if c.using != nil {
			m.kills.mark(c.using)
		}
	}
	return true
}

// doom marks the gangs that must be evicted for n leaves of a cell at the lowest level above the leaves. It chooses the gangs
// for all leaves together. Separate choices could evict several small gangs where one gang is enough.
func (m *mapper) doom(p *pcell, n int) {
	var room [16]*pcell
	leaves := room[:0]
	for _, c := range p.children {
		if c.bound != nil || c.bad || c.claim == m.stamp {
			continue
		}
		if leaves = append(leaves, c); c.using == nil && c.reserving == nil {
			n--
		}
	}
	var store [16]share
	m.kills.choose(leaves, n, store[:0], m.kills.mark)
}

// child maps v to the child of p with the fewest evictions, and among such children to the child with the fewest used leaves.
func (m *mapper) child(v *vcell, p *pcell) bool {
	all := v.parent.need == int(p.hi-p.lo) && p.badCount == 0 // each child is needed as a whole, so all choices are equal
	for range p.children {
		var best *pcell
		least := noCost // the cost of best; not computed as long as best is the only candidate
		for _, c := range p.children {
			if c.bound != nil || c.claim == m.stamp || int(c.hi-c.lo)-c.badCount < v.need || c.level == m.node && !m.usable(c) {
				continue
			}
			if best == nil {
				if best = c; all {
					break
				}
				continue
			}
			if least == noCost {
				least = m.childCost(v, best)
			}
			if cost := m.childCost(v, c); cost < least {
				best, least = c, cost
			}
		}
		if best == nil {
			return false
		}
		if m.down(v, best) {
			return true
		}
	}
	return false
}

func (m *mapper) childCost(v *vcell, c *pcell) uint64 {
	return m.kills.cost(c, v.need)<<8 | uint64(min(255, c.badCount*4+m.occupied(c)))
}

// idleLeaves returns the number of unused leaves in a cell.
func (m *mapper) idleLeaves(p *pcell) int {
	if p.level > m.node {
		return int(m.view.upper[p.level-m.node-1][p.index].free)
	}
	n := p.upTo(m.node)
	return m.view.nodes[n.index].free.count(int(p.lo-n.lo), int(p.hi-n.lo))
}

func (m *mapper) occupied(p *pcell) int { return int(p.hi-p.lo) - m.idleLeaves(p) }

// cleanIn and freeIn count the nodes in p that could be preassigned. cleanIn counts only nodes without opportunistic gangs.
func (m *mapper) cleanIn(p *pcell) int { return m.countIn(p, p.cleanNodes(), true) }
func (m *mapper) freeIn(p *pcell) int  { return m.countIn(p, p.freeNodes(), false) }

func (m *mapper) countIn(p *pcell, n int, clean bool) int {
	if m.offered == nil && p.inside != m.stamp && !m.claimed(p) {
		return n
	}
	n = 0
	per := int32(m.leaves[m.node])
	for i := p.lo / per; i < p.hi/per; i++ {
		c := m.cells[m.node][i]
		if c.wasFree && (c.wasClean || !clean) && m.open(c) {
			n++
		}
	}
	return n
}

// open reports whether a node is offered and unclaimed, including the cells inside the node.
func (m *mapper) open(n *pcell) bool {
	return n.inside != m.stamp && !m.claimed(n) && m.usable(n)
}

// claimed reports whether this mapping has claimed p or a cell around p.
func (m *mapper) claimed(p *pcell) bool {
	for ; p != nil; p = p.parent {
		if p.claim == m.stamp {
			return true
		}
	}
	return false
}

// from returns the level of the largest free cell around p. Taking p splits this cell.
func (m *mapper) from(p *pcell) int {
	for p.parent != nil && p.parent.split == 0 && p.parent.inside != m.stamp {
		p = p.parent
	}
	return p.level
}

// safe reports whether enough cells for all virtual clusters remain after p is taken.
func (m *mapper) safe(p *pcell) bool {
	from := m.from(p)
	if m.claims == nil && m.free[from] > 0 && m.lowest(p.level) == from {
		return true // taking a cell of the lowest level with free cells is always safe
	}
	return m.feasible(p.level, from, m.claims)
}

// lowest returns the lowest level with a free cell, from the given level up, or -1.
func (m *mapper) lowest(level int) int {
	for ; level < len(m.free); level++ {
		if m.free[level] > 0 {
			return level
		}
	}
	return -1
}

// root maps the preassigned cell v to p, and counts p as taken.
func (m *mapper) root(v *vcell, p *pcell) bool {
	if !m.down(v, p) {
		return false
	}
	if m.claims == nil {
		m.claims = m.chain.claims()
	}
	m.claims.take(m.tree, p.level, m.from(p))
	for up := p.parent; up != nil; up = up.parent {
		if up.inside != m.stamp {
			up.inside = m.stamp
			m.entered = append(m.entered, up)
		}
	}
	if p.level < m.node {
		if n := p.upTo(m.node); !slices.Contains(m.split, n) {
			m.split = append(m.split, n)
		}
	}
	return true
}

// upperRoot maps a preassigned cell above the node level to a physical cell. It prefers the cell with the most idle nodes among
// the wanted nodes, and then the cell with the fewest opportunistic gangs.
func (m *mapper) upperRoot(v *vcell) bool {
	want := (v.need + m.leaves[m.node] - 1) / m.leaves[m.node]
	for range 8 {
		var best *pcell
		least := noCost
		for _, p := range m.cells[v.level] {
			if p.split > 0 || p.inside == m.stamp || m.claimed(p) || p.taken() || m.freeIn(p) < want {
				continue
			}
			short := max(0, want-m.cleanIn(p))
			cost := uint64(short)<<52 | uint64(min(p.badCount, 1<<12-1))<<40 | uint64(m.occupied(p))<<8 | uint64(m.from(p))
			if cost < least && m.safe(p) {
				best, least = p, cost
			}
		}
		if best == nil {
			return false
		}
		if m.root(v, best) {
			return true
		}
	}
	return false
}

// smallRoot maps a preassigned cell below the node level. It prefers a part of a split node to a part of a free node.
func (m *mapper) smallRoot(v *vcell) bool {
	var best *pcell
	least := noCost
	consider := func(p *pcell) {
		if int(p.hi-p.lo)-p.badCount < v.need || !m.usable(p.upTo(m.node)) {
			return
		}
		if cost := m.kills.cost(p, v.need)<<8 | uint64(m.from(p)); cost < least && m.safe(p) {
			best, least = p, cost
		}
	}
	for l := v.level; l < m.node; l++ {
		for i := m.largest[l].first(0, len(m.cells[l])); i >= 0; i = m.largest[l].first(int(i)+1, len(m.cells[l])) {
			m.pieces(m.cells[l][i], v.level, v.need, consider)
		}
	}
	for _, n := range m.split {
		if n.isFree() {
			m.pieces(n, v.level, v.need, consider)
		}
	}
	if best == nil || least>>8 > 0 {
		if n := m.oneNode(v.need, v.level); n != nil && (best == nil || m.kills.cost(n, v.need) < least>>8) {
			for n.level > v.level {
				n = m.leastKilled(n.children, v.need)
			}
			best = n
		}
	}
	return best != nil && m.root(v, best)
}

// pieces calls show with the cells of a level that can be taken from the free cell p. If this mapping has already taken a part
// of p, it shows all cells of that level. Otherwise it shows only the best cell.
func (m *mapper) pieces(p *pcell, level, need int, show func(*pcell)) {
	switch {
	case p.claim == m.stamp:
	case p.inside == m.stamp:
		for _, c := range p.children {
			if c.level >= level {
				m.pieces(c, level, need, show)
			}
		}
	default:
		for p.level > level {
			p = m.leastKilled(p.children, need)
		}
		show(p)
	}
}

func (m *mapper) leastKilled(cells []*pcell, need int) *pcell {
	var best *pcell
	least := noCost
	for _, c := range cells {
		if c.bound != nil || c.claim == m.stamp {
			continue
		}
		cost := m.kills.cost(c, min(need, int(c.hi-c.lo)))<<8 | uint64(min(255, c.badCount*8+m.occupied(c)))
		if cost < least {
			best, least = c, cost
		}
	}
	if best == nil {
		return cells[0]
	}
	return best
}
