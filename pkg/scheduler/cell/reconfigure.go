package cell

import (
	"fmt"
	"slices"
)

// Reconfigure returns a scheduler for a new configuration with the same gangs and bad hardware, and the gangs that lose or
// regain their guarantee. It drops reservations. They are made again when their pods are scheduled again. Because it doesn't
// change s, it also serves as a dry run.
func (s *Scheduler) Reconfigure(c Config) (*Scheduler, []Downgrade, error) {
	n, err := New(c)
	if err != nil {
		return nil, nil, err
	}
	changes, err := s.CarryOver(n)
	if err != nil {
		return nil, nil, err
	}
	return n, changes, nil
}

// CarryOver adds the gangs and the bad hardware of s to a new scheduler without gangs. It is the second part of Reconfigure.
// The first part, creating the new scheduler, takes most of the time and doesn't use s.
func (s *Scheduler) CarryOver(n *Scheduler) ([]Downgrade, error) {
	for _, name := range s.names {
		old := s.machines[name]
		for device := range old.broken {
			n.SetDevice(name, device, false)
		}
		n.SetNode(name, old.healthy)
	}
	gangs := make([]*gang, 0, len(s.gangs))
	for _, g := range s.gangs {
		if !g.preempting {
			gangs = append(gangs, g)
		}
	}
	// Gangs without a guarantee come last, because they may get cells that other gangs don't use.
	slices.SortFunc(gangs, func(a, b *gang) int {
		if x, y := a.former != nil, b.former != nil; x != y {
			if y {
				return -1
			}
			return 1
		}
		return cmpOrder(a, b)
	})
	var changes []Downgrade
	for _, g := range gangs {
		more, err := n.carryOver(g)
		if err != nil {
			return nil, fmt.Errorf("take over gang %s: %w", g.key, err)
		}
		changes = append(changes, more...)
	}
	n.order = max(n.order, s.order)
	var out []Downgrade
	told := map[gangKey]bool{}
	for _, d := range changes {
		// Only the final state counts. A later gang may have changed the guarantee again, and the pods of a gang are added one
		// by one.
		key := gangKey{d.VC, d.Gang}
		before, after := s.gangs[key], n.gangs[key]
		if before.opportunistic() != after.opportunistic() && !told[key] {
			told[key] = true
			d.Pods, d.Placement, d.Restored = after.downgrade("").Pods, after.placement, !after.opportunistic()
			out = append(out, d)
		}
	}
	return out, nil
}

// carryOver adds a gang of another scheduler at its current place. The gang keeps or regains its guarantee if possible.
func (s *Scheduler) carryOver(g *gang) ([]Downgrade, error) {
	at := *g.placement
	if g.former != nil {
		at = *g.former
	}
	at.plan, at.Order = nil, g.order
	own := slices.IndexFunc(g.slots, func(sl slot) bool { return sl.pod != "" })
	_, changes, err := s.takeOver(g.request, &at, own, true)
	if err != nil {
		return nil, err
	}
	for i := range g.slots {
		if g.slots[i].pod == "" {
			continue
		}
		more, err := s.Allocate(g.slots[i].pod, g.request, &at, i)
		if err != nil {
			return nil, err
		}
		changes = append(changes, more...)
	}
	n := s.gangs[g.key]
	if n.opportunistic() {
		n.former = g.former
		if n.former == nil && !g.opportunistic() {
			n.former = g.placement
		}
	} else if g.opportunistic() {
		changes = append(changes, n.downgrade("its virtual cells are free again"))
	}
	return changes, nil
}

func cmpOrder(a, b *gang) int {
	switch {
	case a.order < b.order:
		return -1
	case a.order > b.order:
		return 1
	case a.key.vc != b.key.vc:
		return compare(a.key.vc, b.key.vc)
	}
	return compare(a.key.name, b.key.name)
}
