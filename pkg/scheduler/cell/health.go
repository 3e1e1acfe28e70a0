package cell

import "slices"

// SetNode sets whether a node is usable. It ignores unknown names.
func (s *Scheduler) SetNode(name string, healthy bool) {
	if m := s.machines[name]; m != nil && m.healthy != healthy {
		m.healthy = healthy
		s.review(m)
	}
}

// SetDevice sets whether a GPU of a node is usable.
func (s *Scheduler) SetDevice(node string, index int32, healthy bool) {
	m := s.machines[node]
	if m == nil || m.broken[index] == !healthy {
		return
	}
	if healthy {
		delete(m.broken, index)
	} else {
		m.broken[index] = true
	}
	s.review(m)
}

// review updates the leaves of a machine according to its health. Gangs keep their leaves.
func (s *Scheduler) review(m *machine) {
	for _, c := range m.cells {
		for i := c.lo; i < c.hi; i++ {
			p := c.chain.cells[0][i]
			bad := !m.healthy || m.broken[p.device]
			if bad == p.bad {
				continue
			}
			p.bad = bad
			step := 1
			if !bad {
				step = -1
			}
			c.chain.bad += step
			for up := p; up != nil; up = up.parent {
				up.badCount += step
			}
			if p.bound != nil {
				p.bound.space.touch(p.bound)
			}
		}
		if c.badCount > 0 {
			c.chain.badNodes.set(c.index)
		} else {
			c.chain.badNodes.clear(c.index)
		}
		c.chain.touch(c)
	}
	s.epoch++
	s.unsettled = true
}

func (s *Scheduler) settleLater() { s.unsettled = true }

// settle prepares the state for a decision. It updates all views, and binds bad physical cells so that virtual clusters count
// these cells as bad.
func (s *Scheduler) settle() {
	s.claimExpected()
	s.flush()
	if !s.unsettled {
		return
	}
	s.unsettled = false
	s.clearDoomed()
	s.flush()
	for _, ch := range s.chains {
		if ch.bad > 0 {
			s.doom(ch)
		}
	}
	s.flush()
}

func (s *Scheduler) flush() {
	for _, ch := range s.chains {
		if len(ch.pending) > 0 {
			ch.flush()
		}
	}
	for _, v := range s.vcs {
		for _, sp := range v.spaces {
			if len(sp.pending) > 0 {
				sp.flush()
			}
		}
		for _, sp := range v.pinned {
			if len(sp.pending) > 0 {
				sp.flush()
			}
		}
	}
}

// clearDoomed removes the bindings that exist only because of bad cells.
func (s *Scheduler) clearDoomed() {
	for _, ch := range s.chains {
		for i := len(ch.doomed) - 1; i >= 0; i-- {
			v := ch.doomed[i]
			v.doomed = false
			s.unbindPath(v)
		}
		ch.doomed = ch.doomed[:0]
	}
}

// doom binds bad physical cells to virtual cells, so that virtual clusters don't count on them. Inside bound cells, each bad
// child is bound to a virtual child. If a virtual cluster owns more cells than there are healthy free cells, its last cells are
// bound to bad cells.
func (s *Scheduler) doom(ch *chain) {
	cells := ch.badCells()
	for level := ch.top(); level >= 0; level-- {
		var free []*pcell
		for _, p := range cells[level] {
			if p.bound == nil && p.parent != nil && p.parent.bound != nil {
				if v := p.parent.bound.idleChild(); v != nil {
					s.bindDoomed(v, p)
				}
			}
			if p.isFree() {
				free = append(free, p)
			}
		}
		if len(free) > 0 {
			s.doomRoots(ch, level, free)
		}
	}
}

// badCells returns the cells with bad leaves by level, in order.
func (ch *chain) badCells() [][]*pcell {
	out := make([][]*pcell, len(ch.cells))
	for i := ch.badNodes.first(0, len(ch.cells[ch.node])); i >= 0; i = ch.badNodes.first(int(i)+1, len(ch.cells[ch.node])) {
		n := ch.cells[ch.node][i]
		for up := n.parent; up != nil; up = up.parent {
			if list := out[up.level]; len(list) > 0 && list[len(list)-1] == up {
				break
			}
			out[up.level] = append(out[up.level], up)
		}
		n.badBelow(out)
	}
	return out
}

func (p *pcell) badBelow(out [][]*pcell) {
	if p.badCount == 0 {
		return
	}
	out[p.level] = append(out[p.level], p)
	for _, c := range p.children {
		c.badBelow(out)
	}
}

func (s *Scheduler) bindDoomed(v *vcell, p *pcell) {
	v.doomed = true
	p.chain.doomed = append(p.chain.doomed, v)
	s.bind(v, p)
}

// idleChild returns the last unbound child, or nil.
func (v *vcell) idleChild() *vcell {
	for i := len(v.children) - 1; i >= 0; i-- {
		if v.children[i].bound == nil {
			return v.children[i]
		}
	}
	return nil
}

func (s *Scheduler) doomRoots(ch *chain, level int, free []*pcell) {
	slices.SortStableFunc(free, func(a, b *pcell) int { return b.badCount - a.badCount })
	for _, v := range s.vcs {
		for _, sp := range v.spaces {
			if sp.chain != ch {
				continue
			}
			for len(free) > 0 && sp.unbound[level] > ch.obtainable(level)-len(free) {
				root := sp.lastUnbound(level)
				if root == nil || !s.safeToTake(free[0]) {
					break
				}
				s.bindDoomed(root, free[0])
				free = free[1:]
			}
		}
	}
}

// obtainable returns the number of cells of a level that are free, or would be free after splitting larger cells.
func (ch *chain) obtainable(level int) int {
	n := 0
	for l := ch.top(); l >= level; l-- {
		if l < ch.top() {
			n *= ch.fanout[l+1]
		}
		n += ch.free[l]
	}
	return n
}

func (sp *space) lastUnbound(level int) *vcell {
	for i := len(sp.roots) - 1; i >= 0; i-- {
		if r := sp.roots[i]; r.level == level && r.bound == nil {
			return r
		}
	}
	return nil
}
