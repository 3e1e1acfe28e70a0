package cell

import "slices"

type gangKey struct{ vc, name string }

// gang is a gang of pods that runs or holds reservations.
type gang struct {
	key        gangKey
	request    *Request
	sets       []PodSet
	priority   int    // the requested priority
	space      *space // nil if the gang runs as an opportunistic gang
	chain      *chain
	order      uint64
	moves      uint64 // how often a slot was moved to another place
	slots      []slot
	placement  *Placement
	former     *Placement // the placement with the guarantee, if the gang was downgraded since the scheduler started
	running    int        // number of slots with a pod
	preempting bool       // whether the gang holds reservations, and none of its pods runs
	waiting    []PodID
	preemptor  string
	marked     uint64 // stamp of the search that evicts the gang
	taken      int    // number of its leaves that a preemptor has reserved
	// from contains the first slot of each set that may have no pod. It is nil if it isn't computed yet.
	from    []int
	demoted []*gang // gangs that lost their guarantee because of this gang's reservation
	reason  string  // why the gang has lost its guarantee
}

type slot struct {
	pod PodID // "" before the first pod
	at  PodPlacement
	// leaves are the physical leaves, in the order of at.Indices. A leaf is nil if the configuration no longer contains the
	// leaf.
	leaves  []*pcell
	virtual []*vcell // nil if the gang is opportunistic
	// expected means that the place comes from the annotations of other pods. At the next settle, the slot gets its cells if
	// they are free.
	expected bool
}

// open reports whether no cells are kept for the slot's pod.
func (sl *slot) open() bool { return sl.at.isOpen() }

func (p *PodPlacement) isOpen() bool { return p.Node == "" && len(p.Indices) == 0 }

func (sl *slot) isAt(p *PodPlacement) bool {
	return sl.at.Node == p.Node && slices.Equal(sl.at.Indices, p.Indices)
}

type seat struct {
	gang *gang
	slot int
}

// opportunistic reports whether the gang runs without a guarantee. Any guaranteed gang can preempt such a gang.
func (g *gang) opportunistic() bool { return g.space == nil }

func (g *gang) gpus() int {
	n := 0
	for i := range g.slots {
		n += len(g.slots[i].at.Indices)
	}
	return n
}

// String returns the gang's name for users.
func (k gangKey) String() string { return k.vc + "/" + k.name }

// own assigns a leaf to slot i of a gang. The virtual leaf is assigned at once. The physical leaf is assigned when the gang
// runs.
func (s *Scheduler) own(g *gang, i int, p *pcell, v *vcell) {
	if v != nil {
		if v.owner != nil {
			v.space.used[v.owner.priority]--
		}
		v.owner = g
		v.space.used[g.priority]++
		v.space.touch(v)
		s.bindPath(v, p)
	}
	if g.preempting {
		p.reserving = g
		if p.using != nil {
			p.using.taken++
		}
	} else {
		p.using, p.slot = g, int32(i)
	}
	p.chain.touch(p.node)
}

// disown moves a virtual leaf from its owner to next. If next is nil, the leaf becomes free.
func (s *Scheduler) disown(v *vcell, next *gang) {
	v.space.used[v.owner.priority]--
	v.owner = next
	v.space.touch(v)
	if next != nil {
		v.space.used[next.priority]++
		return
	}
	s.unbindPath(v)
}

func (s *Scheduler) enter(g *gang) {
	s.gangs[g.key] = g
	for i := range g.slots {
		s.occupy(g, i)
	}
	s.charge(g, 1)
	s.changed()
}

// charge adds the gang's GPUs to the usage of its user and group. If sign is -1, it subtracts them.
func (s *Scheduler) charge(g *gang, sign int) {
	if g.space == nil || g.chain.cpu {
		return
	}
	vc, n := s.byVC[g.key.vc], sign*g.gpus()
	u := g.request.User
	if vc.userUse[u] += n; vc.userUse[u] == 0 {
		delete(vc.userUse, u)
	}
	if u := g.request.UserGroup; u != "" {
		if vc.groupUse[u] += n; vc.groupUse[u] == 0 {
			delete(vc.groupUse, u)
		}
	}
}

// leave removes a running gang from the state. Leaves that a preemptor has reserved stay reserved.
func (s *Scheduler) leave(g *gang) {
	s.charge(g, -1)
	for i := range g.slots {
		s.vacate(g, i)
	}
	delete(s.gangs, g.key)
	s.changed()
}

func (sl *slot) leaf(k int) *vcell {
	if sl.virtual == nil {
		return nil
	}
	return sl.virtual[k]
}

// cancel releases the cells that a gang has reserved. Gangs that lost their guarantee because of the reservation may then
// regain it.
func (s *Scheduler) cancel(g *gang) {
	s.charge(g, -1)
	for i := range g.slots {
		for k, p := range g.slots[i].leaves {
			if p == nil {
				continue
			}
			p.reserving = nil
			p.chain.touch(p.node)
			if p.using != nil {
				p.using.taken--
			}
			v := g.slots[i].leaf(k)
			if v == nil || v.owner != g {
				continue
			}
			if back := p.using; back != nil && back.space == v.space && back.holds(p, v) {
				s.disown(v, back)
			} else {
				s.disown(v, nil)
			}
		}
	}
	delete(s.gangs, g.key)
	s.changed()
	s.bereft = append(s.bereft, g.demoted...)
}

