package cell

import (
	"fmt"
	"slices"
)

// claimVirtual finds the virtual cells of a running gang. If these cells don't exist or aren't free, the gang continues without
// its guarantee. The reason explains why.
func (s *Scheduler) claimVirtual(g *gang, at *Placement) (lost []Downgrade, reason string) {
	s.clearDoomed()
	sp, reason := s.spaceOf(g, at)
	if sp == nil {
		return nil, reason
	}
	g.space = sp
	for i := range g.slots {
		more, why := s.claimSlot(g, i, g.priority)
		lost = append(lost, more...)
		if why != "" {
			s.unclaim(g)
			return lost, why
		}
	}
	return lost, ""
}

// claimSlot finds the virtual cells of one slot. Gangs with a priority below rank may lose their cells to this gang. If a cell
// is missing, claimSlot keeps the other cells, and returns the reason.
func (s *Scheduler) claimSlot(g *gang, i, rank int) (lost []Downgrade, reason string) {
	sl := &g.slots[i]
	sl.virtual = make([]*vcell, len(sl.leaves))
	for k, p := range sl.leaves {
		if p == nil {
			continue
		}
		more, v, why := s.claimLeaf(g, rank, p, valueAt(sl.at.Virtual, k), valueAt(sl.at.Preassigned, k))
		lost = append(lost, more...)
		if v == nil {
			return lost, why
		}
		sl.virtual[k] = v
		v.owner = g
		g.space.used[g.priority]++
		g.space.touch(v)
		s.bindPath(v, p)
	}
	return lost, ""
}

func valueAt(list []string, k int) string {
	if k < len(list) {
		return list[k]
	}
	return ""
}

// unclaim releases the virtual cells that claimVirtual took.
func (s *Scheduler) unclaim(g *gang) {
	for i := range g.slots {
		for _, v := range g.slots[i].virtual {
			if v != nil {
				s.disown(v, nil)
			}
		}
		g.slots[i].virtual = nil
	}
	g.space = nil
}

// spaceOf returns the space for the gang's cells, or nil and a reason.
func (s *Scheduler) spaceOf(g *gang, at *Placement) (*space, string) {
	v := s.byVC[g.key.vc]
	if v == nil {
		return nil, fmt.Sprintf("there is no virtual cluster %s", g.key.vc)
	}
	if id := g.request.PinnedCell; id != "" {
		if sp := v.pinned[id]; sp != nil && sp.chain == g.chain {
			return sp, ""
		}
		return nil, fmt.Sprintf("virtual cluster %s has no pinned cell %s", v.name, id)
	}
	named := func(p PodPlacement) bool {
		return slices.ContainsFunc(p.Preassigned, func(t string) bool { return t != "" })
	}
	if !slices.ContainsFunc(at.Pods, named) {
		return nil, "its placement names no cell of the virtual cluster"
	}
	for _, sp := range v.spaces {
		if sp.chain == g.chain {
			return sp, ""
		}
	}
	return nil, fmt.Sprintf("virtual cluster %s has no cells of chain %s", v.name, g.chain.names[g.chain.top()])
}

// claimLeaf returns the virtual leaf for a physical leaf. It prefers the leaf in the placement if that leaf is suitable.
// Otherwise it returns a leaf below a preassigned cell of the given type.
func (s *Scheduler) claimLeaf(g *gang, rank int, p *pcell, address, preassigned string) ([]Downgrade, *vcell, string) {
	if v := g.space.byAddress(address); v != nil && s.matches(g, rank, v, p) {
		return s.makeRoom(g, v), v, ""
	}
	level := g.chain.level(preassigned)
	if g.space.pinned != "" {
		level = g.space.roots[0].level
	}
	if p.chain != g.chain {
		return nil, nil, fmt.Sprintf("its cells are in the chains %s and %s now, and a gang is guaranteed cells of one", g.chain.names[g.chain.top()], p.chain.names[p.chain.top()])
	}
	if level < 0 {
		return nil, nil, fmt.Sprintf("its node no longer has the cell type %s", preassigned)
	}
	top := p.upTo(level)
	var lost []Downgrade
	root := top.bound
	if root == nil || root.parent != nil {
		var why string
		if lost, root, why = s.freeRoot(g, rank, top); root == nil {
			return lost, nil, why
		}
	}
	if root.space != g.space {
		return lost, nil, fmt.Sprintf("its cell %s now belongs to virtual cluster %s", top.address, root.space.vc.name)
	}
	v := root
	for v.level > 0 {
		next := p.upTo(v.level - 1)
		if v = v.childFor(next); v == nil {
			return lost, nil, fmt.Sprintf("no virtual cell is left for %s", next.address)
		}
	}
	if o := v.owner; o != nil {
		if o.priority >= rank || o == g {
			return lost, nil, fmt.Sprintf("its virtual cell now belongs to %s", o.key)
		}
		lost = append(lost, s.makeRoom(g, v)...)
	}
	return lost, v, ""
}

