package cell

import "slices"

// nodeRoots maps preassigned cells that are nodes. It maps all of them into the lowest cell with enough free nodes, unless this
// requires too many evictions.
func (m *mapper) nodeRoots(roots []*vcell) bool {
	if len(roots) > 1 {
		for level := m.node + 1; level <= m.top(); level++ {
			if up := m.upperFor(level, len(roots)); up != nil && !m.tooDear(up, len(roots)) && m.fromUpper(roots, up) {
				return true
			}
		}
	}
	for _, v := range roots {
		n := m.oneNode(v.need, m.node)
		if n == nil || !m.root(v, n) {
			return false
		}
	}
	return true
}

// tooDear reports whether taking n nodes of one cell requires too many evictions. This is the case if the evicted gangs weigh
// more than half of n, although n idle nodes exist elsewhere.
func (m *mapper) tooDear(up *pcell, n int) bool {
	return m.clean >= n && m.killsIn(up, n)*2 > uint64(n)
}

// upperFor returns the best cell of a level with n free nodes. Among cells with n idle nodes, it prefers split cells, and then
// the fullest cell. Otherwise it returns the cell with the fewest evictions.
func (m *mapper) upperFor(level, n int) *pcell {
	var best *pcell
	least := noCost
	counts := m.counts[level-m.node-1]
	for i := range counts {
		if int(counts[i].clean) < n {
			continue
		}
		p := m.cells[level][i]
		clean := m.cleanIn(p)
		if clean < n {
			continue
		}
		if cost := uint64(unsplit(p))<<40 | uint64(clean)<<8; cost < least && m.safeMany(p, n) {
			best, least = p, cost
		}
	}
	if best != nil {
		return best
	}
	var crowded []*pcell
	for i := range counts {
		if int(counts[i].free) >= n && m.freeIn(m.cells[level][i]) >= n {
			crowded = append(crowded, m.cells[level][i])
		}
	}
	if len(crowded) > maxCrowded {
		slices.SortStableFunc(crowded, func(a, b *pcell) int { return b.cleanNodes() - a.cleanNodes() })
		crowded = crowded[:maxCrowded]
	}
	for _, p := range crowded {
		if cost := m.killsIn(p, n)<<8 | uint64(unsplit(p)); cost < least && m.safeMany(p, n) {
			best, least = p, cost
		}
	}
	return best
}

// maxCrowded is the maximum number of cells above the node level that are compared for the fewest evictions.
const maxCrowded = 8

func unsplit(p *pcell) int {
	if p.split > 0 {
		return 0
	}
	return 1
}

// safeMany reports whether n nodes can be taken from p. The first node splits the cell. The other nodes come from the free
// pieces of that cell, which is always safe.
func (m *mapper) safeMany(p *pcell, n int) bool {
	if m.claims == nil && p.split > 0 && p.level == m.node+1 {
		return true // nodes are free there, and the lowest level with free cells is always safe
	}
	c := m.claims
	if c == nil {
		c = m.chain.claims()
	} else {
		c = c.clone()
	}
	per := int32(m.leaves[m.node])
	left := n
	for i := p.lo / per; i < p.hi/per && left > 0; i++ {
		node := m.cells[m.node][i]
		if !node.wasFree || !m.open(node) {
			continue
		}
		from := m.from(node)
		if from > m.node && left < n {
			from = m.node // nodes of a cell that an earlier node split; this is an approximation above the rack
		}
		if !m.feasible(m.node, from, c) || c.free[from] == 0 {
			return false
		}
		c.take(m.tree, m.node, from)
		left--
	}
	return left == 0
}

// fromUpper takes the nodes in one cell that require the fewest evictions. After a failure, it undoes its changes. It can fail
// because safeMany isn't exact above the rack.
func (m *mapper) fromUpper(roots []*vcell, up *pcell) bool {
	per := int32(m.leaves[m.node])
	back := m.save()
	var took []*pcell
	for _, v := range roots {
		var best *pcell
		least := noCost
		for i := up.lo / per; i < up.hi/per; i++ {
			n := m.cells[m.node][i]
			if !n.wasFree || !m.open(n) {
				continue
			}
			cost := m.kills.cost(n, v.need)<<8 | uint64(min(255, m.occupied(n)))
			if cost < least && m.safe(n) {
				best, least = n, cost
			}
		}
		if best != nil {
			took = append(took, best)
		}
		if best == nil || !m.root(v, best) {
			m.restore(back, took)
			return false
		}
	}
	return true
}

type saved struct {
	claims         *claims
	entered, kills int
}

func (m *mapper) save() saved {
	b := saved{entered: len(m.entered), kills: len(m.kills.gangs)}
	if m.claims != nil {
		b.claims = m.claims.clone()
	}
	return b
}

