package cell

import (
	"slices"
	"strings"
)

// judge checks a decision independently of the scheduler's code.
func (w *world) judge(p *wpod, d Decision, phase Phase, nodes Nodes) {
	r, g := p.request, p.gang
	switch d.Result {
	case Bind:
		w.judgeBind(p, d, nodes)
	case Preempt:
		w.judgeVictims(p, d)
	case Wait, Refuse:
		if d.Reason == "" || len(d.Victims) > 0 || d.Placement != nil {
			w.fail("pod %s doesn't start: %+v", p.id, d)
		}
	default:
		w.fail("there is no result %q", d.Result)
	}
	if p.running && d.Result != Bind {
		w.fail("pod %s runs and gets %s", p.id, d.Result)
	}
	if p.running {
		return
	}
	if g.running > 0 && d.Result == Wait {
		w.judgeNoMove(p, d, nodes)
	}
	if w.s.gangs[g.key] != nil {
		return
	}
	if wrong := w.wrong(r); wrong != "" && d.Result != Refuse {
		w.fail("pod %s isn't refused, though %s", p.id, wrong)
	}
	if g.refused && d.Result != Refuse {
		w.fail("gang %s was refused before and gets %s now: %v", g.key, d.Result, r)
	}
	g.refused = d.Result == Refuse && r.Set < len(r.Sets())
	if d.Result == Wait && nodes == nil && len(w.s.gangs) == 0 && w.allHealthy() && !strings.Contains(d.Reason, "held back") {
		w.fail("the idle cluster has no place for %v: %s", r, d.Reason)
	}
	_ = phase
}

// wrong explains why no cluster with the configuration could meet a request, or returns "".
func (w *world) wrong(r *Request) string {
	known := slices.ContainsFunc(w.conf.VirtualClusters, func(v VirtualCluster) bool { return v.Name == r.VirtualCluster })
	switch {
	case !known:
		return "there is no such virtual cluster"
	case r.Priority < -1 || r.Priority > 1000:
		return "there is no such priority"
	case r.Gang == "":
		return "the gang has no name"
	case r.PinnedCell != "" && !slices.ContainsFunc(w.hw.roots, func(x *hwRoot) bool { return x.vc == r.VirtualCluster && x.pinned == r.PinnedCell }):
		return "there is no such pinned cell"
	}
	sets := r.Sets()
	if r.Set < 0 || r.Set >= len(sets) {
		return "there is no such set"
	}
	total := 0
	for _, s := range sets {
		if s.Count < 1 || s.Cells < 1 {
			return "there is an empty set"
		}
		if s.Count > len(w.hw.leaf) || s.Cells > len(w.hw.leaf) {
			return "it is too large"
		}
		total += s.Count * s.Cells
	}
	if total > len(w.hw.leaf) {
		return "it is too large"
	}
	return ""
}

func (w *world) judgeBind(p *wpod, d Decision, nodes Nodes) {
	at, g := d.Placement, p.gang
	if at == nil || d.Slot < 0 || d.Slot >= len(at.Pods) || at.Pods[d.Slot].Node != d.Node || !slices.Equal(at.Pods[d.Slot].Indices, d.Indices) || at.Chain != d.Chain {
		w.fail("the bind of %s contradicts itself: %+v", p.id, d)
	}
	if !p.running {
		sets := p.request.Sets()
		if s := at.Pods[d.Slot].Set; s >= 0 && s != p.request.Set && len(sets) == len(w.s.setsOf(g.key)) {
			w.fail("pod %s of set %d gets a slot of set %d", p.id, p.request.Set, s)
		}
	}
	if g.running > 0 {
		w.judgeRejoin(p, d, nodes)
		for _, q := range g.pods {
			if q != p && q.running && w.s.pods[q.id].slot == d.Slot {
				w.fail("pods %s and %s get the same slot", q.id, p.id)
			}
		}
		if p.running && w.s.pods[p.id].slot != d.Slot {
			w.fail("pod %s moves", p.id)
		}
		return
	}
	w.judgePlace(p.request, at, nodes)
	w.judgeQuota(p, at)
}

