package cell

import (
	"errors"
	"fmt"
	"slices"
)

// ErrConflict says that a pod claims a device that another gang holds.
var ErrConflict = errors.New("the device belongs to another gang")

// Allocate accepts a Bind (the placement and slot of its Decision), or takes over a pod that runs
// already (those that annotation.ReadBound returns). It reports gangs that lost their guarantee by
// it. An error means that the pod's claim contradicts the state and that nothing was changed.
func (s *Scheduler) Allocate(pod PodID, r *Request, at *Placement, slot int) ([]Downgrade, error) {
	if _, known := s.pods[pod]; known {
		return nil, nil
	}
	if at == nil || slot < 0 || slot >= len(at.Pods) {
		return nil, fmt.Errorf("pod %s has no place in its gang's placement", pod)
	}
	var lost []Downgrade
	g := s.gangs[gangKey{r.VirtualCluster, r.Gang}]
	if g == nil {
		var err error
		if p := at.plan; p != nil && p.epoch == s.epoch && slices.Contains(s.chains, at.chain) && p.gang.key == (gangKey{r.VirtualCluster, r.Gang}) {
			lost = s.apply(p)
			g = p.gang
			at.plan = nil
		} else if g, lost, err = s.takeOver(r, at); err != nil {
			return nil, err
		}
	}
	if at != g.placement && slices.Contains(s.chains, at.chain) && !g.isAt(at) {
		return lost, fmt.Errorf("the place of pod %s was given up, and gang %s has another one now: %w", pod, g.key, ErrConflict)
	}
	i, err := g.slotFor(at, slot)
	if err != nil {
		return lost, err
	}
	if g.preempting {
		if victims := s.victimsOf(g); len(victims) > 0 {
			return lost, fmt.Errorf("gang %s waits for %d gangs to go: %w", g.key, len(victims), ErrConflict)
		}
		s.start(g)
	}
	g.slots[i].pod = pod
	g.running++
	s.pods[pod] = seat{g, i}
	if g.priority >= MinGuaranteed && g.opportunistic() != at.Downgraded {
		// The pod's annotation, as it was or will be written, says otherwise.
		change := g.downgrade(g.reason)
		change.Pods, change.Restored = []PodID{pod}, at.Downgraded
		if change.Restored {
			change.Reason = "the gang had its guarantee back before this pod was bound"
		}
		lost = append(lost, change)
	}
	return append(lost, s.restoreGuarantees()...), nil
}

// apply puts a plan into force.
func (s *Scheduler) apply(p *plan) []Downgrade {
	var lost []Downgrade
	for _, d := range p.demoted {
		s.demote(d, p.gang.key.String())
		lost = append(lost, d.downgrade(d.reason))
	}
	for _, c := range p.cancels {
		s.cancel(c)
	}
	if p.gang.space != nil {
		p.gang.chain.preempted(p.gang.displaced())
	}
	s.order = max(s.order, p.gang.order)
	if p.gang.preempting {
		p.gang.demoted = p.demoted
	}
	s.enter(p.gang)
	return lost
}

// displaced counts the leaves that opportunistic gangs lose to it before it has its place. Those in cells that its virtual cluster
// holds already don't count: no idle node could have saved them.
func (g *gang) displaced() int {
	n := 0
	for i := range g.slots {
		for k, p := range g.slots[i].leaves {
			if v := g.slots[i].leaf(k); p.using != nil && p.using.opportunistic() && v != nil && v.root.bound == nil {
				n++
			}
		}
	}
	return n
}

// downgrade reports that a gang has lost its guarantee.
func (g *gang) downgrade(reason string) Downgrade {
	d := Downgrade{VC: g.key.vc, Gang: g.key.name, Placement: g.placement, Reason: reason}
	for i := range g.slots {
		if g.slots[i].pod != "" {
			d.Pods = append(d.Pods, g.slots[i].pod)
		}
	}
	return d
}

// unassigned says that the leaves are expressly in no cell of a virtual cluster: HiveD's way to write that
// a gang lost its guarantee.
func (p *Placement) unassigned() bool {
	named := false
	for i := range p.Pods {
		for _, t := range p.Pods[i].Preassigned {
			if t != "" {
				return false
			}
			named = true
		}
	}
	return named
}

// isAt says that a placement is the gang's own, with or without its guarantee.
func (g *gang) isAt(at *Placement) bool {
	return at.Order == g.order && slices.EqualFunc(g.slots, at.Pods, func(sl slot, p PodPlacement) bool {
		return sl.at.Node == p.Node && slices.Equal(sl.at.Indices, p.Indices)
	})
}

