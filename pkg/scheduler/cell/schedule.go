package cell

import (
	"cmp"
	"fmt"
	"slices"
)

// Schedule makes a decision for one pod. suggested are the nodes that Kubernetes offers. nil means all nodes. In the phase
// Filtering, Schedule changes nothing, except that it may release a useless reservation. Allocate applies a Bind. In the phase
// Preempting, Schedule reserves the cells of a Preempt for the gang.
func (s *Scheduler) Schedule(pod PodID, r *Request, phase Phase, suggested Nodes) Decision {
	d := s.decide(pod, r, phase, suggested)
	d.Victims, d.victims = s.podsOf(d.victims), nil
	return d
}

// Find is like Schedule in the phase Filtering, but its decision doesn't list victims. The list could contain a victim for each
// GPU of a cluster.
func (s *Scheduler) Find(pod PodID, r *Request, suggested Nodes) Decision {
	d := s.decide(pod, r, Filtering, suggested)
	d.victims = nil
	return d
}

// VictimsOf returns the pods that must be evicted before a gang can use its reserved cells. It lists them gang by gang, in the
// order of the places of the gang's pods.
func (s *Scheduler) VictimsOf(vc, gang string) []Victim {
	g := s.gangs[gangKey{vc, gang}]
	if g == nil || !g.preempting {
		return nil
	}
	victims := s.victimsOf(g)
	out := make([]Victim, 0, len(victims))
	for _, v := range victims {
		for i := range v.slots {
			if sl := &v.slots[i]; sl.pod != "" {
				out = append(out, Victim{Pod: sl.pod, Node: sl.at.Node, VC: v.key.vc, Gang: v.key.name})
			}
		}
	}
	return out
}

func (s *Scheduler) decide(pod PodID, r *Request, phase Phase, suggested Nodes) Decision {
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
		return Decision{Result: Refuse, Reason: fmt.Sprintf("gang %s has no room for a pod of this size: all %d of its pods exist", r.Gang, len(g.slots))}
	}
	if !g.preempting {
		if g.taken > 0 {
			return Decision{Result: Wait, Reason: fmt.Sprintf("gang %s is being preempted", r.Gang)}
		}
		return s.rejoin(g, i, r, suggested)
	}
	victims, usable := s.victimsOf(g), s.usable(g, suggested)
	if !usable && (phase == Preempting || len(victims) == 0) {
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
	if len(victims) == 0 {
		return g.bindTo(i)
	}
	d := g.preempt(victims)
	if usable {
		d.plan = &plan{epoch: s.epoch, gang: g}
	}
	return d
}

// Reserve is like Schedule in the phase Preempting, for a pod with a previous decision d. d must be a Preempt from Find or from
// the phase Filtering, with the same request and nodes. Reserve searches again only if the state has changed. The result
// contains the victims of d.
func (s *Scheduler) Reserve(pod PodID, r *Request, suggested Nodes, d Decision) Decision {
	p := d.plan
	if p == nil || p.epoch != s.epoch || !slices.Contains(s.chains, p.gang.chain) {
		return s.Schedule(pod, r, Preempting, suggested)
	}
	d.plan, d.Changes = nil, nil
	if g := p.gang; g.preempting {
		if !slices.Contains(g.waiting, pod) {
			g.waiting = append(g.waiting, pod)
		}
		return d
	}
	d.Changes = s.reserve(pod, p)
	return d
}

// reserve applies a plan for a gang that must wait for evictions.
func (s *Scheduler) reserve(pod PodID, p *plan) []Downgrade {
	p.gang.preempting = true
	p.gang.waiting = []PodID{pod}
	return append(s.apply(p), s.restoreGuarantees()...)
}

// preempt returns the Preempt decision for a gang.
func (g *gang) preempt(victims []*gang) Decision {
	return Decision{Result: Preempt, Placement: g.placement, Reason: preemptReason(victims), victims: victims}
}

// bindTo returns the Bind decision for a pod in slot i.
func (g *gang) bindTo(i int) Decision {
	sl := &g.slots[i]
	return Decision{Result: Bind, Node: sl.at.Node, Indices: sl.at.Indices, Chain: g.placement.Chain, Placement: g.placement, Slot: i}
}

// differs explains why a pod with the request belongs to a different gang with the same name, or returns "". The place and the
// quota of the gang are for the gang's own request.
func (g *gang) differs(r *Request) string {
	switch o := g.request; {
	case !slices.Equal(r.Sets(), g.sets):
		return "its pods differ in number or size"
	case r.Priority != o.Priority:
		return fmt.Sprintf("its priority is %d, not %d", o.Priority, r.Priority)
	case r.User != o.User:
		return fmt.Sprintf("it belongs to user %q, not %q", o.User, r.User)
	case r.UserGroup != o.UserGroup:
		return fmt.Sprintf("it belongs to group %q, not %q", o.UserGroup, r.UserGroup)
	case r.PinnedCell != o.PinnedCell || r.LeafType != o.LeafType && !g.chain.cpu: // roles may request several types of CPU cells
		return "it requests other cells"
	}
	return ""
}

