package cell

import (
	"slices"
	"strings"
)

// judgeRejoin checks the place of a pod that joins a running gang. It must be the place of a slot in which the pod can run.
// Another place is correct only if no slot has such a place.
func (w *world) judgeRejoin(p *wpod, d Decision, nodes Nodes) {
	g, at := p.gang, d.Placement
	if p.running {
		if !samePlace(at.Pods, g.place) {
			w.fail("gang %s runs on %v, and its pod gets %v", g.key, g.place, at.Pods)
		}
		return
	}
	if samePlace(at.Pods, g.place) {
		if !w.canRun(p.request, &g.place[d.Slot], nodes) {
			w.fail("pod %s gets its place %v again, where it can't run", p.id, g.place[d.Slot])
		}
		return
	}
	for i := range at.Pods {
		if i != d.Slot && (at.Pods[i].Node != g.place[i].Node || !slices.Equal(at.Pods[i].Indices, g.place[i].Indices)) {
			w.fail("pod %s moves slot %d of gang %s with its own: %v to %v", p.id, i, g.key, g.place, at.Pods)
		}
	}
	if i := w.freePlace(p, nodes); i >= 0 {
		w.fail("pod %s moves, and could run in slot %d on %v", p.id, i, g.place[i])
	}
	w.lifted = map[gpu]bool{}
	defer func() { w.lifted = nil }()
	for _, index := range g.place[d.Slot].Indices {
		w.lifted[gpu{g.place[d.Slot].Node, index}] = true
	}
	set := p.request.Sets()[p.request.Set]
	own := w.judgePod(p.request, set, at, &at.Pods[d.Slot], nodes, map[gpu]bool{})
	w.judgeNear(p, d, own)
}

// judgeNear checks that a moved pod stays in the cells that contain the rest of its groups.
func (w *world) judgeNear(p *wpod, d Decision, own []*hwLeaf) {
	for _, a := range p.request.Root.around(p.request.Set) {
		level := own[0].chain.level(a.group.Within)
		if level < 0 {
			continue
		}
		cells := map[int]bool{}
		for i := range p.gang.place {
			o := &p.gang.place[i]
			if i == d.Slot || o.Set < a.lo || o.Set >= a.hi {
				continue
			}
			for _, index := range o.Indices {
				if l := w.hw.leaf[gpu{o.Node, index}]; l != nil && l.chain == own[0].chain {
					cells[l.around(level).id()] = true
				}
			}
		}
		if len(cells) > 1 {
			continue
		}
		for _, l := range own {
			cells[l.around(level).id()] = true
		}
		if len(cells) > 1 {
			w.fail("pod %s leaves the %s of its group", p.id, a.group.Within)
		}
	}
}

// canRun reports whether a place exists, is healthy and is offered.
func (w *world) canRun(r *Request, at *PodPlacement, nodes Nodes) bool {
	if len(at.Indices) == 0 || r.OnlySuggested && nodes != nil && !nodes.Has(at.Node) {
		return false
	}
	return !slices.ContainsFunc(at.Indices, func(d int32) bool { return w.hw.leaf[gpu{at.Node, d}] == nil || !w.healthy(at.Node, d) })
}

// freePlace returns a slot without a pod where a pod could run, or -1.
func (w *world) freePlace(p *wpod, nodes Nodes) int {
	sg := w.s.gangs[p.gang.key]
	for i := range p.gang.place {
		if sg.slots[i].pod == "" && p.gang.place[i].Set == p.request.Set && w.canRun(p.request, &p.gang.place[i], nodes) {
			return i
		}
	}
	return -1
}

