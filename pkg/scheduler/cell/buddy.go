package cell

// Buddy allocation: a preassigned cell of a virtual cluster takes a free physical cell of its level. The remaining free cells
// must be enough for all unused cells of virtual clusters. feasible checks this safety condition of sharing.

// taken reports whether a preassigned cell is bound to p or to a cell around p.
func (p *pcell) taken() bool {
	for ; p != nil; p = p.parent {
		if p.bound != nil && p.bound.parent == nil {
			return true
		}
	}
	return false
}

// isFree reports whether p can be bound to a preassigned cell.
func (p *pcell) isFree() bool { return p.split == 0 && !p.taken() }

// freeTop returns the largest free cell that contains the free cell p.
func (p *pcell) freeTop() *pcell {
	for p.parent != nil && p.parent.split == 0 {
		p = p.parent
	}
	return p
}

// allocate removes p from the free cells.
func (ch *chain) allocate(p *pcell) {
	top := p.freeTop()
	ch.free[top.level]--
	ch.largest[top.level].clear(top.index)
	for c := p; c != top; c = c.parent {
		for _, sibling := range c.parent.children {
			if sibling != c {
				ch.free[c.level]++
				ch.largest[c.level].set(sibling.index)
			}
		}
	}
	for up := p.parent; up != nil; up = up.parent {
		up.split++
	}
}

// release returns p to the free cells and merges it with its free siblings.
func (ch *chain) release(p *pcell) {
	for up := p.parent; up != nil; up = up.parent {
		up.split--
	}
	top := p.freeTop()
	for c := p; c != top; c = c.parent {
		for _, sibling := range c.parent.children {
			if sibling != c {
				ch.free[c.level]--
				ch.largest[c.level].clear(sibling.index)
			}
		}
	}
	ch.free[top.level]++
	ch.largest[top.level].set(top.index)
}

// claims counts the remaining cells during an unfinished mapping.
type claims struct{ free, owed []int }

func (ch *chain) claims() *claims {
	return &claims{append([]int(nil), ch.free...), append([]int(nil), ch.owed...)}
}

func (c *claims) clone() *claims {
	return &claims{append([]int(nil), c.free...), append([]int(nil), c.owed...)}
}

// take removes a cell of a level from one of the largest free cells. from is the level of that free cell.
func (c *claims) take(t *tree, level, from int) {
	c.free[from]--
	for l := from - 1; l >= level; l-- {
		c.free[l] += t.fanout[l+1] - 1
	}
	c.owed[level]--
}

// feasible reports whether enough free cells remain for all owed cells after a cell of a level is taken. The cell comes from
// one of the largest free cells, whose level is from. If from is -1, no cell is taken. If c isn't nil, it contains the counts
// during a mapping.
func (ch *chain) feasible(level, from int, c *claims) bool {
	free, owed := ch.free, ch.owed
	if c != nil {
		free, owed = c.free, c.owed
	}
	have := 0
	for l := ch.top(); l >= 0; l-- {
		if l < ch.top() {
			have *= ch.fanout[l+1]
		}
		have += free[l] - owed[l]
		switch {
		case l == from && from != level: // if both are equal, a cell is taken and one cell less is owed
			have--
		case l < from && l >= level && level >= 0:
			have += ch.fanout[l+1] - 1
			if l == level {
				have++
			}
		}
		if have < 0 {
			return false
		}
	}
	return true
}

// bind binds a virtual cell to a physical cell. If the virtual cell is a root, bind removes p from the free cells.
func (s *Scheduler) bind(v *vcell, p *pcell) {
	if v.parent == nil {
		p.chain.allocate(p)
		v.space.unbound[v.level]--
		p.chain.owed[v.level]--
	} else {
		v.parent.boundKids++
	}
	v.bound, p.bound = p, v
	p.chain.reclass(v, p, 1)
	p.chain.touchAll(p)
	if v.level == 0 {
		v.space.touch(v)
	}
}

// unbind undoes bind. No leaf of v may be in use.
func (s *Scheduler) unbind(v *vcell) {
	p := v.bound
	v.bound, p.bound = nil, nil
	p.chain.reclass(v, p, 0)
	if v.parent == nil {
		p.chain.release(p)
		v.space.unbound[v.level]++
		p.chain.owed[v.level]++
	} else {
		v.parent.boundKids--
	}
	p.chain.touchAll(p)
	if v.level == 0 {
		v.space.touch(v)
	}
}

