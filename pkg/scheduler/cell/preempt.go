package cell

import "slices"

// preemption is a search in a virtual cluster for gangs of lower priority that a guaranteed gang may preempt. It chooses as few
// gangs as possible, and among equal numbers the youngest gangs.
type preemption struct {
	killing
	*space
	*shape
	priority int
	lazy     bool    // whether to consider only gangs that accept a downgrade
	clock    *uint64 // the stamp that was used last
}

// tryPreempt searches for a place on the cells of gangs with lower priorities in the same virtual cluster.
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
				return nil // the next try would have the same result
			}
			blocked = append(blocked, more...)
			continue
		}
		if best == nil || len(best.victims) == 0 || !sp.hasLazy(r.Priority) {
			return best
		}
		// Preempting only gangs that accept a downgrade may require fewer evictions.
		if p, _ := s.preemptSome(t, r, suggested, true); p != nil && len(p.victims) < len(best.victims) {
			return p
		}
		return best
	}
	return nil
}

// blockUnbound excludes unbound virtual nodes from the search. The search prefers such nodes because they require no evictions,
// even if no hardware is available for them. The first try excludes one chosen node. The next tries exclude half of the chosen
// nodes, because hardware for the other nodes may exist. The last tries exclude all unbound nodes.
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

// preemptSome takes the cells of gangs with lower priorities. If lazy is set, it takes only the cells of gangs that accept a
// downgrade. spots are the chosen places.
func (s *Scheduler) preemptSome(t target, r *Request, suggested Nodes, lazy bool) (best *plan, spots []spot) {
	s.stamp++
	p := &preemption{killing{stamp: s.stamp}, t.space, t.shape, r.Priority, lazy, &s.stamp}
	spots, ok := p.choose()
	if !ok {
		return nil, nil
	}
	return s.preemptFor(t, s.newGang(t, r, spots), suggested), spots
}

// preemptFor maps a gang whose virtual leaves are partly in use. It first downgrades the owners that accept a downgrade. The
// virtual cells can then be mapped to other physical cells.
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

// choose returns spots for the shape, and marks the gangs to preempt.
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

// fewestGangs marks gangs to evict for a request without groups. It reports whether it found such gangs.
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

// onNode marks gangs to evict so that all pods fit on one node. It chooses the cell with the fewest evictions.
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

// inUpper marks gangs to evict so that all pods fit into a cell of a level above the node.
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

// trial returns a copy of the search without marked gangs.
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

// costOf returns a number that orders sets of victims. It is lower for fewer gangs, then for lower priorities, then for younger
// gangs.
func costOf(gangs []*gang) uint64 {
	oldest, highest := uint64(1<<32-1), 0
	for _, g := range gangs {
		oldest = min(oldest, g.order)
		highest = max(highest, g.priority)
	}
	return uint64(len(gangs))<<42 | uint64(highest)<<32 | (1<<32 - 1 - oldest)
}

// inScope places each pod on the node with the fewest additional evictions, or on the first such node. The cost of a node
// changes only when a pod is placed there, or when a gang with leaves there is marked.
func (p *preemption) inScope(sc scope) bool {
	seated := make([]int, sc.hi-sc.lo) // number of leaves by node
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

// costOn returns the cost of need leaves on a node, or noCost if too few leaves may be taken there.
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

// eachNode calls f for each node on which a gang has leaves of the space. It may call f several times for the same node.
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

// cheapest finds the first node with the lowest cost while costs change. It is a tree of minimums. The second half contains the
// costs of the nodes.
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

// victims chooses the gangs to evict for need of the leaves. Gangs with more leaves come first, then younger gangs. Free leaves
// and the leaves of marked gangs count as free.
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

// removeUntilFits removes gangs until the shape fits, starting with the lowest priorities and the youngest gangs. Then it
// spares gangs whose eviction isn't necessary. It always finds a place if evicting all gangs with lower priorities is enough.
func (p *preemption) removeUntilFits() ([]spot, bool) {
	all := p.lowerGangs()
	if _, ok := p.placeWithout(all); !ok {
		return nil, false
	}
	// The binary search finds the smallest number of gangs from the front that is enough.
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

// maxSpared is the maximum number of gangs for which removeUntilFits checks whether their eviction is necessary.
const maxSpared = 32

// lowerGangs returns the preemptible gangs of the space, lowest priority and youngest first.
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
