package cell

import "slices"

// preemption is one search for gangs of lower priority inside a virtual cluster whose cells a
// guaranteed gang may take: as few as possible, and of equal numbers the youngest.
type preemption struct {
	killing
	*space
	*shape
	priority int
	lazy     bool    // only gangs that accept a downgrade
	clock    *uint64 // the last stamp
}

// tryPreempt searches for a place that takes cells of lower priorities in the same virtual cluster.
func (s *Scheduler) tryPreempt(t target, r *Request, suggested Nodes) *plan {
	sp := t.space
	lower := 0
	for p := range r.Priority {
		lower += sp.used[p]
	}
	if lower == 0 || sp.view.free+lower < t.shape.total {
		return nil
	}
	blocked := s.blockUnoffered(t, suggested, nil)
	defer func() { unblock(sp.view, blocked) }()
	for i := range mapTries {
		best, spots := s.preemptSome(t, r, suggested, false)
		if best == nil && spots != nil {
			more := sp.blockUnbound(spots, i)
			if len(more) == 0 {
				return nil // the result would be the same again
			}
			blocked = append(blocked, more...)
			continue
		}
		if best == nil || len(best.victims) == 0 || !sp.hasLazy(r.Priority) {
			return best
		}
		// Downgrading gangs that accept it can be enough, and then fewer gangs have to be evicted.
		if p, _ := s.preemptSome(t, r, suggested, true); p != nil && len(p.victims) < len(best.victims) {
			return p
		}
		return best
	}
	return nil
}

// blockUnbound removes unbound virtual nodes from the search: using them evicts no gangs, and if there is no hardware for them, they
// hide the nodes that have hardware. The first try blocks one chosen node. The next tries block half of the chosen nodes, since
// other nodes may have hardware by then. The last tries block all unbound nodes.
func (sp *space) blockUnbound(spots []spot, try int) (out []int32) {
	var chosen []int32
	add := func(node int32) {
		n := &sp.view.nodes[node]
		if !n.blocked && sp.machineOf(n) == nil && !slices.Contains(chosen, node) {
			chosen = append(chosen, node)
		}
	}
	if try < mapTries-2 {
		for i := len(spots) - 1; i >= 0; i-- {
			add(spots[i].node)
		}
		if n := len(chosen); n > 0 {
			chosen = chosen[:max(1, (n+1)/2*min(try, 1))]
		}
	} else {
		for i := range sp.view.nodes {
			if n := &sp.view.nodes[i]; !n.blocked && sp.machineOf(n) == nil {
				chosen = append(chosen, int32(i))
			}
		}
	}
	for _, node := range chosen {
		if sp.isNowhere(node) {
			out = append(out, sp.blockRoot(sp.rootOf(node))...)
		} else if !sp.view.nodes[node].blocked {
			sp.view.block(node, true)
			out = append(out, node)
		}
	}
	return out
}

// preemptSome chooses among all gangs of lower priority, or, if lazy, among the gangs that accept a downgrade. spots are the chosen places.
func (s *Scheduler) preemptSome(t target, r *Request, suggested Nodes, lazy bool) (best *plan, spots []spot) {
	s.stamp++
	p := &preemption{killing{stamp: s.stamp}, t.space, t.shape, r.Priority, lazy, &s.stamp}
	spots, ok := p.choose()
	if !ok {
		return nil, nil
	}
	return s.preemptFor(t, s.newGang(t, r, spots), suggested), spots
}

// preemptFor maps a gang whose virtual leaves are partly in use. Owners that accept it are
// downgraded first, so that the virtual cells can be mapped elsewhere.
func (s *Scheduler) preemptFor(t target, g *gang, suggested Nodes) *plan {
	epoch := s.epoch
	var demoted []*gang
	var undo []func()
	for i := range g.slots {
		for _, v := range g.slots[i].virtual {
			if o := v.owner; o != nil && o.downgradable() {
				demoted = append(demoted, o)
				undo = append(undo, s.demote(o, g.key.String()))
			}
		}
	}
	s.flush()
	var p *plan
	if s.mapLeaves(t.space, g.slots, suggested) {
		p = s.finish(g, demoted)
		p.epoch = epoch
	}
	for i := len(undo) - 1; i >= 0; i-- {
		undo[i]()
	}
	s.flush()
	s.epoch = epoch
	return p
}

// choose picks the gangs to preempt and the leaves for the shape.
func (p *preemption) choose() ([]spot, bool) {
	if p.root.flat() {
		if p.fewestGangs() {
			if spots, ok := p.placeWithout(p.gangs); ok {
				return spots, true
			}
		}
	}
	return p.removeUntilFits()
}

