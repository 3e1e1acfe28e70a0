package cell

import "slices"

// plan is a placement that isn't applied yet.
type plan struct {
	epoch   uint64
	gang    *gang
	demoted []*gang // gangs that lose their guarantee because of it
	cancels []*gang // gangs that lose their reservations because of it
	victims []*gang // gangs that must be evicted first
	move    *move   // for a running gang; nil for a new gang
}

// newGang returns a new gang for the spots in the target's view. In a physical view, the gang gets its leaves at once.
func (s *Scheduler) newGang(t target, r *Request, spots []spot) *gang {
	g := &gang{key: gangKey{r.VirtualCluster, r.Gang}, request: r, sets: r.Sets(), priority: r.Priority, space: t.space, chain: t.chain, order: s.order + 1}
	g.slots = make([]slot, len(spots))
	v := t.view()
	pods := 0
	var virtual []*vcell
	var leaves []*pcell
	if t.space != nil {
		virtual = make([]*vcell, t.shape.total)
	} else {
		leaves = make([]*pcell, t.shape.total)
	}
	for set, sh := range t.shape.sets {
		for range sh.count {
			sl := &g.slots[pods]
			sl.at.Set = set
			at := spots[pods]
			slices.Sort(at.offsets)
			lo, n := v.nodes[at.node].lo, len(at.offsets)
			if t.space != nil {
				sl.virtual, virtual = virtual[:n:n], virtual[n:]
				for k, o := range at.offsets {
					sl.virtual[k] = t.space.leaves[lo+o]
				}
			} else {
				sl.leaves, leaves = leaves[:n:n], leaves[n:]
				for k, o := range at.offsets {
					sl.leaves[k] = t.chain.cells[0][lo+o]
				}
			}
			pods++
		}
	}
	return g
}

// finish completes a mapped gang and returns its plan. It sets the addresses in order of devices, the victims, and the written
// placement.
func (s *Scheduler) finish(g *gang, demoted []*gang) *plan {
	p := &plan{epoch: s.epoch, gang: g, demoted: demoted}
	s.stamp++
	victims := s.killed[:0]
	indices := make([]int32, 0, g.leafCount())
	for i := range g.slots {
		sl := &g.slots[i]
		sl.sortByDevice()
		sl.at.Node = sl.leaves[0].machine.name
		from := len(indices)
		for _, leaf := range sl.leaves {
			indices = append(indices, leaf.device)
			if u := leaf.using; u != nil && u.marked != s.stamp {
				u.marked = s.stamp
				victims = append(victims, u)
			}
			if h := leaf.reserving; h != nil && h.marked != s.stamp {
				h.marked = s.stamp
				p.cancels = append(p.cancels, h)
			}
		}
		sl.at.Indices = indices[from:len(indices):len(indices)]
	}
	if len(victims) > 0 {
		p.victims = slices.Clone(victims)
	}
	clear(victims)
	s.killed = victims
	g.placement = g.describe()
	return p
}

func (g *gang) leafCount() int {
	n := 0
	for i := range g.slots {
		n += len(g.slots[i].leaves)
	}
	return n
}

// sortByDevice sorts the physical leaves by device, and keeps the virtual leaves in the same order.
func (sl *slot) sortByDevice() {
	for i := 1; i < len(sl.leaves); i++ {
		for k := i; k > 0 && sl.leaves[k].device < sl.leaves[k-1].device; k-- {
			sl.leaves[k], sl.leaves[k-1] = sl.leaves[k-1], sl.leaves[k]
			if sl.virtual != nil {
				sl.virtual[k], sl.virtual[k-1] = sl.virtual[k-1], sl.virtual[k]
			}
		}
	}
}
