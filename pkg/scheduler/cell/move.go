package cell

import (
	"fmt"
	"slices"
)

// The pods of a running gang keep their places. A recreated pod gets the place of its slot again, unless it can't or may not
// run there. In that case, only this slot moves.

// move is the new place of one slot of a running gang.
type move struct {
	slot int
	to   slot
}

// rejoin decides the place of a pod that joins a running gang in slot i.
func (s *Scheduler) rejoin(g *gang, i int, r *Request, suggested Nodes) Decision {
	why := g.slots[i].unfit(suggested)
	if why == "" {
		return g.bindTo(i)
	}
	if g.slots[i].open() && g.space != nil {
		if reason := s.overQuota(s.byVC[g.key.vc], g.forOne(i, r)); reason != "" {
			return Decision{Result: Wait, Reason: reason}
		}
	}
	to, reason := s.findMove(g, i, r, suggested)
	if to == nil {
		return Decision{Result: Wait, Reason: fmt.Sprintf("the pod can't have its placement in gang %s, because %s, and %s", g.key, why, reason)}
	}
	at := *g.placement
	at.Moves = g.moves + 1
	at.Pods = slices.Clone(at.Pods)
	at.Pods[i] = to.at
	at.plan = &plan{epoch: s.epoch, gang: g, move: &move{i, *to}}
	return Decision{Result: Bind, Node: to.at.Node, Indices: to.at.Indices, Chain: at.Chain, Placement: &at, Slot: i}
}

// unfit explains why a pod can't run in the place of a slot, or returns "".
func (sl *slot) unfit(suggested Nodes) string {
	switch {
	case sl.open():
		return "no cells are reserved for it"
	case suggested != nil && !suggested.Has(sl.at.Node):
		return fmt.Sprintf("node %s isn't one that it may run on", sl.at.Node)
	}
	for k, p := range sl.leaves {
		switch {
		case p == nil:
			return fmt.Sprintf("device %d of node %s is no longer configured", sl.at.Indices[k], sl.at.Node)
		case p.bad:
			return fmt.Sprintf("device %d of node %s can't be used now", sl.at.Indices[k], sl.at.Node)
		}
	}
	return ""
}

func (s *Scheduler) applyMove(at *Placement) {
	g, m := at.plan.gang, at.plan.move
	at.plan = nil
	s.charge(g, -1)
	s.clearDoomed() // the doomed cells were chosen for the slot's former place
	s.vacate(g, m.slot)
	pod := g.slots[m.slot].pod
	g.slots[m.slot] = m.to
	g.slots[m.slot].pod = pod
	s.occupy(g, m.slot)
	g.moves, g.placement = at.Moves, at
	g.keepFormer(m.slot)
	s.charge(g, 1)
	s.settleLater()
	s.changed()
}

// keepFormer sets the place of slot i in the placement from before the gang's downgrade.
func (g *gang) keepFormer(i int) {
	if g.former == nil {
		return
	}
	former := *g.former
	former.Moves = g.moves
	former.Pods = slices.Clone(former.Pods)
	former.Pods[i].Node, former.Pods[i].Indices = g.slots[i].at.Node, g.slots[i].at.Indices
	g.former = &former
}

func (s *Scheduler) vacate(g *gang, i int) {
	sl := &g.slots[i]
	for k, p := range sl.leaves {
		if p != nil && p.using == g {
			p.using = nil
			p.chain.touch(p.node)
		}
		if v := sl.leaf(k); v != nil && v.owner == g {
			s.disown(v, nil)
		}
	}
}

func (s *Scheduler) occupy(g *gang, i int) {
	sl := &g.slots[i]
	for k, p := range sl.leaves {
		if p != nil {
			s.own(g, i, p, sl.leaf(k))
		}
	}
}

// lift releases the cells of a slot during a search. The returned function undoes the change.
func (s *Scheduler) lift(g *gang, i int) (undo func()) {
	epoch := s.epoch
	// While the slot's cells are free, other virtual cells may be bound to bad cells.
	again := func() {
		s.settleLater()
		s.settle()
	}
	s.clearDoomed()
	s.vacate(g, i)
	again()
	return func() {
		s.clearDoomed()
		s.occupy(g, i)
		again()
		s.epoch = epoch
	}
}

// findMove searches for a new place for a slot, as near as possible to the gang's other pods. The place consists of idle cells
// in the gang's chain. If the gang has its guarantee, the cells are in its virtual cluster. Without a place, the result
// contains a reason.
//
// findMove doesn't evict other gangs, because only gangs without running pods can have reservations.
func (s *Scheduler) findMove(g *gang, i int, r *Request, suggested Nodes) (*slot, string) {
	if r.PinnedCell == "" && !g.chain.cpu && !g.chain.offers(r.LeafType) {
		return nil, fmt.Sprintf("its gang is now in the chain %s, which has no %ss", g.chain.names[g.chain.top()], r.LeafType)
	}
	one := g.forOne(i, r)
	sh, err := g.chain.shapeOf(one)
	if err != nil {
		return nil, err.Error()
	}
	defer s.lift(g, i)()
	m := &mover{s: s, gang: g, slot: i, request: one, offered: suggested, limit: g.limit(i, r)}
	m.target = target{space: g.space, chain: g.chain, shape: sh, policy: s.byVC[g.key.vc].policy}
	to := m.find()
	if to == nil {
		return nil, m.reason()
	}
	return to, ""
}

func (g *gang) forOne(i int, r *Request) *Request {
	set := g.slots[i].at.Set
	if set < 0 || set >= len(g.sets) {
		set = r.Set
	}
	one := *r
	one.Set = 0
	one.Root = Group{Pods: []PodSet{g.sets[set]}}
	one.Root.Pods[0].Count = 1
	for _, w := range r.Root.around(set) {
		if l := g.chain.level(w.group.Within); l >= 0 && l < g.chain.node {
			one.Root.Within = w.group.Within // the innermost group comes last
		}
	}
	return &one
}

// around is a group that must be in one cell. Its sets have the indices from lo to hi.
type around struct {
	group  *Group
	lo, hi int
}

// around returns the groups around a set that must be in one cell, outermost group first.
func (g *Group) around(set int) []around {
	var out []around
	next := 0
	var walk func(g *Group)
	walk = func(g *Group) {
		at, lo := len(out), next
		out = append(out, around{g, lo, 0})
		next += len(g.Pods)
		for i := range g.Children {
			walk(&g.Children[i])
		}
		if out[at].hi = next; g.Within == "" || set < lo || set >= next {
			out = slices.Delete(out, at, at+1)
		}
	}
	walk(g)
	return out
}

// limit returns the cell that must contain a slot because of the slot's groups, or nil if the slot may be anywhere.
func (g *gang) limit(i int, r *Request) *pcell {
	var out *pcell
	for _, a := range r.Root.around(g.slots[i].at.Set) {
		level := g.chain.level(a.group.Within)
		if level < 0 {
			continue
		}
		if c := g.common(i, a.lo, a.hi, level); c != nil && (out == nil || c.level < out.level) {
			out = c
		}
	}
	return out
}

// common returns the cell of a level that contains all slots of some sets, except the slot but. It returns nil if no such cell
// or no such slot exists.
func (g *gang) common(but, lo, hi, level int) *pcell {
	var out *pcell
	for i := range g.slots {
		if set := g.slots[i].at.Set; i == but || set < lo || set >= hi {
			continue
		}
		for _, p := range g.slots[i].leaves {
			if p == nil || p.chain != g.chain {
				continue
			}
			switch c := p.upTo(level); {
			case out == nil:
				out = c
			case out != c:
				return nil
			}
		}
	}
	return out
}
