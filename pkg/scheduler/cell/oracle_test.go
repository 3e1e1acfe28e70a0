package cell

import "slices"

// oracle checks independently that guaranteed gangs are in cells that their virtual clusters own. Virtual and physical cells
// must match one to one on every level, and preassigned cells must not overlap. The remaining cells must be enough for the
// unused cells of virtual clusters.
type oracle struct {
	hw     *hardware
	stamp  int
	phys   []mark   // by virtual cell: its physical cell
	virt   []mark   // by physical cell: its virtual cell
	root   []mark   // by physical cell: the preassigned cell that is bound to it
	inside []mark   // physical cells that contain a physical cell with a preassigned cell
	usedBy []mark   // the roots that are in use, by the root's first virtual id
	images []hwCell // the physical cells of the preassigned cells
}

type mark struct{ stamp, value int }

func newOracle(hw *hardware) oracle {
	return oracle{hw: hw, phys: make([]mark, hw.vcells), virt: make([]mark, hw.cells), root: make([]mark, hw.cells), inside: make([]mark, hw.cells), usedBy: make([]mark, hw.vcells)}
}

// pair records that two cells match. It returns false if one of them already matches a different cell.
func pair(marks []mark, stamp, i, value int) bool {
	if m := &marks[i]; m.stamp != stamp {
		*m = mark{stamp, value}
		return true
	}
	return marks[i].value == value
}

// verify checks the state after every step.
func (w *world) verify() {
	n := 0
	for _, g := range w.gangs {
		sg := w.s.gangs[g.key]
		if g.running == 0 {
			if sg != nil && !sg.preempting {
				w.fail("gang %s runs in the scheduler only", g.key)
			}
			continue
		}
		n++
		if sg == nil || sg.preempting || sg.running != g.running {
			w.fail("gang %s runs, and the scheduler doesn't know it so", g.key)
		}
		if sg.opportunistic() == g.guaranteed {
			w.fail("gang %s is guaranteed: %v by the reports, %v by the scheduler", g.key, g.guaranteed, !sg.opportunistic())
		}
		for _, p := range g.pods {
			if p.running && g.priority >= MinGuaranteed && p.at.guaranteed() != g.guaranteed && w.present(g) {
				w.fail("gang %s is guaranteed: %v, and the annotations of %s say otherwise", g.key, g.guaranteed, p.id)
			}
		}
		if !samePlace(sg.placement.Pods, g.place) {
			w.fail("gang %s moved from %v to %v", g.key, g.place, sg.placement.Pods)
		}
	}
	for _, sg := range w.s.gangs {
		if !sg.preempting {
			n--
		}
	}
	if n != 0 {
		w.fail("%d gangs more run in the scheduler", -n)
	}
	if w.safety > 0 && w.step%w.safety == 0 {
		w.sharedAsAlone()
	}
	if w.fast {
		return
	}
	w.ownership()
	if len(w.hw.leaf) <= maxMadeLeaves || w.step%64 == 0 {
		if err := w.s.Check(); err != nil {
			w.fail("Check: %v", err)
		}
	}
}

func samePlace(a, b []PodPlacement) bool {
	return slices.EqualFunc(a, b, func(x, y PodPlacement) bool { return x.Node == y.Node && slices.Equal(x.Indices, y.Indices) })
}

// ownership checks that all guaranteed gangs are in cells that their virtual clusters own.
func (w *world) ownership() {
	o := &w.oracle
	o.stamp++
	o.images = o.images[:0]
	for _, r := range w.hw.roots {
		if r.pinned != "" {
			p := w.hw.pins[r.pinned]
			pair(o.root, o.stamp, p.id(), -1)
			o.images = append(o.images, p)
		}
	}
	for _, g := range w.gangs {
		if g.running == 0 || !g.guaranteed {
			continue
		}
		at := w.s.gangs[g.key].placement
		for i := range at.Pods {
			for k, d := range at.Pods[i].Indices {
				leaf := w.hw.leaf[gpu{at.Pods[i].Node, d}]
				if leaf == nil {
					continue
				}
				w.owns(g, leaf, at.Pods[i].Virtual[k], at.Pods[i].Preassigned[k])
			}
		}
	}
	w.disjoint()
	w.enough()
}

