package cell

import (
	"errors"
	"fmt"
)

// maxOrder is larger than any order that a scheduler reaches. An annotation may contain any number, but later gangs must get
// higher numbers.
const maxOrder = 1 << 31

// takeOver rebuilds a gang from its written placement, after a restart or a change of the configuration. all means that the
// places of all pods are certain. Otherwise only the pod's own place is certain, because other pods may have moved.
func (s *Scheduler) takeOver(r *Request, at *Placement, own int, all bool) (*gang, []Downgrade, error) {
	if len(s.chains) == 0 {
		return nil, nil, errors.New("the cluster has no cells")
	}
	if s.byVC[r.VirtualCluster] == nil && len(s.vcs) == 0 {
		return nil, nil, fmt.Errorf("there is no virtual cluster %s", r.VirtualCluster)
	}
	g := &gang{key: gangKey{r.VirtualCluster, r.Gang}, request: r, sets: r.Sets(), priority: r.Priority, order: at.Order, moves: at.Moves}
	if g.order == 0 || g.order > maxOrder {
		g.order = s.order + 1
	}
	g.slots = make([]slot, len(at.Pods))
	guaranteed := r.Priority >= MinGuaranteed && !at.Downgraded && !at.unassigned()
	for i := range at.Pods {
		if g.slots[i] = expect(&at.Pods[i]); i != own && !all {
			continue
		}
		leaves, other, err := s.resolve(g, &at.Pods[i], at.Chain)
		if err != nil {
			return nil, nil, err
		}
		if other != "" {
			guaranteed, g.reason = false, other
		}
		g.slots[i].leaves, g.slots[i].expected = leaves, false
	}
	g.chain = s.chainNow(r, at, g.slots[own].leaves)
	if s.repeats(g) {
		return nil, nil, fmt.Errorf("gang %s claims a device twice: %w", g.key, ErrConflict)
	}
	s.evictReservations(g)
	var lost []Downgrade
	s.order = max(s.order, g.order)
	if guaranteed {
		var more []Downgrade
		more, g.reason = s.claimVirtual(g, at)
		lost = append(lost, more...)
	}
	s.enter(g)
	g.placement = g.describe()
	if !guaranteed {
		g.placement.Downgraded = r.Priority >= MinGuaranteed
	}
	s.expected = append(s.expected, g)
	s.settleLater()
	return g, lost, nil
}

// chainNow returns the current chain of a gang. It is the chain of the pod's own leaves. If these leaves are unknown, it is the
// chain of the other pods' leaves.
func (s *Scheduler) chainNow(r *Request, at *Placement, own []*pcell) *chain {
	for _, p := range own {
		if p != nil {
			return p.chain
		}
	}
	cpu, known := s.WantsCPU(r), s.knowsKind(r)
	for i := range at.Pods {
		for _, device := range at.Pods[i].Indices {
			if p := s.findLeaf(at.Chain, at.Pods[i].Node, device); p != nil && (!known || p.chain.cpu == cpu) {
				return p.chain
			}
		}
	}
	for _, ch := range s.chains {
		if ch.cpu == cpu && ch.names[ch.top()] == at.Chain {
			return ch
		}
	}
	return s.chainOf(cpu)
}

// resolve returns the leaves of a pod's place. It returns an error if another pod uses a leaf. A leaf is nil if the
// configuration doesn't contain it, or if it doesn't count as the gang's leaf. In the latter case, other explains why.
func (s *Scheduler) resolve(g *gang, at *PodPlacement, chain string) (leaves []*pcell, other string, err error) {
	cpu, known := s.WantsCPU(g.request), s.knowsKind(g.request)
	leaves = make([]*pcell, len(at.Indices))
	for k, device := range at.Indices {
		p := s.findLeaf(chain, at.Node, device)
		if p == nil {
			continue
		}
		if known && p.chain.cpu != cpu {
			other = otherKind(at.Node, p.chain.cpu)
			continue
		}
		if u := p.using; u != nil && (u != g || g.slots[p.slot].pod != "") {
			return nil, "", fmt.Errorf("device %d of node %s is held by %s, but %s claims it: %w", device, at.Node, u.key, g.key, ErrConflict)
		}
		leaves[k] = p
	}
	return leaves, other, nil
}

// otherKind explains why a gang doesn't count on a machine that now has different kinds of leaves. The numbers of the machine's
// cells now identify different devices.
func otherKind(node string, cpu bool) string {
	if cpu {
		return fmt.Sprintf("node %s now has CPU cells instead of GPUs", node)
	}
	return fmt.Sprintf("node %s now has GPUs instead of CPU cells", node)
}

// chainOf returns the first chain of CPU cells or of GPUs. If no such chain exists, it returns the first chain.
func (s *Scheduler) chainOf(cpu bool) *chain {
	for _, ch := range s.chains {
		if ch.cpu == cpu {
			return ch
		}
	}
	return s.chains[0]
}

func (s *Scheduler) repeats(g *gang) bool {
	seen := map[*pcell]bool{}
	for i := range g.slots {
		for _, p := range g.slots[i].leaves {
			if p != nil && seen[p] {
				return true
			}
			seen[p] = true
		}
	}
	return false
}

// evictReservations cancels reservations on cells of a running gang.
func (s *Scheduler) evictReservations(g *gang) {
	for i := range g.slots {
		s.cancelOn(g.slots[i].leaves)
	}
}

func (s *Scheduler) cancelOn(leaves []*pcell) {
	for _, p := range leaves {
		if p != nil && p.reserving != nil {
			s.cancel(p.reserving)
		}
	}
}

// findLeaf returns the leaf of a device, or nil. It prefers a leaf in the given chain.
func (s *Scheduler) findLeaf(chain, node string, device int32) *pcell {
	m := s.machines[node]
	if m == nil {
		return nil
	}
	var other *pcell
	for _, c := range m.cells {
		for i := c.lo; i < c.hi; i++ {
			if p := c.chain.cells[0][i]; p.device == device {
				if c.chain.names[c.chain.top()] == chain {
					return p
				}
				other = p
			}
		}
	}
	return other
}
