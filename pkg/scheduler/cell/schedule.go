package cell

import (
	"fmt"
	"slices"
)

// Schedule decides about one pod. suggested are the nodes that Kubernetes offers; nil is all.
// In the phase Filtering nothing changes but a reservation that has become useless; Allocate puts a
// Bind into force. In the phase Preempting
// the cells of a Preempt are reserved for the gang.
func (s *Scheduler) Schedule(pod PodID, r *Request, phase Phase, suggested Nodes) Decision {
	s.settle()
	if at, ok := s.pods[pod]; ok {
		return at.gang.bindTo(at.slot)
	}
	if err := s.malformed(r); err != nil {
		return Decision{Result: Refuse, Reason: err.Error()}
	}
	if !r.OnlySuggested {
		suggested = nil
	}
	g := s.gangs[gangKey{r.VirtualCluster, r.Gang}]
	if g == nil {
		return s.fresh(pod, r, phase, suggested)
	}
	if what := g.differs(r); what != "" {
		return Decision{Result: Wait, Reason: g.otherText(what)}
	}
	i := g.freeSlot(r, suggested)
	if i < 0 {
		return Decision{Result: Refuse, Reason: fmt.Sprintf("gang %s has no place left for a pod of this size: all %d of its pods are there", r.Gang, len(g.slots))}
	}
	if !g.preempting {
		if g.taken > 0 {
			return Decision{Result: Wait, Reason: fmt.Sprintf("gang %s is being preempted", r.Gang)}
		}
		return s.rejoin(g, i, r, suggested)
	}
	if !s.usable(g, suggested) && (phase == Preempting || len(s.victimsOf(g)) == 0) {
		s.cancel(g)
		back := s.restoreGuarantees()
		s.settle()
		d := s.fresh(pod, r, phase, suggested)
		d.Changes = append(back, d.Changes...)
		return d
	}
	if phase == Preempting && !slices.Contains(g.waiting, pod) {
		g.waiting = append(g.waiting, pod)
	}
	if victims := s.victimsOf(g); len(victims) > 0 {
		return Decision{Result: Preempt, Placement: g.placement, Victims: podsOf(victims), Reason: preemptReason(victims)}
	}
	return g.bindTo(i)
}

// bindTo is the decision for a slot of a gang that has its place.
func (g *gang) bindTo(i int) Decision {
	sl := &g.slots[i]
	return Decision{Result: Bind, Node: sl.at.Node, Indices: sl.at.Indices, Chain: g.placement.Chain, Placement: g.placement, Slot: i}
}

// differs says what makes a pod of the request one of another gang with the same name, "" if nothing does. The gang's
// place was chosen, and its quota counted, for what it asked for itself.
func (g *gang) differs(r *Request) string {
	switch o := g.request; {
	case !slices.Equal(r.Sets(), g.sets):
		return "its pods are others in number or size"
	case r.Priority != o.Priority:
		return fmt.Sprintf("its priority is %d, not %d", o.Priority, r.Priority)
	case r.User != o.User:
		return fmt.Sprintf("it is of user %q, not %q", o.User, r.User)
	case r.UserGroup != o.UserGroup:
		return fmt.Sprintf("it is of group %q, not %q", o.UserGroup, r.UserGroup)
	case r.PinnedCell != o.PinnedCell || r.LeafType != o.LeafType && !g.chain.cpu: // roles may name several types of CPU cells
		return "it asks for other cells"
	}
	return ""
}

// otherText says that a pod is of another gang with the same name.
func (g *gang) otherText(what string) string {
	return fmt.Sprintf("another gang has the name %s: %s; this one waits until that has ended", g.key, what)
}

// freeSlot returns the first slot without a pod that a pod of the request fits, or -1: one where it can run if there is
// one, else an open one.
func (g *gang) freeSlot(r *Request, suggested Nodes) int {
	want := g.sets[r.Set].Cells * g.unitLeaves(g.sets[r.Set])
	out := -1
	for i := range g.slots {
		sl := &g.slots[i]
		if sl.pod != "" || sl.at.Set != r.Set && (sl.at.Set >= 0 || !sl.open() && len(sl.at.Indices) != want) {
			continue
		}
		if g.preempting || sl.unfit(suggested) == "" {
			return i
		}
		if out < 0 || sl.open() && !g.slots[out].open() {
			out = i
		}
	}
	return out
}

func (g *gang) unitLeaves(set PodSet) int {
	if set.CellType == "" {
		return 1
	}
	if l := g.chain.level(set.CellType); l >= 0 {
		return g.chain.leaves[l]
	}
	return 1
}

// fresh finds a place for a gang that has none.
func (s *Scheduler) fresh(pod PodID, r *Request, phase Phase, suggested Nodes) Decision {
	p, d := s.find(r, suggested)
	if p == nil {
		return d
	}
	if len(p.victims) == 0 {
		p.gang.placement.plan = p
		return p.gang.bindTo(p.gang.first(r))
	}
	d = Decision{Result: Preempt, Placement: p.gang.placement, Victims: podsOf(p.victims), Reason: preemptReason(p.victims)}
	if phase == Preempting {
		p.gang.preempting = true
		p.gang.waiting = []PodID{pod}
		d.Changes = append(s.apply(p), s.restoreGuarantees()...)
	}
	return d
}

func (g *gang) first(r *Request) int {
	for i := range g.slots {
		if g.slots[i].at.Set == r.Set {
			return i
		}
	}
	return 0
}

// usable says that the reserved place of a gang is healthy and offered.
func (s *Scheduler) usable(g *gang, suggested Nodes) bool {
	for i := range g.slots {
		for _, p := range g.slots[i].leaves {
			if p == nil || p.bad || suggested != nil && !suggested.Has(p.machine.name) {
				return false
			}
		}
	}
	return true
}

// victimsOf returns the gangs that still run on reserved cells.
func (s *Scheduler) victimsOf(g *gang) []*gang {
	s.stamp++
	var out []*gang
	for i := range g.slots {
		for _, p := range g.slots[i].leaves {
			if p == nil {
				continue
			}
			if u := p.using; u != nil && u.marked != s.stamp && u != g {
				u.marked = s.stamp
				out = append(out, u)
			}
		}
	}
	return out
}

// podsOf lists the pods of gangs in order of node and pod.
func podsOf(gangs []*gang) []Victim {
	var out []Victim
	for _, g := range gangs {
		for i := range g.slots {
			if sl := &g.slots[i]; sl.pod != "" {
				out = append(out, Victim{Pod: sl.pod, Node: sl.at.Node, VC: g.key.vc, Gang: g.key.name})
			}
		}
	}
	slices.SortFunc(out, func(a, b Victim) int {
		if a.Node != b.Node {
			return compare(a.Node, b.Node)
		}
		return compare(string(a.Pod), string(b.Pod))
	})
	return out
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func preemptReason(victims []*gang) string {
	if len(victims) == 1 {
		return fmt.Sprintf("gang %s has to go first", victims[0].key)
	}
	return fmt.Sprintf("%d gangs have to go first, among them %s", len(victims), victims[0].key)
}
