package cell

import (
	"errors"
	"slices"
)

func (w *world) do(record []byte) {
	w.step++
	w.fast = w.every > 0 && w.step%w.every != 0
	c := newChoices(record)
	switch n := c.n(128); {
	case n < 24:
		w.wholeGang(c, w.newGang(c))
	case n < 34:
		w.wholeGang(c, w.anyGang(c))
	case n < 44:
		w.ask(c, w.anyPod(c, false), Filtering)
	case n < 54:
		w.ask(c, w.anyPod(c, false), Preempting)
	case n < 60:
		w.accept(w.anyPod(c, false))
	case n < 68:
		w.end(w.anyPod(c, true))
	case n < 84:
		w.endGang(c, w.anyGang(c))
	case n < 89:
		w.stopWaiting(w.anyPod(c, false))
	case n < 97:
		w.chase(c, w.anyGang(c))
	case n < 103:
		w.nodeHealth(c)
	case n < 106:
		w.deviceHealth(c)
	case n < 109:
		w.restart(c)
	case n < 111:
		w.reconfigure(c)
	case n < 116:
		w.nonsense(c)
	default:
		w.wholeGang(c, w.newGang(c))
	}
	w.verify()
}

func (w *world) anyPod(c *choices, running bool) *wpod {
	g := w.anyGang(c)
	start := c.n(len(g.pods))
	for i := range g.pods {
		if p := g.pods[(start+i)%len(g.pods)]; p.running == running {
			return p
		}
	}
	return g.pods[start]
}

func (w *world) ask(c *choices, p *wpod, phase Phase) Decision {
	return w.askOn(p, phase, w.someNodes(c, p.request))
}

func (w *world) askOn(p *wpod, phase Phase, nodes Nodes) Decision {
	var before uint64
	var text string
	if phase == Filtering && !w.fast {
		before = w.s.digest(true)
		if w.trace != nil {
			text = w.s.dump()
		}
	}
	// In both phases, a reservation is dropped if it is unusable and waits for no victim.
	held := w.s.gangs[p.gang.key]
	mayCancel := held != nil && held.preempting && len(w.s.victimsOf(held)) == 0
	d := w.s.Schedule(p.id, p.request, phase, nodes)
	w.tally[string(d.Result)]++
	w.note("schedule %s phase %d on %v: %s %s %s %v %v victims %v", p.id, phase, nodes, d.Result, d.Reason, d.Node, d.Indices, virtualOf(&d), d.Victims)
	if w.record != nil {
		w.record(d)
	}
	if phase == Filtering && !w.fast && !mayCancel {
		if w.s.digest(true) != before {
			w.fail("filtering changed the state\n%s\nto\n%s", text, w.dumpText())
		}
	}
	w.judge(p, d, phase, nodes)
	if phase == Filtering && len(d.Changes) > 0 && !mayCancel {
		w.fail("filtering reports changes: %v", d.Changes)
	}
	w.lose(d.Changes)
	p.bind = nil
	if d.Result == Bind {
		p.bind = &d
	}
	return d
}

func (w *world) dumpText() string {
	if w.trace == nil {
		return ""
	}
	return w.s.dump()
}

// accept allocates the latest decision for a pod. This decision may be outdated.
func (w *world) accept(p *wpod) bool {
	if p.bind == nil || p.running {
		return false
	}
	d := p.bind
	p.bind = nil
	fresh := p.gang.running == 0
	before, text := uint64(0), ""
	if !w.fast {
		before, text = w.s.digest(true), w.dumpText()
	}
	lost, err := w.s.Allocate(p.id, p.request, d.Placement, d.Slot)
	w.note("allocate %s on %s %v: %v lost %v", p.id, d.Node, d.Indices, err, lost)
	if err != nil {
		if !w.fast && w.s.digest(true) != before {
			w.fail("a failed Allocate changed the state: %v\n%s\nto\n%s", err, text, w.dumpText())
		}
		return false
	}
	if fresh {
		p.gang.place = d.Placement.Pods
		p.gang.chain = d.Placement.Chain
		p.gang.guaranteed = p.request.Priority >= MinGuaranteed && !d.Placement.Downgraded
		w.take(p.gang)
	}
	if !fresh && !samePlace(d.Placement.Pods, p.gang.place) {
		w.tally["moves"]++
		w.changePlace(p.gang, d.Placement.Pods)
	}
	at := d.Placement
	if fresh {
		at = w.s.gangs[p.gang.key].placement // an outdated decision may get other virtual cells than the cells that it contains
	}
	w.seat(p, at, d.Slot)
	w.lose(lost)
	return true
}