// restore returns to a saved state. It releases the cells in took, which were taken after the save.
func (m *mapper) restore(b saved, took []*pcell) {
	m.claims = b.claims
	for _, p := range m.entered[b.entered:] {
		p.inside = 0
	}
	m.entered = m.entered[:b.entered]
	for _, g := range m.kills.gangs[b.kills:] {
		g.marked = 0
		g.forgetCosts()
	}
	m.kills.gangs = m.kills.gangs[:b.kills]
	for _, p := range took {
		p.unclaim(m.stamp)
	}
}

// unclaim releases the cells that down claimed.
func (p *pcell) unclaim(stamp uint64) {
	p.claim = 0
	for _, c := range p.children {
		if c.claim == stamp {
			c.unclaim(stamp)
		}
	}
}

// oneNode returns a node with a cell of a level. It prefers an idle node of the fullest rack, then a node with enough idle
// leaves, and then the node with the fewest evictions. If spares returns false, a gang for a part of a node prefers a node with
// enough idle leaves. Nodes with bad leaves come last.
func (m *mapper) oneNode(need, level int) *pcell {
	if !m.spares(m.policy) && m.offered == nil && need < m.leaves[m.node] {
		if n := m.roomyNode(need, level); n != nil {
			return n
		}
	}
	if n := m.cleanNode(level); n != nil {
		return n
	}
	if m.offered == nil {
		if n := m.roomyNode(need, level); n != nil {
			return n
		}
	}
	var best *pcell
	least := noCost
	seen := 0
	for _, n := range m.cells[m.node] {
		if !n.wasFree || !m.open(n) || !m.safeAt(n, level) {
			continue
		}
		cost := m.kills.cost(n, need)<<8 | uint64(min(255, m.occupied(n)))
		if cost < least {
			best, least = n, cost
		}
		if seen++; seen >= maxKillCandidates && best != nil && m.offered == nil {
			break
		}
	}
	if best == nil && level < m.node {
		return nil
	}
	if best == nil {
		return m.damaged(need)
	}
	return best
}

// maxKillCandidates is the maximum number of nodes that are compared for the fewest evictions.
const maxKillCandidates = 128

// damaged returns a node with bad leaves that still has enough good leaves, or nil.
func (m *mapper) damaged(need int) *pcell {
	if m.bad == 0 {
		return nil
	}
	for _, n := range m.cells[m.node] {
		if n.badCount > 0 && int(n.hi-n.lo)-n.badCount >= need && n.isFree() && m.open(n) && m.safe(n) {
			return n
		}
	}
	return nil
}

// safeAt is like safe, for a cell of a level inside the free node n.
func (m *mapper) safeAt(n *pcell, level int) bool {
	if level == n.level {
		return m.safe(n)
	}
	return m.feasible(level, m.from(n), m.claims)
}

func (m *mapper) cleanNode(level int) *pcell {
	if m.top() == m.node {
		return m.firstClean(0, len(m.cells[m.node]), level)
	}
	var best *pcell
	least := noCost
	for i, c := range m.counts[0] {
		if c.clean == 0 || uint64(c.clean)<<8 >= least {
			continue
		}
		p := m.cells[m.node+1][i]
		if m.cleanIn(p) == 0 {
			continue
		}
		if cost := uint64(unsplit(p))<<32 | uint64(c.clean)<<8; cost < least {
			per := m.leaves[m.node]
			if n := m.firstClean(int(p.lo)/per, int(p.hi)/per, level); n != nil {
				best, least = n, cost
			}
		}
	}
	return best
}

func (m *mapper) firstClean(lo, hi, level int) *pcell {
	for i := lo; i < hi; i++ {
		if n := m.cells[m.node][i]; n.wasClean && m.open(n) {
			if m.safeAt(n, level) {
				return n
			}
			if m.top() > m.node {
				return nil // the siblings of this node aren't safer
			}
		}
	}
	return nil
}

// roomyNode returns a node whose opportunistic gangs leave enough idle leaves, or nil.
func (m *mapper) roomyNode(need, level int) *pcell {
	var best *pcell
	have := 0
	for _, b := range m.view.buckets {
		if b.key.class != classFree || b.have < need || b.have < have {
			continue
		}
		for i := b.nodes.first(0, len(m.cells[m.node])); i >= 0; i = b.nodes.first(int(i)+1, len(m.cells[m.node])) {
			n := m.cells[m.node][i]
			if !n.wasFree || !m.open(n) || !m.safeAt(n, level) {
				continue
			}
			if b.have > have || best == nil || n.index < best.index {
				best, have = n, b.have
			}
			break
		}
	}
	return best
}