// placeWithout places the shape as if gangs didn't exist.
func (p *preemption) placeWithout(gangs []*gang) ([]spot, bool) {
	freed := make([]*vcell, 0, len(gangs))
	for _, g := range gangs {
		for i := range g.slots {
			for _, v := range g.slots[i].virtual {
				if v != nil && v.owner == g && v.space == p.space && (v.bound == nil || !v.bound.bad) {
					freed = append(freed, v)
				}
			}
		}
	}
	p.view.markAll(freed, true)
	spots, ok := p.view.place(p.shape)
	p.view.markAll(freed, false)
	return spots, ok
}

// fewestGangs marks the gangs whose eviction makes room for equal or unequal pods in a flat request.
func (p *preemption) fewestGangs() bool {
	if p.total <= p.view.leaves[p.view.node] && p.onNode() {
		return true
	}
	for level := p.view.node + 1; level <= p.view.top(); level++ {
		if p.view.leaves[level] < p.total {
			continue
		}
		if p.inUpper(level) {
			return true
		}
	}
	return p.inScope(p.view.all())
}

// onNode chooses the node, and the cell in it, where the fewest gangs must be evicted for all pods.
func (p *preemption) onNode() bool {
	best, least := (*victims)(nil), noCost
	for i := range p.view.nodes {
		n := &p.view.nodes[i]
		if n.blocked || p.view.leaves[n.top] < p.total {
			continue
		}
		for level := 0; level <= int(n.top); level++ {
			size := int32(p.view.leaves[level])
			if int(size) < p.total {
				continue
			}
			found := false
			for lo := n.lo; lo < n.lo+int32(p.view.leaves[n.top]); lo += size {
				v, ok := p.victims(p.leaves[lo:lo+size], p.total)
				if !ok {
					continue
				}
				found = true
				if cost := v.cost()<<8 | uint64(level); cost < least {
					best, least = &v, cost
				}
			}
			if found {
				break
			}
		}
	}
	if best == nil {
		return false
	}
	p.markAll(best.gangs[:best.n])
	return true
}

// inUpper chooses the cell above the node where the fewest gangs must be evicted.
func (p *preemption) inUpper(level int) bool {
	var best []*gang
	least := noCost
	for i := range p.view.upper[level-p.view.node-1] {
		c := &p.view.upper[level-p.view.node-1][i]
		trial := p.trial()
		if !trial.inScope(scope{c.lo, c.hi}) {
			continue
		}
		if cost := costOf(trial.gangs); cost < least {
			best, least = trial.gangs, cost
		}
	}
	if best == nil {
		return false
	}
	p.markAll(best)
	return true
}

// trial returns a copy of the search without the marked gangs.
func (p *preemption) trial() *preemption {
	*p.clock++
	return &preemption{killing{stamp: *p.clock}, p.space, p.shape, p.priority, p.lazy, p.clock}
}

func (p *preemption) markAll(gangs []*gang) {
	p.gangs = p.gangs[:0]
	*p.clock++
	p.stamp = *p.clock
	for _, g := range gangs {
		p.mark(g)
	}
}

// costOf returns a number that orders sets of victims: few before many, low priorities before high ones, young before old.
func costOf(gangs []*gang) uint64 {
	oldest, highest := uint64(1<<32-1), 0
	for _, g := range gangs {
		oldest = min(oldest, g.order)
		highest = max(highest, g.priority)
	}
	return uint64(len(gangs))<<42 | uint64(highest)<<32 | (1<<32 - 1 - oldest)
}

// inScope places the pods one by one on the node where the fewest additional gangs must be evicted, or on the first of
// equal nodes. The cost of a node changes only if a pod is placed there, or a gang is marked that has leaves there.
func (p *preemption) inScope(sc scope) bool {
	seated := make([]int, sc.hi-sc.lo) // leaves by node
	var costs cheapest
	n := 0
	for _, set := range p.root.sets {
		want := p.sets[set]
		cost := func(i int32) uint64 { return p.costOn(i, seated[i-sc.lo]+want.n) }
		if n != want.n {
			n = want.n
			costs.build(sc, cost)
		}
		for range want.count {
			node, least := costs.first()
			if least == noCost {
				return false
			}
			chosen, _ := p.onWholeNode(node, seated[node-sc.lo]+want.n)
			seated[node-sc.lo] += want.n
			for _, g := range chosen.gangs[:chosen.n] {
				p.mark(g)
				p.eachNode(g, func(i int32) {
					if i != node && i >= sc.lo && i < sc.hi {
						costs.set(i, cost(i))
					}
				})
			}
			costs.set(node, cost(node))
		}
	}
	return true
}

// costOn returns the cost of need leaves of a node, or noCost if the node can't have them.
func (p *preemption) costOn(node int32, need int) uint64 {
	v, ok := p.onWholeNode(node, need)
	if !ok {
		return noCost
	}
	return v.cost()
}

