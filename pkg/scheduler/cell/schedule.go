package cell

import (
	"fmt"
	"slices"
)

// plan is a placement that was found and is not yet in force.
type plan struct {
	epoch   uint64
	gang    *gang
	demoted []*gang // lose their guarantee for it
	cancels []*gang // lose their reservations to it
	victims []*gang // have to go first
}

// Schedule decides about one pod. suggested are the nodes that Kubernetes offers; nil is all.
// In the phase Filtering nothing changes; Allocate puts a Bind into force. In the phase Preempting
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
	i := g.freeSlot(r)
	if i < 0 {
		return Decision{Result: Refuse, Reason: fmt.Sprintf("gang %s has no place left for a pod of this size: all %d of its pods are there", r.Gang, len(g.slots))}
	}
	if !g.preempting {
		if g.taken > 0 {
			return Decision{Result: Wait, Reason: fmt.Sprintf("gang %s is being preempted", r.Gang)}
		}
		return g.bindTo(i)
	}
	if !s.usable(g, suggested) {
		s.cancel(g)
		s.settle()
		return s.fresh(pod, r, phase, suggested)
	}
	if phase == Preempting && !slices.Contains(g.waiting, pod) {
		g.waiting = append(g.waiting, pod)
	}
	if victims := s.victimsOf(g); len(victims) > 0 {
		return Decision{Result: Preempt, Victims: podsOf(victims), Reason: preemptReason(victims)}
	}
	return g.bindTo(i)
}

// bindTo is the decision for a slot of a gang that has its place.
func (g *gang) bindTo(i int) Decision {
	sl := &g.slots[i]
	return Decision{Result: Bind, Node: sl.at.Node, Indices: sl.at.Indices, Chain: g.placement.Chain, Placement: g.placement, Slot: i}
}

