package cell

import (
	"errors"
	"fmt"
	"slices"
)

// ErrConflict is the error for a pod that claims a device of another gang.
var ErrConflict = errors.New("the device belongs to another gang")

// Allocate applies a Bind with the placement and slot of its Decision, or takes over a running pod. The placement of a running
// pod comes from annotation.ReadBound, or contains only the pod's own place. Allocate returns the gangs that lost their
// guarantee to this gang. After an error, nothing has changed. The error says how the pod's claim contradicts the state.
func (s *Scheduler) Allocate(pod PodID, r *Request, at *Placement, slot int) ([]Downgrade, error) {
	if _, known := s.pods[pod]; known {
		return nil, nil
	}
	if at == nil || slot < 0 || slot >= len(at.Pods) {
		return nil, fmt.Errorf("pod %s is not in its gang's placement", pod)
	}
	if at.Pods[slot].isOpen() {
		return nil, fmt.Errorf("the placement of pod %s doesn't contain the pod itself", pod)
	}
	g, lost, err := s.gangFor(r, at, slot)
	if err != nil {
		return nil, err
	}
	if at != g.placement && s.decided(at) && !g.isAt(at) {
		return lost, fmt.Errorf("the placement of pod %s was released, and gang %s now has another one: %w", pod, g.key, ErrConflict)
	}
	i, err := g.slotFor(at, slot)
	if err != nil {
		return lost, err
	}
	if !g.preempting && !s.decided(at) {
		more, err := s.learn(g, i, at, slot)
		if err != nil {
			return lost, err
		}
		lost = append(lost, more...)
	}
	if g.preempting {
		if victims := s.victimsOf(g); len(victims) > 0 {
			return lost, fmt.Errorf("gang %s waits for %d gangs to stop: %w", g.key, len(victims), ErrConflict)
		}
		s.start(g)
	}
	g.slots[i].pod = pod
	g.running++
	s.pods[pod] = seat{g, i}
	if g.priority >= MinGuaranteed && g.opportunistic() != at.Downgraded {
		// The pod's annotation must change in this case.
		change := g.downgrade(g.reason)
		change.Pods, change.Restored = []PodID{pod}, at.Downgraded
		if change.Restored {
			change.Reason = "the gang had its guarantee back before this pod was bound"
		}
		lost = append(lost, change)
	}
	return append(lost, s.restoreGuarantees()...), nil
}

// decided reports whether a placement comes from a decision of this scheduler. Otherwise it comes from annotations.
func (s *Scheduler) decided(at *Placement) bool { return slices.Contains(s.chains, at.chain) }

// gangFor returns the gang of a pod with a placement. This is the existing gang, the gang of the decision, or a new gang with
// the place in the annotations.
func (s *Scheduler) gangFor(r *Request, at *Placement, slot int) (*gang, []Downgrade, error) {
	key := gangKey{r.VirtualCluster, r.Gang}
	g, p := s.gangs[key], at.plan
	if p == nil || p.epoch != s.epoch || p.gang.key != key || !s.decided(at) {
		p = nil
	}
	switch {
	case p != nil && p.move != nil && p.gang == g:
		s.applyMove(at)
		return g, nil, nil
	case g != nil:
		return g, nil, nil
	case p != nil && p.move == nil:
		at.plan = nil
		return p.gang, s.apply(p), nil
	}
	return s.takeOver(r, at, slot, s.decided(at))
}

// apply applies a plan and returns the gangs that lost their guarantee.
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

// displaced returns the number of leaves that opportunistic gangs lose to a new gang. It doesn't count leaves in cells that the
// gang's virtual cluster already holds, because no idle node could have prevented their loss.
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

// unassigned reports whether the placement explicitly assigns its leaves to no virtual cells. With such a placement, HiveD
// records that a gang lost its guarantee.
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

// isAt reports whether a placement equals the gang's current placement. It ignores the guarantee.
func (g *gang) isAt(at *Placement) bool {
	return at.Order == g.order && slices.EqualFunc(g.slots, at.Pods, func(sl slot, p PodPlacement) bool {
		return sl.isAt(&p)
	})
}

// slotFor returns the slot of a pod that has a place. It prefers the given slot if that slot has the pod's place. Otherwise it
// returns any slot with this place. If the gang's slot was moved, the pod's own place counts.
func (g *gang) slotFor(at *Placement, slot int) (int, error) {
	want := &at.Pods[slot]
	same := slot < len(g.slots) && g.slots[slot].pod == ""
	if same && (at == g.placement || g.slots[slot].isAt(want)) {
		return slot, nil
	}
	same = same && !g.preempting && (g.slots[slot].at.Set == want.Set || g.slots[slot].at.Set < 0 || want.Set < 0)
	if same && (at.Moves != g.moves || g.slots[slot].open()) {
		return slot, nil
	}
	for i := range g.slots {
		if sl := &g.slots[i]; sl.pod == "" && sl.isAt(want) {
			return i, nil
		}
	}
	if same {
		return slot, nil
	}
	return 0, fmt.Errorf("gang %s has no free placement on node %s with devices %v", g.key, want.Node, want.Indices)
}

// DeleteAllocated removes an allocated pod. It returns false if the pod is unknown. The cells of a gang become free when all
// its pods are removed.
func (s *Scheduler) DeleteAllocated(pod PodID) ([]Downgrade, bool) {
	at, ok := s.pods[pod]
	if !ok {
		return nil, false
	}
	delete(s.pods, pod)
	g := at.gang
	g.slots[at.slot].pod, g.from = "", nil
	if g.running--; g.running == 0 {
		s.leave(g)
	}
	return nil, true
}

// DeleteUnallocated removes a waiting pod. When the last waiting pod of a gang is removed, the gang's reservations are
// released.
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