func (s *Scheduler) setsOf(k gangKey) []PodSet {
	if g := s.gangs[k]; g != nil && g.request != nil {
		return g.request.Sets()
	}
	return nil
}

// judgePlace checks the place of a new gang: its devices must exist, be healthy, offered and free, and have the right shape.
func (w *world) judgePlace(r *Request, at *Placement, nodes Nodes) {
	sets := r.Sets()
	n := 0
	leaves := make([][]*hwLeaf, 0, len(at.Pods))
	seen := map[gpu]bool{}
	for i, set := range sets {
		for range set.Count {
			if n >= len(at.Pods) || at.Pods[n].Set != i {
				w.fail("gang %s: slot %d isn't of set %d: %+v", r.Gang, n, i, at.Pods)
			}
			leaves = append(leaves, w.judgePod(r, set, at, &at.Pods[n], nodes, seen))
			n++
		}
	}
	if n != len(at.Pods) {
		w.fail("gang %s has %d pods and %d slots", r.Gang, n, len(at.Pods))
	}
	if at.Downgraded {
		w.fail("gang %s starts downgraded", r.Gang)
	}
	w.judgeWithin(r, &r.Root, leaves)
}

func (w *world) judgePod(r *Request, set PodSet, at *Placement, pod *PodPlacement, nodes Nodes, seen map[gpu]bool) []*hwLeaf {
	var out []*hwLeaf
	if r.OnlySuggested && nodes != nil && !nodes.Has(pod.Node) {
		w.fail("gang %s gets node %s, which isn't offered", r.Gang, pod.Node)
	}
	if !slices.IsSorted(pod.Indices) || len(pod.Preassigned) != len(pod.Indices) {
		w.fail("gang %s: indices %v, preassigned %v", r.Gang, pod.Indices, pod.Preassigned)
	}
	guaranteed := r.Priority >= 0 && !at.Downgraded
	if guaranteed != (pod.Virtual != nil) {
		w.fail("gang %s has priority %d and virtual leaves %v", r.Gang, r.Priority, pod.Virtual)
	}
	for k, d := range pod.Indices {
		key := gpu{pod.Node, d}
		leaf := w.hw.leaf[key]
		switch {
		case leaf == nil:
			w.fail("gang %s gets device %v, which isn't there", r.Gang, key)
		case seen[key]:
			w.fail("gang %s gets device %v twice", r.Gang, key)
		case !w.healthy(pod.Node, d):
			w.fail("gang %s gets device %v, which is bad", r.Gang, key)
		case w.using[key] != nil && !w.lifted[key]:
			w.fail("gang %s gets device %v, which %s uses", r.Gang, key, w.using[key].key)
		case leaf.chain.names[leaf.chain.top()] != at.Chain:
			w.fail("gang %s gets device %v, which isn't of chain %s", r.Gang, key, at.Chain)
		case r.LeafType != "" && r.PinnedCell == "" && leaf.chain.names[0] != r.LeafType:
			w.fail("gang %s gets device %v, which is a %s", r.Gang, key, leaf.chain.names[0])
		case guaranteed != (pod.Preassigned[k] != ""):
			w.fail("gang %s has priority %d and cells %v", r.Gang, r.Priority, pod.Preassigned)
		}
		seen[key] = true
		out = append(out, leaf)
	}
	w.judgeUnits(r, set, out)
	return out
}

// judgeUnits checks that a pod has the requested number of whole cells of its type.
func (w *world) judgeUnits(r *Request, set PodSet, leaves []*hwLeaf) {
	if len(leaves) == 0 {
		w.fail("gang %s has a pod without devices", r.Gang)
	}
	ch, unit := leaves[0].chain, 0
	if set.CellType != "" {
		unit = ch.level(set.CellType)
	}
	if unit < 0 || len(leaves) != set.Cells*ch.leaves[unit] {
		w.fail("gang %s wants %d %s for a pod and gets %d leaves", r.Gang, set.Cells, set.CellType, len(leaves))
	}
	per := map[int]int{}
	for _, l := range leaves {
		per[l.around(unit).id()]++
	}
	for _, n := range per {
		if n != ch.leaves[unit] {
			w.fail("gang %s gets a part of a %s", r.Gang, set.CellType)
		}
	}
}

