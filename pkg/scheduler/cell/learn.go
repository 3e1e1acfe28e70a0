package cell

import (
	"fmt"
	"slices"
)

// The annotations of a pod contain either the places of the whole gang when the pod was bound, or only the pod's own place. The
// pod's own place is certain, because the pod runs there. Other pods may have moved since. Their places are only expected until
// the scheduler reads their own annotations. Certain places have precedence over expected places.

// expect returns a slot with an expected place. Slots with certain places get their cells first.
func expect(at *PodPlacement) slot {
	return slot{at: *at, leaves: make([]*pcell, len(at.Indices)), expected: !at.isOpen()}
}

// learn updates a gang with the annotations of another pod, which gets slot i. own is the pod's index in at.
func (s *Scheduler) learn(g *gang, i int, at *Placement, own int) (lost []Downgrade, err error) {
	if sl := &g.slots[i]; sl.expected || !sl.isAt(&at.Pods[own]) {
		if lost, err = s.fill(g, i, &at.Pods[own], at.Chain); err != nil {
			return nil, err
		}
	}
	if at.Moves <= g.moves {
		return lost, nil
	}
	s.charge(g, -1)
	g.from = nil
	g.moves = at.Moves
	for k := range min(len(g.slots), len(at.Pods)) {
		sl, told := &g.slots[k], &at.Pods[k]
		if k == i || sl.pod != "" || told.isOpen() || sl.isAt(told) {
			continue
		}
		s.vacate(g, k)
		g.slots[k] = expect(told)
		s.expected = append(s.expected, g)
	}
	s.charge(g, 1)
	g.placement = g.describe()
	s.changed()
	return lost, nil
}

// fill sets the place of slot i to its pod's actual place.
func (s *Scheduler) fill(g *gang, i int, at *PodPlacement, chain string) ([]Downgrade, error) {
	if r := g.request; at.Set >= 0 && at.Set < len(g.sets) && g.sets[at.Set].CellType == "" && g.sets[at.Set].Cells != len(at.Indices) {
		return nil, fmt.Errorf("a pod of gang %s requests %d cells, but has %d on node %s", r.Gang, g.sets[at.Set].Cells, len(at.Indices), at.Node)
	}
	leaves, why, err := s.resolve(g, at, chain)
	if err != nil {
		return nil, err
	}
	s.cancelOn(leaves)
	s.charge(g, -1)
	s.clearDoomed()
	for _, p := range leaves {
		if p != nil && p.using == g {
			s.empty(g, int(p.slot)) // the place of the other slot is outdated
		}
	}
	s.vacate(g, i)
	g.from = nil
	set := g.slots[i].at.Set
	g.slots[i] = slot{at: *at, leaves: leaves}
	if at.Set < 0 {
		g.slots[i].at.Set = set
	}
	var lost []Downgrade
	if why == "" {
		why = s.rechain(g, leaves)
	}
	if g.space != nil && why == "" {
		lost, why = s.claimSlot(g, i, g.priority)
	}
	s.occupy(g, i)
	g.keepFormer(i)
	s.charge(g, 1)
	g.placement = g.describe()
	if g.space != nil && why != "" {
		s.demote(g, "")
		g.reason = why
		lost = append(lost, g.downgrade(why))
	}
	s.settleLater()
	s.changed()
	return lost, nil
}

// rechain moves a gang without leaves to the chain of the given leaves, because its previous chain was only a guess. The reason
// explains why the gang has no guarantee there.
func (s *Scheduler) rechain(g *gang, leaves []*pcell) (reason string) {
	first := slices.IndexFunc(leaves, func(p *pcell) bool { return p != nil })
	if first < 0 || leaves[first].chain == g.chain || slices.ContainsFunc(g.slots, func(sl slot) bool { return slices.ContainsFunc(sl.leaves, g.uses) }) {
		return ""
	}
	g.chain = leaves[first].chain
	if g.space == nil {
		return ""
	}
	sp, reason := s.spaceOf(g, g.describe())
	if sp != nil {
		g.space = sp
	}
	return reason
}

func (g *gang) uses(p *pcell) bool { return p != nil && p.using == g }

// empty opens a slot, so that no cells are kept for its pod.
func (s *Scheduler) empty(g *gang, i int) {
	s.vacate(g, i)
	g.slots[i] = slot{at: PodPlacement{Set: g.slots[i].at.Set}}
	g.keepFormer(i)
}

// claimExpected assigns cells to the expected slots, oldest gang first. It opens slots whose cells are used.
func (s *Scheduler) claimExpected() {
	if len(s.expected) == 0 {
		return
	}
	gangs := s.expected
	s.expected = nil
	slices.SortFunc(gangs, cmpOrder)
	for _, g := range slices.Compact(gangs) {
		if s.gangs[g.key] != g || !slices.ContainsFunc(g.slots, func(sl slot) bool { return sl.expected }) {
			continue
		}
		s.clearDoomed()
		s.charge(g, -1)
		for i := range g.slots {
			if g.slots[i].expected && !s.claimPlace(g, i) {
				s.empty(g, i)
			}
		}
		s.charge(g, 1)
		g.placement = g.describe()
		s.settleLater()
		s.changed()
	}
}

// claimPlace assigns cells to an expected slot if no other gang uses them. It reports whether it did.
func (s *Scheduler) claimPlace(g *gang, i int) bool {
	sl := &g.slots[i]
	sl.expected = false
	leaves, _, err := s.resolve(g, &sl.at, g.chain.names[g.chain.top()])
	if err != nil || slices.ContainsFunc(leaves, func(p *pcell) bool { return p != nil && (p.using != nil || p.reserving != nil) }) {
		return false
	}
	sl.leaves = leaves
	if g.space != nil {
		if _, why := s.claimSlot(g, i, MinGuaranteed); why != "" { // no gang has a lower priority than this, so no gang loses its cells
			return false
		}
	}
	s.occupy(g, i)
	return true
}