// otherText returns the message that a pod belongs to a different gang with the same name.
func (g *gang) otherText(what string) string {
	return fmt.Sprintf("another gang has the name %s: %s; this gang waits until the other has finished", g.key, what)
}

// freeSlot returns a slot without a pod that suits the request, or -1. It prefers a slot in whose place the pod can run, and
// then an open slot.
func (g *gang) freeSlot(r *Request, suggested Nodes) int {
	want := g.sets[r.Set].Cells * g.unitLeaves(g.sets[r.Set])
	out := -1
	for i := g.skipTaken(r.Set); i < len(g.slots); i++ {
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

// skipTaken returns the first slot of a set without a pod. It caches this slot, because the pods of a large gang are requested
// in sequence.
func (g *gang) skipTaken(set int) int {
	if g.from == nil {
		g.from = make([]int, len(g.sets))
	}
	i := g.from[set]
	for i < len(g.slots) && (g.slots[i].pod != "" || g.slots[i].at.Set >= 0 && g.slots[i].at.Set != set) {
		i++
	}
	g.from[set] = i
	return i
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

// fresh decides about a pod of a gang without a place.
func (s *Scheduler) fresh(pod PodID, r *Request, phase Phase, suggested Nodes) Decision {
	p, d := s.find(r, suggested)
	if p == nil {
		return d
	}
	if len(p.victims) == 0 {
		p.gang.placement.plan = p
		return p.gang.bindTo(p.gang.first(r))
	}
	d = p.gang.preempt(p.victims)
	if phase == Preempting {
		d.Changes = s.reserve(pod, p)
	} else {
		d.plan = p
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

// usable reports whether all reserved cells of a gang are healthy and offered.
func (s *Scheduler) usable(g *gang, suggested Nodes) bool {
	var last *machine
	for i := range g.slots {
		for _, p := range g.slots[i].leaves {
			if p == nil || p.bad || suggested != nil && p.machine != last && !suggested.Has(p.machine.name) {
				return false
			}
			last = p.machine
		}
	}
	return true
}

// victimsOf returns the gangs that still run on the cells that gang g has reserved.
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

// podsOf returns the pods of gangs, sorted by node and pod. It compares the ranks of nodes, because there may be a pod for each
// GPU of a cluster.
func (s *Scheduler) podsOf(gangs []*gang) []Victim {
	if len(gangs) == 0 {
		return nil
	}
	seats := make([]seat, 0, len(gangs))
	keys := make([]uint64, 0, len(gangs)) // the rank of the node and the index of the seat
	known := true
	for _, g := range gangs {
		for i := range g.slots {
			sl := &g.slots[i]
			if sl.pod == "" {
				continue
			}
			rank := s.rankOf(sl)
			known = known && rank >= 0
			keys = append(keys, uint64(uint32(rank))<<32|uint64(len(seats)))
			seats = append(seats, seat{g, i})
		}
	}
	slices.Sort(keys)
	out := make([]Victim, len(keys))
	from := 0 // the start of the pods on one node
	for i, k := range keys {
		at := seats[uint32(k)]
		sl := &at.gang.slots[at.slot]
		out[i] = Victim{Pod: sl.pod, Node: sl.at.Node, VC: at.gang.key.vc, Gang: at.gang.key.name}
		if i+1 == len(keys) || keys[i+1]>>32 != k>>32 {
			slices.SortFunc(out[from:i+1], func(a, b Victim) int { return compare(string(a.Pod), string(b.Pod)) })
			from = i + 1
		}
	}
	if !known {
		slices.SortStableFunc(out, func(a, b Victim) int { return cmp.Or(compare(a.Node, b.Node), compare(string(a.Pod), string(b.Pod))) })
	}
	return out
}

// rankOf returns the rank of a slot's node, or -1 if the configuration doesn't contain the node.
func (s *Scheduler) rankOf(sl *slot) int32 {
	if len(sl.leaves) > 0 && sl.leaves[0] != nil {
		return sl.leaves[0].machine.rank
	}
	if m := s.machines[sl.at.Node]; m != nil {
		return m.rank
	}
	return -1
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
		return fmt.Sprintf("gang %s must stop first", victims[0].key)
	}
	return fmt.Sprintf("%d gangs must stop first, among them %s", len(victims), victims[0].key)
}