func (w *world) take(g *wgang) {
	for i := range g.place {
		for _, d := range g.place[i].Indices {
			k := gpu{g.place[i].Node, d}
			if other := w.using[k]; other != nil {
				w.fail("device %v is given to %s and runs %s", k, g.key, other.key)
			}
			w.using[k] = g
		}
	}
}

// seat makes a pod run and stores its annotations.
func (w *world) seat(p *wpod, at *Placement, slot int) {
	p.running = true
	p.gang.running++
	kept, i, err := w.persist(p.request, at, slot, false)
	if err != nil {
		w.fail("annotations of %s can't be read: %v", p.id, err)
	}
	p.at, p.slot = kept, i
}

// lose applies the scheduler's reports about guarantees to the gangs.
func (w *world) lose(lost []Downgrade) {
	for _, d := range lost {
		g := w.byName[gangKey{d.VC, d.Gang}]
		if g == nil || g.running == 0 {
			w.fail("a gang that doesn't run is reported as changed: %s/%s", d.VC, d.Gang)
		}
		g.guaranteed = d.Restored
		for _, id := range d.Pods {
			p := w.podByID(id)
			if p == nil || p.gang != g || !p.running {
				w.fail("a report on %s names pod %s, which doesn't run in it", g.key, id)
			}
			kept, i, err := w.persist(p.request, d.Placement, p.slot, true)
			if err != nil {
				w.fail("annotations of %s can't be read after a change: %v", id, err)
			}
			p.at, p.slot = kept, i
		}
	}
}

// wholeGang schedules and allocates the pods of a gang until a pod isn't bound. If it adds a gang and removes it at once, the
// state must not change.
func (w *world) wholeGang(c *choices, g *wgang) {
	undo := !w.fast && g.running == 0 && c.in(20)
	for _, p := range g.pods {
		if p.running {
			continue
		}
		if d := w.ask(c, p, Filtering); d.Result != Bind {
			if g.running == 0 && (d.Result == Refuse || c.in(60)) {
				w.endGang(c, g) // the gang's user gives up
			}
			return
		}
		pl := p.bind.Placement.plan
		if undo && pl != nil && len(pl.cancels)+len(pl.demoted) == 0 {
			w.addAndRemove(p)
		}
		undo = false
		if !w.accept(p) {
			w.fail("Allocate refuses what Schedule said just now")
		}
	}
}

func (w *world) addAndRemove(p *wpod) {
	before, text := w.s.digest(true), w.dumpText()
	d := *p.bind
	if !w.accept(p) {
		w.fail("Allocate refuses what Schedule said just now")
	}
	w.end(p)
	if w.s.digest(true) != before {
		w.fail("delete doesn't undo add of %s\n%s\nto\n%s", p.id, text, w.dumpText())
	}
	again := w.askOn(p, Filtering, nil)
	if !p.request.OnlySuggested && (again.Result != Bind || again.Node != d.Node || !slices.Equal(again.Indices, d.Indices)) {
		w.fail("pod %s gets %s %v after it was added and removed, and %s %v before", p.id, again.Node, again.Indices, d.Node, d.Indices)
	}
	p.bind = &again
	if again.Result != Bind {
		p.bind = &d
	}
}

func (w *world) end(p *wpod) {
	lost, known := w.s.DeleteAllocated(p.id)
	w.note("delete allocated %s: %v %v", p.id, known, lost)
	if known != p.running {
		w.fail("pod %s runs: %v, and the scheduler says %v", p.id, p.running, known)
	}
	if known {
		w.unseat(p)
	}
	w.lose(lost)
}

func (w *world) unseat(p *wpod) {
	p.running, p.at = false, nil
	g := p.gang
	if g.running--; g.running > 0 {
		return
	}
	for i := range g.place {
		for _, d := range g.place[i].Indices {
			delete(w.using, gpu{g.place[i].Node, d})
		}
	}
	g.place, g.guaranteed, g.moved = nil, false, false
}

func (w *world) endGang(c *choices, g *wgang) {
	start := c.n(len(g.pods))
	for i := range g.pods {
		p := g.pods[(start+i)%len(g.pods)]
		if p.running {
			w.end(p)
		} else {
			w.stopWaiting(p)
		}
	}
	w.forget(g)
}

func (w *world) stopWaiting(p *wpod) {
	if p.running {
		return
	}
	lost := w.s.DeleteUnallocated(p.id, p.request)
	w.note("delete unallocated %s: %v", p.id, lost)
	w.lose(lost)
	p.bind = nil
}