// judgeWithin checks the Within of nested groups, and returns the number of slots of the group.
func (w *world) judgeWithin(r *Request, g *Group, leaves [][]*hwLeaf) int {
	n := 0
	for _, set := range g.Pods {
		n += set.Count
	}
	for i := range g.Children {
		n += w.judgeWithin(r, &g.Children[i], leaves[n:])
	}
	if g.Within == "" {
		return n
	}
	cell := -1
	for _, pod := range leaves[:n] {
		for _, l := range pod {
			level := l.chain.level(g.Within)
			if level < 0 {
				w.fail("gang %s has to lie in a %s, and is in a chain without", r.Gang, g.Within)
			}
			id := l.around(level).id()
			if cell >= 0 && id != cell {
				w.fail("gang %s has a group that has to lie within one %s, and doesn't", r.Gang, g.Within)
			}
			cell = id
		}
	}
	return n
}

// judgeVictims checks that the victims are whole running gangs. They must be opportunistic, or gangs of the same virtual
// cluster with a lower priority.
func (w *world) judgeVictims(p *wpod, d Decision) {
	r := p.request
	if len(d.Victims) == 0 || r.Priority < 0 {
		w.fail("pod %s of priority %d preempts %v", p.id, r.Priority, d.Victims)
	}
	count := map[*wgang]int{}
	for i, v := range d.Victims {
		q := w.podByID(v.Pod)
		if q == nil || !q.running || q.gang.key != (gangKey{v.VC, v.Gang}) {
			w.fail("pod %s has victim %+v, which doesn't run", p.id, v)
		}
		if i > 0 && (d.Victims[i-1].Node > v.Node || d.Victims[i-1].Node == v.Node && d.Victims[i-1].Pod >= v.Pod) {
			w.fail("victims are not in order: %v", d.Victims)
		}
		count[q.gang]++
	}
	for g, n := range count {
		switch {
		case n != g.running:
			w.fail("%d of %d pods of victim %s have to go", n, g.running, g.key)
		case g == p.gang:
			w.fail("gang %s preempts itself", g.key)
		case g.guaranteed && (g.key.vc != r.VirtualCluster || g.priority >= r.Priority):
			w.fail("pod %s of priority %d preempts %s of priority %d", p.id, r.Priority, g.key, g.priority)
		}
	}
}

func (w *world) judgeQuota(p *wpod, at *Placement) {
	r := p.request
	if r.Priority < 0 || w.inexact {
		return
	}
	var q Quota
	for _, v := range w.conf.VirtualClusters {
		if v.Name == r.VirtualCluster {
			q = v.Quota
		}
	}
	limit, ok := q.Users[r.User]
	if !ok {
		limit = q.PerUser
	}
	w.judgeLimit(p, at, limit, r.User, func(o *Request) string { return o.User })
	limit, ok = q.Groups[r.UserGroup]
	switch {
	case r.UserGroup == "":
		return
	case !ok:
		limit = q.PerGroup
	}
	w.judgeLimit(p, at, limit, r.UserGroup, func(o *Request) string { return o.UserGroup })
}

func (w *world) judgeLimit(p *wpod, at *Placement, limit int, who string, of func(*Request) string) {
	if limit == 0 {
		return
	}
	n := leavesIn(at.Pods)
	for _, g := range w.gangs {
		if g != p.gang && g.running > 0 && g.guaranteed && g.key.vc == p.gang.key.vc && of(g.pods[0].request) == who {
			n += leavesIn(g.place)
		}
	}
	if n > limit {
		w.fail("%s holds %d GPUs of %d with %s", who, n, limit, p.id)
	}
}

func leavesIn(pods []PodPlacement) int {
	n := 0
	for i := range pods {
		n += len(pods[i].Indices)
	}
	return n
}