// childFor returns the child of v that is bound to p. If p is unbound, it returns an unbound child.
func (v *vcell) childFor(p *pcell) *vcell {
	for _, k := range v.children {
		if k.bound == p {
			return k
		}
	}
	if p.bound != nil {
		return nil
	}
	for _, k := range v.children {
		if k.bound == nil {
			return k
		}
	}
	return nil
}

// matches reports whether v is or can be bound to p. If v has an owner, the owner must be able to lose v.
func (s *Scheduler) matches(g *gang, rank int, v *vcell, p *pcell) bool {
	if v.space.chain != p.chain || v.owner != nil && (v.owner == g || v.owner.priority >= rank) {
		return false
	}
	for ; v != nil; v, p = v.parent, p.parent {
		if p == nil {
			return false
		}
		if v.bound == p {
			return true
		}
		if v.bound != nil || p.bound != nil {
			return false // an existing binding contradicts it, and bound cells must have the same structure
		}
		if v.parent == nil {
			return p.isFree() && s.safeToTake(p)
		}
	}
	return false
}

func (s *Scheduler) safeToTake(p *pcell) bool {
	return p.chain.owed[p.level] > 0 && p.chain.feasible(p.level, p.freeTop().level, nil)
}

// makeRoom frees a virtual leaf. It downgrades the owner of the leaf, or cancels the owner's reservation.
func (s *Scheduler) makeRoom(g *gang, v *vcell) []Downgrade {
	o := v.owner
	if o == nil {
		return nil
	}
	if o.preempting {
		s.cancel(o)
		return nil
	}
	s.demote(o, g.key.String())
	return []Downgrade{o.downgrade(o.reason)}
}

// freeRoot returns a preassigned cell that can be bound to p. It prefers an unbound cell. Otherwise it takes the cell whose
// gangs have the lowest priority, if this priority is below rank. These gangs lose their guarantee.
func (s *Scheduler) freeRoot(g *gang, rank int, p *pcell) ([]Downgrade, *vcell, string) {
	if !p.isFree() {
		return nil, nil, fmt.Sprintf("its cell %s is used by another virtual cell", p.address)
	}
	var lost []Downgrade
	root := g.space.unboundRoot(p.level)
	if root == nil {
		if root = g.space.weakestRoot(p.level, rank); root == nil {
			return nil, nil, fmt.Sprintf("virtual cluster %s has no free cell of type %s", g.key.vc, g.chain.names[p.level])
		}
		for i := root.lo; i < root.hi; i++ {
			lost = append(lost, s.makeRoom(g, g.space.leaves[i])...)
		}
	}
	if root.bound != nil || !p.isFree() || !s.safeToTake(p) {
		return lost, nil, fmt.Sprintf("cell %s can't be assigned to virtual cluster %s, because others own it", p.address, g.key.vc)
	}
	return lost, root, ""
}

func (sp *space) unboundRoot(level int) *vcell {
	for _, r := range sp.roots {
		if r.level == level && r.bound == nil {
			return r
		}
	}
	return nil
}

func (sp *space) weakestRoot(level, below int) *vcell {
	var best *vcell
	least := below
	for _, r := range sp.roots {
		if r.level != level || r.bound == nil {
			continue
		}
		most := -1
		for i := r.lo; i < r.hi; i++ {
			if o := sp.leaves[i].owner; o != nil {
				most = max(most, o.priority)
			}
		}
		if most >= 0 && most < least {
			best, least = r, most
		}
	}
	return best
}

func (sp *space) byAddress(address string) *vcell {
	if address == "" {
		return nil
	}
	if sp.addresses == nil {
		sp.addresses = make(map[string]*vcell, len(sp.leaves))
		for _, v := range sp.leaves {
			sp.addresses[v.address] = v
		}
	}
	return sp.addresses[address]
}