// chase schedules a gang until it runs. It repeatedly requests a decision and ends some or all victims.
func (w *world) chase(c *choices, g *wgang) {
	var p *wpod
	for _, q := range g.pods {
		if !q.running {
			p = q
			break
		}
	}
	if p == nil {
		return
	}
	phase := pick(c, Preempting, Preempting, Filtering)
	nodes := w.someNodes(c, p.request)
	d := w.askOn(p, phase, nodes)
	if d.Result != Preempt {
		if d.Result == Bind {
			w.accept(p)
		}
		return
	}
	all := c.in(70)
	victims := slices.Clone(d.Victims)
	for len(victims) > 0 {
		i := c.n(len(victims))
		if all || c.in(50) {
			w.end(w.podByID(victims[i].Pod))
		}
		victims = slices.Delete(victims, i, i+1)
	}
	if !all {
		return
	}
	if phase == Filtering {
		return // without a reservation, the next search may find other nodes
	}
	if d = w.askOn(p, Filtering, nodes); d.Result != Bind {
		w.fail("all victims of %s are gone, and it gets: %s %s", p.id, d.Result, d.Reason)
	}
	w.accept(p)
}

func (w *world) nodeHealth(c *choices) {
	n := pick(c, w.hw.nodes...)
	ok := !w.nodeOK[n] || c.in(30)
	w.note("node %s healthy %v", n, ok)
	w.s.SetNode(n, ok)
	w.nodeOK[n] = ok
}

func (w *world) deviceHealth(c *choices) {
	n := pick(c, w.hw.nodes...)
	d := w.s.Devices(n)
	if len(d) == 0 {
		w.fail("node %s has no devices", n)
	}
	k := gpu{n, pick(c, d...)}
	ok := w.broken[k] || c.in(30)
	w.note("device %v healthy %v", k, ok)
	w.s.SetDevice(k.node, k.index, ok)
	if ok {
		delete(w.broken, k)
	} else {
		w.broken[k] = true
	}
}

// nonsense makes calls with wrong arguments, which must not change the state.
func (w *world) nonsense(c *choices) {
	before, text := w.s.digest(true), w.dumpText()
	p := w.anyPod(c, c.in(50))
	kind := c.n(12)
	w.note("nonsense %d with %s", kind, p.id)
	switch kind {
	case 0:
		if _, known := w.s.DeleteAllocated("nobody"); known {
			w.fail("an unknown pod is known")
		}
	case 1:
		w.s.DeleteUnallocated("nobody", p.request)
	case 2:
		if p.running {
			w.s.DeleteUnallocated(p.id, p.request)
		}
	case 3:
		if !p.running {
			w.s.DeleteAllocated(p.id)
		}
	case 4:
		w.s.SetNode("nowhere", c.in(50))
		w.s.SetDevice("nowhere", 3, c.in(50))
		w.s.SetDevice(w.hw.nodes[0], 9999, true)
	case 5:
		if _, err := w.s.Allocate("nobody", p.request, nil, 0); err == nil {
			w.fail("a pod without a place is allocated")
		}
	case 6:
		if p.running {
			if _, err := w.s.Allocate("nobody", p.request, p.at, pick(c, -1, 1<<20)); err == nil {
				w.fail("a pod with a slot that isn't there is allocated")
			}
			if _, err := w.s.Allocate("nobody", p.request, p.at, p.slot); err == nil {
				w.fail("two pods have one slot")
			}
			if _, err := w.s.Allocate(p.id, p.request, p.at, p.slot); err != nil {
				w.fail("an allocated pod that comes again is an error: %v", err)
			}
		}
	case 7:
		if p.running {
			other := *p.request
			other.Gang = "thief"
			if _, err := w.s.Allocate("thief", &other, p.at, p.slot); !errors.Is(err, ErrConflict) && w.conflicts(p) {
				w.fail("a gang gets devices of another: %v", err)
			}
			w.s.DeleteAllocated("thief")
		}
	case 8:
		w.s.Why(w.anyRequest(c, "why"))
		w.s.Why(p.request)
	case 9:
		w.s.Stats()
		w.s.Gangs()
		w.s.Physical()
		w.s.Virtual()
		w.s.Gang("nobody", "nothing")
		w.s.Devices("nowhere")
	case 10:
		r := *p.request
		r.Set = pick(c, -1, 99)
		w.s.Schedule("odd", &r, Filtering, nil)
	case 11:
		w.s.Schedule("odd", nil, Filtering, nil)
		w.s.Why(nil)
	}
	if w.s.digest(true) != before {
		w.fail("nonsense %d changed the state\n%s\nto\n%s", kind, text, w.dumpText())
	}
}

// conflicts reports whether the configuration contains devices of a pod's own place. It ignores the places of the gang's other
// pods.
func (w *world) conflicts(p *wpod) bool {
	at := &p.at.Pods[p.slot]
	return slices.ContainsFunc(at.Indices, func(d int32) bool { return w.hw.leaf[gpu{at.Node, d}] != nil })
}

func virtualOf(d *Decision) []string {
	if d.Placement == nil {
		return nil
	}
	return d.Placement.Pods[d.Slot].Virtual
}