// restoreGuarantees restores the guarantees of gangs that a canceled reservation downgraded, if their virtual cells are free.
func (s *Scheduler) restoreGuarantees() []Downgrade {
	var back []Downgrade
	for _, g := range s.bereft {
		if preemptor := g.preemptor; s.gangs[g.key] == g && s.promote(g) {
			change := g.downgrade("the preemption by " + preemptor + " has ended")
			change.Restored = true
			back = append(back, change)
		}
	}
	s.bereft = nil
	return back
}

// promote assigns a gang's former virtual cells again if no other gang uses them. It reports whether it did.
func (s *Scheduler) promote(g *gang) bool {
	if g.space != nil || g.former == nil || g.priority < MinGuaranteed {
		return false
	}
	sp, _ := s.spaceOf(g, g.former)
	if sp == nil {
		return false
	}
	g.space = sp
	for i := range g.slots {
		g.slots[i].virtual = make([]*vcell, len(g.slots[i].leaves))
		for k, p := range g.slots[i].leaves {
			if p == nil {
				continue
			}
			v := sp.byAddress(valueAt(g.former.Pods[i].Virtual, k))
			if v == nil || v.owner != nil || !s.matches(g, g.priority, v, p) {
				s.unclaim(g)
				return false
			}
			g.slots[i].virtual[k] = v
			v.owner = g
			sp.used[g.priority]++
			sp.touch(v)
			s.bindPath(v, p)
		}
	}
	g.preemptor, g.former, g.reason = "", nil, ""
	g.placement = g.describe()
	s.charge(g, 1)
	s.changed()
	return true
}

// holds reports whether the gang runs on the physical leaf p with the virtual leaf v.
func (g *gang) holds(p *pcell, v *vcell) bool {
	sl := &g.slots[p.slot]
	k := slices.Index(sl.leaves, p)
	return k >= 0 && sl.leaf(k) == v
}

// start makes a gang use the cells that it has reserved. The gang's victims must have ended.
func (s *Scheduler) start(g *gang) {
	g.preempting = false
	g.waiting, g.demoted = nil, nil
	for i := range g.slots {
		for _, p := range g.slots[i].leaves {
			if p == nil {
				continue
			}
			p.reserving, p.using, p.slot = nil, g, int32(i)
			p.chain.touch(p.node)
		}
	}
	s.changed()
}

// demote revokes a running gang's guarantee. The gang continues as an opportunistic gang in the same place. The returned
// function undoes the change while the rest of the state hasn't changed.
func (s *Scheduler) demote(g *gang, preemptor string) (undo func()) {
	s.charge(g, -1)
	space, before := g.space, make([][]*vcell, len(g.slots))
	var back []restore
	for i := range g.slots {
		before[i] = g.slots[i].virtual
		for k, v := range before[i] {
			if v != nil && v.owner == g {
				back = append(back, restore{v, g.slots[i].leaves[k]})
				s.disown(v, nil)
			}
		}
		g.slots[i].virtual = nil
	}
	g.space, g.preemptor, g.reason = nil, preemptor, "its virtual cells went to "+preemptor
	placement := g.placement
	g.former = placement
	g.placement = g.describe()
	s.changed()
	return func() {
		g.space, g.preemptor, g.reason, g.placement, g.former = space, "", "", placement, nil
		for i := range g.slots {
			g.slots[i].virtual = before[i]
		}
		for _, r := range back {
			r.v.owner = g
			space.used[g.priority]++
			space.touch(r.v)
			s.bindPath(r.v, r.p)
		}
		s.charge(g, 1)
	}
}

type restore struct {
	v *vcell
	p *pcell
}

func (g *gang) describe() *Placement {
	p := &Placement{chain: g.chain, Chain: g.chain.names[g.chain.top()], Order: g.order, Moves: g.moves, Downgraded: g.opportunistic() && g.priority >= MinGuaranteed}
	p.Pods = make([]PodPlacement, len(g.slots))
	n := g.gpus()
	types := make([]string, 0, max(g.leafCount()/max(len(g.slots), 1), 8))
	var virtual, last []string
	if g.space != nil {
		virtual = make([]string, 0, n)
	}
	for i := range g.slots {
		sl := &g.slots[i]
		from, fromVirtual := len(types), len(virtual)
		for k := range sl.at.Indices {
			v := sl.leaf(k)
			switch {
			case g.space == nil:
				types = append(types, "")
			case v != nil:
				types = append(types, v.space.chain.names[v.root.level])
				virtual = append(virtual, v.address)
			default: // for a leaf that is no longer configured: the former type
				types = append(types, valueAt(sl.at.Preassigned, k))
				virtual = append(virtual, valueAt(sl.at.Virtual, k))
			}
		}
		p.Pods[i] = sl.at
		if own := types[from:len(types):len(types)]; slices.Equal(own, last) { // nearly always true
			p.Pods[i].Preassigned, types = last, types[:from]
		} else {
			p.Pods[i].Preassigned, last = own, own
		}
		p.Pods[i].Virtual = nil
		if g.space != nil {
			p.Pods[i].Virtual = virtual[fromVirtual:len(virtual):len(virtual)]
		}
	}
	return p
}

// changed invalidates all plans.
func (s *Scheduler) changed() {
	s.epoch++
	for _, ch := range s.chains {
		if ch.bad > 0 {
			s.unsettled = true
		}
	}
}
