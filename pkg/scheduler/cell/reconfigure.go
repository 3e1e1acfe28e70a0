package cell

import (
	"fmt"
	"slices"
)

// Reconfigure makes a scheduler for another configuration with the same gangs and bad hardware, and
// reports what they lose. Reservations are dropped; they are made anew when their pods are scheduled again. s itself
// is not changed, so that this is also the dry run.
func (s *Scheduler) Reconfigure(c Config) (*Scheduler, []Downgrade, error) {
	n, err := New(c)
	if err != nil {
		return nil, nil, err
	}
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
	slices.SortFunc(gangs, func(a, b *gang) int { return cmpOrder(a, b) })
	var lost []Downgrade
	for _, g := range gangs {
		for i := range g.slots {
			if g.slots[i].pod == "" {
				continue
			}
			more, err := n.Allocate(g.slots[i].pod, g.request, g.placement, i)
			if err != nil {
				return nil, nil, fmt.Errorf("take over gang %s: %w", g.key, err)
			}
			lost = append(lost, more...)
		}
	}
	n.order = max(n.order, s.order)
	for i := range lost {
		// The pods of a gang come one by one; the report is made with the first.
		if g := n.gangs[gangKey{lost[i].VC, lost[i].Gang}]; g != nil {
			lost[i].Pods = g.downgrade("").Pods
		}
	}
	return n, lost, nil
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