// slotFor finds the slot of a pod that comes with a place.
func (g *gang) slotFor(at *Placement, slot int) (int, error) {
	if at == g.placement && g.slots[slot].pod == "" {
		return slot, nil
	}
	want := &at.Pods[slot]
	for i := range g.slots {
		sl := &g.slots[i]
		if sl.pod == "" && sl.at.Node == want.Node && slices.Equal(sl.at.Indices, want.Indices) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("gang %s has no free place on node %s with devices %v", g.key, want.Node, want.Indices)
}

// maxOrder is more than a scheduler comes to by itself. What stands in an annotation may be anything, and those that
// come next must have higher ones.
const maxOrder = 1 << 31

// takeOver rebuilds a gang from its written placement, after a restart or a change of the configuration.
func (s *Scheduler) takeOver(r *Request, at *Placement) (*gang, []Downgrade, error) {
	if s.byVC[r.VirtualCluster] == nil && len(s.vcs) == 0 {
		return nil, nil, fmt.Errorf("there is no virtual cluster %s", r.VirtualCluster)
	}
	g := &gang{key: gangKey{r.VirtualCluster, r.Gang}, request: r, sets: r.Sets(), priority: r.Priority, order: at.Order}
	if g.order == 0 || g.order > maxOrder {
		g.order = s.order + 1
	}
	g.slots = make([]slot, len(at.Pods))
	cpu, known := s.WantsCPU(r), s.knowsKind(r)
	guaranteed := r.Priority >= MinGuaranteed && !at.Downgraded && !at.unassigned()
	for i := range at.Pods {
		sl := &g.slots[i]
		sl.at = at.Pods[i]
		sl.leaves = make([]*pcell, len(sl.at.Indices))
		for k, device := range sl.at.Indices {
			p := s.findLeaf(at.Chain, sl.at.Node, device)
			if p == nil {
				continue
			}
			if known && p.chain.cpu != cpu {
				guaranteed, g.reason = false, otherKind(sl.at.Node, p.chain.cpu)
				continue
			}
			if p.using != nil {
				return nil, nil, fmt.Errorf("device %d of node %s is held by %s, and %s claims it: %w", device, sl.at.Node, p.using.key, g.key, ErrConflict)
			}
			sl.leaves[k] = p
			if g.chain == nil {
				g.chain = p.chain
			}
		}
	}
	if g.chain == nil {
		g.chain = s.chainOf(cpu)
	}
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
	s.settleLater()
	return g, lost, nil
}

// otherKind says why a gang isn't counted on a machine that was given GPUs, or lost them: the numbers of its
// cells mean other things now.
func otherKind(node string, cpu bool) string {
	if cpu {
		return fmt.Sprintf("node %s has CPU cells instead of GPUs now", node)
	}
	return fmt.Sprintf("node %s has GPUs instead of CPU cells now", node)
}

// chainOf is the first chain of CPU cells, or of GPUs; without any, the first.
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

// evictReservations cancels reservations of cells on which a gang turns out to run.
func (s *Scheduler) evictReservations(g *gang) {
	for i := range g.slots {
		for _, p := range g.slots[i].leaves {
			if p != nil && p.reserving != nil {
				s.cancel(p.reserving)
			}
		}
	}
}

// findLeaf looks a device up, in its chain first.
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

// DeleteAllocated forgets a pod that was allocated; false if it is not known. The cells of a gang are
// free once all its pods are gone.
func (s *Scheduler) DeleteAllocated(pod PodID) ([]Downgrade, bool) {
	at, ok := s.pods[pod]
	if !ok {
		return nil, false
	}
	delete(s.pods, pod)
	g := at.gang
	g.slots[at.slot].pod = ""
	if g.running--; g.running == 0 {
		s.leave(g)
	}
	return nil, true
}

// DeleteUnallocated forgets a pod that waits; the last one of a gang that holds reservations gives them back.
func (s *Scheduler) DeleteUnallocated(pod PodID, r *Request) []Downgrade {
	g := s.gangs[gangKey{r.VirtualCluster, r.Gang}]
	if g == nil || !g.preempting {
		return nil
	}
	i := slices.Index(g.waiting, pod)
	if i < 0 {
		return nil
	}
	if g.waiting = slices.Delete(g.waiting, i, i+1); len(g.waiting) == 0 {
		s.cancel(g)
		return s.restoreGuarantees()
	}
	return nil
}
