package cell

import (
	"fmt"
	"slices"
)

// mover searches for a place for one slot of a running gang. During the search, the former cells of the slot are free.
type mover struct {
	s       *Scheduler
	gang    *gang
	slot    int
	request *Request // the request for only this pod
	target
	offered Nodes
	limit   *pcell // nil means anywhere
	// crowded means that a place would be available after evicting other gangs.
	crowded bool
}

// maxMoves is the maximum number of nodes that are excluded because a place there requires evictions.
const maxMoves = 8

// find tries the nodes of the gang's other pods first, then nodes in larger cells around them.
func (m *mover) find() *slot {
	nodes := m.roomy()
	tried := 0
	for level := m.chain.node; level <= m.chain.top()+1; level++ {
		near := m.near(nodes, level)
		if len(near) == tried {
			continue
		}
		tried = len(near)
		if to := m.among(near); to != nil {
			return to
		}
	}
	return nil
}

// roomy returns the nodes with enough idle leaves on which the pod may run.
func (m *mover) roomy() []*pcell {
	var out []*pcell
	for i, c := range m.chain.cells[m.chain.node] {
		if m.offered != nil && !m.offered.Has(c.machine.name) || m.limit != nil && !m.limit.touches(c) {
			continue
		}
		if int(m.chain.view.nodes[i].have) >= m.shape.total {
			out = append(out, c)
		} else {
			m.crowded = m.crowded || m.withoutLower(c) >= m.shape.total
		}
	}
	return out
}

// withoutLower counts the leaves of a node that would be idle without the gangs that a new gang of this priority could evict.
func (m *mover) withoutLower(c *pcell) int {
	n := 0
	for _, p := range m.chain.cells[0][c.lo:c.hi] {
		g := p.using
		if p.idle() || m.space != nil && g != nil && !p.bad && (g.opportunistic() || g.space == m.space && g.priority < m.gang.priority) {
			n++
		}
	}
	return n
}

// touches reports whether one of two cells contains the other.
func (p *pcell) touches(o *pcell) bool {
	if p.level < o.level {
		p, o = o, p
	}
	return o.upTo(p.level) == p
}

// near returns the nodes that share a cell of a level with another pod of the gang. Above the top level, it returns all nodes.
func (m *mover) near(nodes []*pcell, level int) []*pcell {
	if level > m.chain.top() {
		return nodes
	}
	cells := map[*pcell]bool{}
	for i := range m.gang.slots {
		if i == m.slot {
			continue
		}
		for _, p := range m.gang.slots[i].leaves {
			if p != nil && p.chain == m.chain {
				cells[p.upTo(level)] = true
			}
		}
	}
	var out []*pcell
	for _, c := range nodes {
		if cells[c.upTo(level)] {
			out = append(out, c)
		}
	}
	return out
}

// among searches for idle cells on the given nodes.
func (m *mover) among(nodes []*pcell) *slot {
	defer m.confine()()
	allowed := map[*pcell]bool{}
	for _, c := range nodes {
		allowed[c] = true
	}
	for range maxMoves {
		p := m.on(allowed)
		if p == nil {
			return nil
		}
		to := p.gang.slots[0]
		if len(p.victims)+len(p.cancels) == 0 && m.inLimit(&to) {
			to.at = p.gang.placement.Pods[0]
			to.at.Set = m.gang.slots[m.slot].at.Set
			return &to
		}
		m.crowded = m.crowded || len(p.victims) > 0
		delete(allowed, to.leaves[0].node)
	}
	return nil
}

// inLimit reports whether a place is within the limit. confine already ensures that, unless the virtual cluster owns only parts
// of the limit.
func (m *mover) inLimit(to *slot) bool {
	return m.limit == nil || !slices.ContainsFunc(to.leaves, func(p *pcell) bool { return p.upTo(m.limit.level) != m.limit })
}