func (w *world) owns(g *wgang, leaf *hwLeaf, address, preassigned string) {
	o := &w.oracle
	v := w.hw.vleaf[address]
	switch {
	case v == nil:
		w.fail("gang %s has a virtual leaf %q that isn't there", g.key, address)
	case v.root.vc != g.key.vc || v.root.chain != leaf.chain:
		w.fail("gang %s has %s of virtual cluster %s", g.key, address, v.root.vc)
	case v.root.chain.names[v.root.level] != preassigned:
		w.fail("gang %s has %s, which isn't below a %s", g.key, address, preassigned)
	case v.root.pinned != g.pods[0].request.PinnedCell:
		w.fail("gang %s wants pinned cell %q and has %s", g.key, g.pods[0].request.PinnedCell, address)
	}
	for l, id := range v.ids {
		p := leaf.around(l)
		if !pair(o.phys, o.stamp, id, p.id()) || !pair(o.virt, o.stamp, p.id(), id) {
			w.fail("gang %s: virtual cells around %s and physical cells around leaf %d of %s don't match at level %d", g.key, address, leaf.i, leaf.chain.names[leaf.chain.top()], l)
		}
	}
	top := leaf.around(v.root.level)
	id := v.ids[v.root.level]
	if v.root.pinned != "" {
		if top != w.hw.pins[v.root.pinned] {
			w.fail("gang %s runs outside of the pinned cell %s", g.key, v.root.pinned)
		}
		return
	}
	if m := o.root[top.id()]; m.stamp == o.stamp && m.value != id {
		w.fail("gang %s is on a cell of another", g.key)
	}
	if o.root[top.id()].stamp != o.stamp {
		o.root[top.id()] = mark{o.stamp, id}
		o.usedBy[id] = mark{o.stamp, 1}
		o.images = append(o.images, top)
	}
}

// disjoint checks that no preassigned cell is inside another preassigned cell.
func (w *world) disjoint() {
	o := &w.oracle
	for _, p := range o.images {
		for l := p.level + 1; l <= p.chain.top(); l++ {
			up := hwCell{p.chain, l, p.i * p.chain.leaves[p.level] / p.chain.leaves[l]}
			o.inside[up.id()] = mark{o.stamp, 1}
			if o.root[up.id()].stamp == o.stamp {
				w.fail("two preassigned cells overlap in chain %s", p.chain.names[p.chain.top()])
			}
		}
	}
}

// enough checks that the free cells, split as necessary, are enough for the preassigned cells without a physical cell.
func (w *world) enough() {
	o := &w.oracle
	for _, ch := range w.hw.chains {
		owed := make([]int, len(ch.names))
		for _, r := range w.hw.roots {
			if r.chain == ch && r.pinned == "" {
				owed[r.level]++
			}
		}
		for _, p := range o.images {
			if p.chain == ch && o.root[p.id()].value >= 0 {
				owed[p.level]--
			}
		}
		free := make([]int, len(ch.names))
		for i := range ch.n / ch.leaves[ch.top()] {
			o.count(hwCell{ch, ch.top(), i}, free)
		}
		have := 0
		for l := ch.top(); l >= 0; l-- {
			if have += free[l] - owed[l]; have < 0 {
				w.fail("chain %s has %v free cells for %v owed ones, by level", ch.names[ch.top()], free, owed)
			}
			if l > 0 {
				have *= ch.leaves[l] / ch.leaves[l-1]
			}
		}
	}
}

func (o *oracle) count(p hwCell, free []int) {
	if o.root[p.id()].stamp == o.stamp {
		return
	}
	if o.inside[p.id()].stamp != o.stamp {
		free[p.level]++
		return
	}
	n := p.chain.leaves[p.level] / p.chain.leaves[p.level-1]
	for k := range n {
		o.count(hwCell{p.chain, p.level - 1, p.i*n + k}, free)
	}
}

// guaranteed reports whether the placement claims cells of the virtual cluster.
func (p *Placement) guaranteed() bool {
	for i := range p.Pods {
		for _, t := range p.Pods[i].Preassigned {
			if t != "" {
				return !p.Downgraded
			}
		}
	}
	return false
}

// present reports whether the configuration still contains a device of the gang.
func (w *world) present(g *wgang) bool {
	for i := range g.place {
		for _, d := range g.place[i].Indices {
			if w.hw.leaf[gpu{g.place[i].Node, d}] != nil {
				return true
			}
		}
	}
	return false
}