// freeSlot returns the first slot without a pod that a pod of the request fits, or -1.
func (g *gang) freeSlot(r *Request) int {
	sets := r.Sets()
	if r.Set < 0 || r.Set >= len(sets) {
		return -1
	}
	want := -1
	for i := range g.slots {
		sl := &g.slots[i]
		if sl.pod != "" {
			continue
		}
		if sl.at.Set == r.Set {
			return i
		}
		if want < 0 && (sl.at.Set < 0 || len(sets) != len(g.sets)) && len(sl.at.Indices) == sets[r.Set].Cells*g.unitLeaves(sets[r.Set]) {
			want = i
		}
	}
	return want
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
	d = Decision{Result: Preempt, Victims: podsOf(p.victims), Reason: preemptReason(p.victims)}
	if phase == Preempting {
		p.gang.preempting = true
		p.gang.waiting = []PodID{pod}
		s.apply(p)
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

// find looks for a place: without killing if it can, and in the order of the chains.
func (s *Scheduler) find(r *Request, suggested Nodes) (*plan, Decision) {
	v := s.byVC[r.VirtualCluster]
	targets, err := s.targets(v, r)
	if err != nil {
		return nil, Decision{Result: Refuse, Reason: err.Error()}
	}
	if reason := s.overQuota(v, r); reason != "" {
		return nil, s.quotaDecision(v, r, reason)
	}
	var best *plan
	for _, t := range targets {
		if p := s.tryFree(t, r, suggested); p != nil && (best == nil || len(best.victims) > 0 && len(p.victims) == 0) {
			best = p
		}
		if best != nil && len(best.victims) == 0 {
			return best, Decision{}
		}
	}
	if best != nil {
		return best, Decision{}
	}
	if r.Priority >= MinGuaranteed {
		for _, t := range targets {
			if p := s.tryPreempt(t, r, suggested); p != nil {
				return p, Decision{}
			}
		}
	}
	return nil, s.noPlace(r, targets, suggested)
}

// target is where a gang is searched: virtual cells, or (space nil) all of a chain.
type target struct {
	space *space
	chain *chain
	shape *shape
}

func (t target) view() *view {
	if t.space != nil {
		return t.space.view
	}
	return t.chain.view
}

// targets lists where the request may go. The error says why there is nothing.
func (s *Scheduler) targets(v *vc, r *Request) ([]target, error) {
	var spaces []*space
	switch {
	case r.PinnedCell != "":
		sp := v.pinned[r.PinnedCell]
		if sp == nil {
			return nil, fmt.Errorf("virtual cluster %s has no pinned cell %s", v.name, r.PinnedCell)
		}
		if r.Priority < MinGuaranteed {
			return nil, fmt.Errorf("an opportunistic gang can't ask for the pinned cell %s; give it a priority of 0 or more", r.PinnedCell)
		}
		spaces = []*space{sp}
	case r.Priority >= MinGuaranteed:
		spaces = v.spaces
	default:
		for _, ch := range s.chains {
			spaces = append(spaces, &space{chain: ch})
		}
	}
	var out []target
	var last error
	typed := false
	for _, sp := range spaces {
		if r.LeafType != "" && r.PinnedCell == "" && sp.chain.names[0] != r.LeafType {
			continue
		}
		typed = true
		sh, err := sp.chain.shapeOf(r)
		if err != nil {
			last = err
			continue
		}
		t := target{chain: sp.chain, shape: sh}
		if sp.vc != nil {
			t.space = sp
		}
		out = append(out, t)
	}
	if len(out) > 0 {
		return out, nil
	}
	if typed && last != nil {
		return nil, last
	}
	return nil, s.noTarget(v, r)
}

func (s *Scheduler) noTarget(v *vc, r *Request) error {
	known := map[string]bool{}
	for _, ch := range s.chains {
		known[ch.names[0]] = true
	}
	switch {
	case r.LeafType != "" && !known[r.LeafType]:
		return fmt.Errorf("the cluster has no leaf cell type %s", r.LeafType)
	case r.LeafType != "" && r.Priority >= MinGuaranteed:
		return fmt.Errorf("virtual cluster %s has no cells of leaf cell type %s", v.name, r.LeafType)
	}
	return fmt.Errorf("virtual cluster %s has no cells outside of its pinned ones; name one with pinnedCellId, or ask for priority -1", v.name)
}

// tryFree looks for a place in the leaves that the virtual cluster doesn't use.
func (s *Scheduler) tryFree(t target, r *Request, suggested Nodes) *plan {
	v := t.view()
	if t.shape.total > v.free {
		return nil
	}
	if t.space == nil && t.chain.holdsBack(t.shape.total) {
		return nil
	}
	blocked := s.blockUnoffered(t, suggested, nil)
	defer func() { unblock(v, blocked) }()
	for range 4 {
		spots, ok := s.wholeNodes(t)
		if !ok {
			spots, ok = v.place(t.shape)
		}
		if !ok {
			return nil
		}
		g := s.newGang(t, r, spots)
		if t.space == nil {
			return s.finish(g, nil)
		}
		if s.mapLeaves(t.space, g.slots, suggested) {
			return s.finish(g, nil)
		}
		// Bad or unoffered hardware is in the way: look elsewhere.
		for i := range spots {
			if root := t.space.leaves[v.nodes[spots[i].node].lo].root; root.bound == nil && !v.nodes[spots[i].node].blocked {
				blocked = append(blocked, t.space.blockRoot(root)...)
			}
		}
	}
	return nil
}

// blockRoot takes all nodes of a preassigned cell out of the search.
func (sp *space) blockRoot(root *vcell) []int32 {
	var out []int32
	for i := sp.leaves[root.lo].node; i <= sp.leaves[root.hi-1].node; i++ {
		if !sp.view.nodes[i].blocked {
			sp.view.block(i, true)
			out = append(out, i)
		}
	}
	return out
}

// blockUnoffered takes the nodes that lie on hardware which isn't offered out of the search.
func (s *Scheduler) blockUnoffered(t target, suggested Nodes, blocked []int32) []int32 {
	if suggested == nil {
		return blocked
	}
	v := t.view()
	for i := range v.nodes {
		n := &v.nodes[i]
		var m *machine
		if t.space == nil {
			m = t.chain.cells[t.chain.node][i].machine
		} else {
			m = t.space.machineOf(n)
		}
		if m != nil && !suggested.Has(m.name) && !n.blocked {
			v.block(int32(i), true)
			blocked = append(blocked, int32(i))
		}
	}
	return blocked
}

// machineOf returns the machine that a view's node is bound to, nil if to none.
func (sp *space) machineOf(n *viewNode) *machine {
	for c := sp.leaves[n.lo]; c != nil && c.level <= int(n.top); c = c.parent {
		if c.level == int(n.top) && c.bound != nil {
			return c.bound.machine
		}
	}
	return nil
}

func unblock(v *view, nodes []int32) {
	for _, i := range nodes {
		v.block(i, false)
	}
}

// newGang makes the gang for spots in a view; a physical one has its leaves at once.
func (s *Scheduler) newGang(t target, r *Request, spots []spot) *gang {
	g := &gang{key: gangKey{r.VirtualCluster, r.Gang}, request: r, priority: r.Priority, space: t.space, chain: t.chain, order: s.order + 1}
	g.slots = make([]slot, len(spots))
	v := t.view()
	pods := 0
	for set, sh := range t.shape.sets {
		for range sh.count {
			sl := &g.slots[pods]
			sl.at.Set = set
			at := spots[pods]
			slices.Sort(at.offsets)
			lo := v.nodes[at.node].lo
			if t.space != nil {
				sl.virtual = make([]*vcell, len(at.offsets))
				for k, o := range at.offsets {
					sl.virtual[k] = t.space.leaves[lo+o]
				}
			} else {
				sl.leaves = make([]*pcell, len(at.offsets))
				for k, o := range at.offsets {
					sl.leaves[k] = t.chain.cells[0][lo+o]
				}
			}
			pods++
		}
	}
	return g
}

// finish completes a mapped gang: addresses in order of devices, victims, the written placement.
func (s *Scheduler) finish(g *gang, demoted []*gang) *plan {
	p := &plan{epoch: s.epoch, gang: g, demoted: demoted}
	s.stamp++
	indices := make([]int32, 0, g.leafCount())
	for i := range g.slots {
		sl := &g.slots[i]
		sl.sortByDevice()
		sl.at.Node = sl.leaves[0].machine.name
		from := len(indices)
		for _, leaf := range sl.leaves {
			indices = append(indices, leaf.device)
			if u := leaf.using; u != nil && u.marked != s.stamp {
				u.marked = s.stamp
				p.victims = append(p.victims, u)
			}
			if h := leaf.reserving; h != nil && h.marked != s.stamp {
				h.marked = s.stamp
				p.cancels = append(p.cancels, h)
			}
		}
		sl.at.Indices = indices[from:len(indices):len(indices)]
	}
	g.placement = g.describe()
	return p
}

func (g *gang) leafCount() int {
	n := 0
	for i := range g.slots {
		n += len(g.slots[i].leaves)
	}
	return n
}

// sortByDevice orders the leaves by device, the virtual ones along with them.
func (sl *slot) sortByDevice() {
	for i := 1; i < len(sl.leaves); i++ {
		for k := i; k > 0 && sl.leaves[k].device < sl.leaves[k-1].device; k-- {
			sl.leaves[k], sl.leaves[k-1] = sl.leaves[k-1], sl.leaves[k]
			if sl.virtual != nil {
				sl.virtual[k], sl.virtual[k-1] = sl.virtual[k-1], sl.virtual[k]
			}
		}
	}
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
			if u := p.using; u != nil && u.marked != s.stamp {
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