func (p *preemption) onWholeNode(node int32, need int) (victims, bool) {
	n := &p.view.nodes[node]
	size := p.view.leaves[n.top]
	if n.blocked || size < need {
		return victims{}, false
	}
	return p.victims(p.leaves[n.lo:n.lo+int32(size)], need)
}

// eachNode calls f for each node where a gang has leaves of the space, for some more than once.
func (p *preemption) eachNode(g *gang, f func(int32)) {
	last := int32(-1)
	for i := range g.slots {
		for _, v := range g.slots[i].virtual {
			if v != nil && v.space == p.space && v.node != last {
				last = v.node
				f(v.node)
			}
		}
	}
}

// cheapest finds the first of the nodes with the least cost, while costs change. It is a tree of minimums: the costs of
// the nodes are its last half.
type cheapest struct {
	lo   int32
	size int
	min  []uint64
}

func (c *cheapest) build(sc scope, cost func(int32) uint64) {
	c.lo, c.size = sc.lo, 1
	for c.size < int(sc.hi-sc.lo) {
		c.size *= 2
	}
	if c.min == nil {
		c.min = make([]uint64, 2*c.size)
	}
	for i := range c.size {
		c.min[c.size+i] = noCost
		if node := sc.lo + int32(i); node < sc.hi {
			c.min[c.size+i] = cost(node)
		}
	}
	for i := c.size - 1; i > 0; i-- {
		c.min[i] = min(c.min[2*i], c.min[2*i+1])
	}
}

func (c *cheapest) set(node int32, cost uint64) {
	i := c.size + int(node-c.lo)
	c.min[i] = cost
	for i /= 2; i > 0; i /= 2 {
		least := min(c.min[2*i], c.min[2*i+1])
		if c.min[i] == least {
			return
		}
		c.min[i] = least
	}
}

func (c *cheapest) first() (int32, uint64) {
	i := 1
	for i < c.size {
		if i *= 2; c.min[i] > c.min[i+1] {
			i++
		}
	}
	return c.lo + int32(i-c.size), c.min[1]
}

// victims are the gangs to evict for one cell.
type victims struct {
	gangs [16]*gang
	n     int
}

func (v *victims) cost() uint64 {
	if v.n == 0 {
		return 0
	}
	return costOf(v.gangs[:v.n])
}

// victims chooses the gangs to evict for need of the leaves: the gangs with the most leaves first, and if they have
// equally many, the youngest gang. Leaves that are free or belong to marked gangs count as free.
func (p *preemption) victims(leaves []*vcell, need int) (victims, bool) {
	var store [16]share
	parts := store[:0]
next:
	for _, v := range leaves {
		g := v.owner
		switch {
		case v.bound != nil && v.bound.bad:
			continue
		case g == nil || g.marked == p.stamp:
			need--
			continue
		case !p.mayTake(g):
			continue
		}
		for i := range parts {
			if parts[i].g == g {
				parts[i].n++
				continue next
			}
		}
		parts = append(parts, share{g, 1})
	}
	out, fit := victims{}, true
	ok := pickVictims(parts, need, func(g *gang) {
		if out.n == len(out.gangs) {
			fit = false
			return
		}
		out.gangs[out.n] = g
		out.n++
	})
	return out, ok && fit
}

// removeUntilFits evicts the youngest gangs of the lowest priorities until the shape fits, and then keeps those whose
// eviction wasn't needed. It finds a place whenever evicting all of them makes one.
func (p *preemption) removeUntilFits() ([]spot, bool) {
	all := p.lowerGangs()
	if _, ok := p.placeWithout(all); !ok {
		return nil, false
	}
	// The smallest number of gangs from the front that is enough, by halving.
	lo, hi := 0, len(all)
	for lo < hi {
		mid := (lo + hi) / 2
		if _, ok := p.placeWithout(all[:mid]); ok {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	chosen := slices.Clone(all[:lo])
	for i := len(chosen) - 1; i >= max(0, len(chosen)-maxSpared); i-- {
		without := slices.Delete(slices.Clone(chosen), i, i+1)
		if _, ok := p.placeWithout(without); ok {
			chosen = without
		}
	}
	return p.placeWithout(chosen)
}

// maxSpared limits the search for gangs that needn't be evicted.
const maxSpared = 32

// lowerGangs lists the gangs of the space that may be preempted, by priority, the youngest first.
func (p *preemption) lowerGangs() []*gang {
	*p.clock++
	p.stamp = *p.clock
	p.gangs = p.gangs[:0]
	for _, v := range p.leaves {
		if g := v.owner; g != nil && p.mayTake(g) {
			p.mark(g)
		}
	}
	slices.SortFunc(p.gangs, func(a, b *gang) int {
		if a.priority != b.priority {
			return a.priority - b.priority
		}
		return int(b.order) - int(a.order)
	})
	return p.gangs
}