// on searches for a place on the allowed nodes. The place may require evictions.
func (m *mover) on(allowed map[*pcell]bool) *plan {
	names := nodeNames{}
	for c := range allowed {
		names[c.machine.name] = true
	}
	blocked := m.blockUnreachable(allowed)
	defer func() { unblock(m.view(), blocked) }()
	return m.s.tryFree(m.target, m.request, names)
}

type nodeNames map[string]bool

// Has implements Nodes.
func (n nodeNames) Has(name string) bool { return n[name] }

// blockUnreachable excludes virtual nodes that can't be bound to an allowed node. The result is exact for nodes in a bound
// cell. For other nodes, it depends on their size.
func (m *mover) blockUnreachable(allowed map[*pcell]bool) []int32 {
	if m.space == nil {
		return nil
	}
	inside, free := map[*pcell]bool{}, make([]bool, m.chain.top()+1)
	for c := range allowed {
		up := c
		for up != nil && up.bound == nil {
			if up.isFree() {
				free[up.level] = true
			}
			up = up.parent
		}
		if up != nil {
			inside[up] = true
		}
		for level := 0; level < c.level && !c.taken(); level++ {
			free[level] = true // a piece of the cell may be used
		}
	}
	var out []int32
	for i := range m.space.view.nodes {
		if n := &m.space.view.nodes[i]; !n.blocked && !m.reaches(n, allowed, inside, free) {
			m.space.view.block(int32(i), true)
			out = append(out, int32(i))
		}
	}
	return out
}

// reaches reports whether a virtual node is or could be bound to an allowed node.
func (m *mover) reaches(n *viewNode, allowed, inside map[*pcell]bool, free []bool) bool {
	v := m.space.leaves[n.lo]
	for v.level < int(n.top) {
		v = v.parent
	}
	if v.bound != nil {
		return allowed[v.bound.upTo(m.chain.node)]
	}
	for v.parent != nil {
		if v = v.parent; v.bound != nil {
			return inside[v.bound]
		}
	}
	return free[v.level]
}

// confine hides the leaves outside the limit if the limit is smaller than a node. The returned function undoes the change.
func (m *mover) confine() (undo func()) {
	if m.limit == nil || m.limit.level >= m.chain.node || m.space != nil && m.limit.bound == nil {
		return func() {}
	}
	v, first, lo, hi := m.view(), m.limit.upTo(m.chain.node).index, m.limit.lo, m.limit.hi
	if m.space != nil {
		cell := m.limit.bound
		first, lo, hi = m.space.leaves[cell.lo].node, cell.lo, cell.hi
	}
	var hidden []int32
	var blocked []int32
	for i := range v.nodes {
		n := &v.nodes[i]
		if int32(i) != first {
			if !n.blocked {
				v.block(int32(i), true)
				blocked = append(blocked, int32(i))
			}
			continue
		}
		for o := range int32(v.leaves[n.top]) {
			if at := n.lo + o; n.free.has(o) && (at < lo || at >= hi) {
				v.mark(first, o, false)
				hidden = append(hidden, o)
			}
		}
	}
	v.index(first)
	return func() {
		for _, o := range hidden {
			v.mark(first, o, true)
		}
		v.index(first)
		unblock(v, blocked)
	}
}

// reason explains why the slot gets no place.
func (m *mover) reason() string {
	where := fmt.Sprintf("virtual cluster %s", m.gang.key.vc)
	if m.space == nil {
		where = fmt.Sprintf("chain %s", m.chain.names[m.chain.top()])
	}
	if m.limit != nil {
		where += fmt.Sprintf(", in the %s %s of its group,", m.chain.names[m.limit.level], m.limit.address)
	}
	text := fmt.Sprintf("no idle cells of %s that it may use fit its %d %ss", where, m.shape.total, unitOf([]target{m.target}))
	if m.crowded {
		text += "; a running gang preempts no others for one of its pods"
	}
	return text
}