// judgeNoMove checks that a pod doesn't wait if its gang has a place for it. An opportunistic pod must not wait while devices
// are idle either.
func (w *world) judgeNoMove(p *wpod, d Decision, nodes Nodes) {
	w.tally["waits to move"]++
	sg, r := w.s.gangs[p.gang.key], p.request
	if sg.taken > 0 || sg.differs(r) != "" {
		return
	}
	if i := w.freePlace(p, nodes); i >= 0 {
		w.fail("pod %s waits, and could run in slot %d on %v: %s", p.id, i, p.gang.place[i], d.Reason)
	}
	set := r.Sets()[r.Set]
	if !sg.opportunistic() || set.CellType != "" || strings.Contains(d.Reason, "of its group") || slices.Max(sg.chain.pressure) > 0 || len(r.Root.around(r.Set)) > 0 ||
		r.LeafType != "" && sg.chain.names[0] != r.LeafType {
		return
	}
	idle := map[string]int{}
	for _, leaf := range sg.chain.cells[0] {
		name := leaf.machine.name
		if leaf.idle() && (!r.OnlySuggested || nodes == nil || nodes.Has(name)) {
			if idle[name]++; idle[name] >= set.Cells {
				w.fail("pod %s waits for %d devices, and node %s has them: %s", p.id, set.Cells, name, d.Reason)
			}
		}
	}
}

func (w *world) changePlace(g *wgang, place []PodPlacement) {
	for i := range g.place {
		for _, d := range g.place[i].Indices {
			delete(w.using, gpu{g.place[i].Node, d})
		}
	}
	g.place = place
	w.take(g)
}

// anyMoved reports whether the annotations of running pods may contain outdated places of other pods.
func (w *world) anyMoved() bool {
	return slices.ContainsFunc(w.gangs, func(g *wgang) bool {
		return g.running > 0 && (w.s.gangs[g.key].moves > 0 || slices.ContainsFunc(g.place, isOpen) ||
			slices.ContainsFunc(g.pods, func(p *wpod) bool { return p.running && slices.ContainsFunc(p.at.Pods, isOpen) }))
	})
}

func isOpen(at PodPlacement) bool { return at.isOpen() }

// ownPlace returns a placement with the place of only one pod.
func ownPlace(at *Placement, slot int) *Placement {
	out := at.clone()
	for i := range out.Pods {
		if i != slot {
			out.Pods[i] = PodPlacement{Set: out.Pods[i].Set}
		}
	}
	return out
}

// believe records the places of slots without pods. These places may have been lost or, if unsure is set, may be outdated.
// Running pods must be in the same places as before. believe reports whether a place has changed.
func (w *world) believe(unsure bool) (changed bool) {
	for _, g := range w.gangs {
		sg := w.s.gangs[g.key]
		if g.running == 0 || sg == nil || samePlace(sg.placement.Pods, g.place) {
			continue
		}
		if changed = true; !unsure {
			w.fail("gang %s was at %v and is at %v", g.key, g.place, sg.placement.Pods)
		}
		for _, p := range g.pods {
			if !p.running {
				continue
			}
			at, now := &p.at.Pods[p.slot], &sg.placement.Pods[w.s.pods[p.id].slot]
			if at.Node != now.Node || !slices.Equal(at.Indices, now.Indices) {
				w.fail("pod %s runs on %v and is taken to be on %v", p.id, *at, *now)
			}
		}
		w.newestWins(g, sg)
	}
	for _, g := range w.gangs {
		for i := range g.place {
			for _, d := range g.place[i].Indices {
				delete(w.using, gpu{g.place[i].Node, d})
			}
		}
	}
	for _, g := range w.gangs {
		if sg := w.s.gangs[g.key]; g.running > 0 && sg != nil {
			g.place = sg.placement.Pods
			w.take(g)
		}
	}
	return changed
}

// newestWins checks that the place of a slot without a pod is open, or equals the place in the annotations of the pod that was
// bound last.
func (w *world) newestWins(g *wgang, sg *gang) {
	var newest *Placement
	for _, p := range g.pods {
		if p.running && (newest == nil || p.at.Moves > newest.Moves) {
			newest = p.at
		}
	}
	for i := range sg.slots {
		sl := &sg.slots[i]
		if sl.pod == "" && !sl.open() && !w.inexact && !sl.isAt(&newest.Pods[i]) {
			w.fail("slot %d of gang %s is at %v, and the newest annotation says %v", i, g.key, sl.at, newest.Pods[i])
		}
	}
}