// reclass changes the class of nodes in the physical view when a rack is bound to a virtual cluster or released.
func (ch *chain) reclass(v *vcell, p *pcell, class uint8) {
	if v.parent != nil {
		return
	}
	for level := ch.node + 1; level <= p.level; level++ {
		per := int32(ch.leaves[level])
		for i := p.lo / per; i < p.hi/per; i++ {
			ch.view.upper[level-ch.node-1][i].class = class
		}
	}
}

// bindPath binds a leaf and its unbound ancestors.
func (s *Scheduler) bindPath(v *vcell, p *pcell) {
	for v != nil && v.bound == nil {
		s.bind(v, p)
		v, p = v.parent, p.parent
	}
}

// unbindPath undoes bindPath, except for cells that other leaves need. It keeps doomed and pinned cells.
func (s *Scheduler) unbindPath(v *vcell) {
	for v != nil && v.bound != nil && v.owner == nil && v.boundKids == 0 && !v.doomed && !v.isPinned() {
		up := v.parent
		s.unbind(v)
		v = up
	}
}

func (v *vcell) isPinned() bool { return v.parent == nil && v.space.pinned != "" }

// touchAll marks the nodes inside or around a cell for an update.
func (ch *chain) touchAll(p *pcell) {
	if p.level <= ch.node {
		ch.touch(p.upTo(ch.node))
		return
	}
	per := int32(ch.leaves[ch.node])
	for i := p.lo / per; i < p.hi/per; i++ {
		ch.touch(ch.cells[ch.node][i])
	}
}

func (p *pcell) upTo(level int) *pcell {
	for p.level < level {
		p = p.parent
	}
	return p
}

func (ch *chain) touch(node *pcell) {
	if !node.isPending {
		node.isPending = true
		ch.pending = append(ch.pending, node.index)
	}
}

// Classes of physical nodes for opportunistic gangs. A gang in a later class is preempted sooner.
const (
	classFree   = iota // no virtual cluster has cells on the node
	classInside        // the node's rack is bound, but the node itself isn't
	classBound
)

// flush updates the view and the counts for the marked nodes.
func (ch *chain) flush() {
	for _, i := range ch.pending {
		n := ch.cells[ch.node][i]
		n.isPending = false
		free := n.isFree()
		vn := &ch.view.nodes[i]
		for o := n.lo; o < n.hi; o++ {
			leaf := ch.cells[0][o]
			ch.view.mark(i, o-n.lo, leaf.idle())
		}
		switch {
		case free:
			vn.class = classFree
		case n.bound == nil && n.split == 0:
			vn.class = classInside
		default:
			vn.class = classBound
		}
		ch.view.index(i)
		usable := free && n.badCount == 0
		clean := usable && vn.have == n.hi-n.lo
		n.count(usable, clean)
	}
	ch.pending = ch.pending[:0]
}

func (p *pcell) count(usable, clean bool) {
	free, idle := delta(p.wasFree, usable), delta(p.wasClean, clean)
	p.wasFree, p.wasClean = usable, clean
	p.chain.clean += idle
	if free == 0 && idle == 0 {
		return
	}
	for up := p.parent; up != nil; up = up.parent {
		c := &p.chain.counts[up.level-p.chain.node-1][up.index]
		c.free += int32(free)
		c.clean += int32(idle)
	}
}

func delta(before, after bool) int {
	switch {
	case after && !before:
		return 1
	case before && !after:
		return -1
	}
	return 0
}

// idle reports whether an opportunistic gang could use the leaf.
func (p *pcell) idle() bool { return p.using == nil && p.reserving == nil && !p.bad }

func (sp *space) touch(leaf *vcell) {
	if !leaf.isPending {
		leaf.isPending = true
		sp.pending = append(sp.pending, leaf.lo)
	}
}

// available reports whether a gang of the virtual cluster could use the leaf.
func (v *vcell) available() bool { return v.owner == nil && (v.bound == nil || !v.bound.bad) }

func (sp *space) flush() {
	for _, i := range sp.pending {
		leaf := sp.leaves[i]
		leaf.isPending = false
		sp.view.mark(leaf.node, leaf.lo-leaf.base, leaf.available())
	}
	for _, i := range sp.pending {
		sp.view.index(sp.leaves[i].node)
	}
	sp.pending = sp.pending[:0]
}
