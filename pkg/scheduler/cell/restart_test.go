package cell

import "slices"

// restart replaces the scheduler with a new scheduler that is built from the annotations of running pods.
func (w *world) restart(c *choices) {
	for _, g := range w.gangs {
		for _, p := range g.pods {
			p.bind = nil
			if !p.running {
				w.lose(w.s.DeleteUnallocated(p.id, p.request))
			}
		}
	}
	w.settleWaiting()
	before, text := w.s.digest(true), w.dumpText()
	moved := w.anyMoved()
	hived := c.in(25) && !moved
	partial := !hived && c.in(20) // the annotations of each pod contain only its own place
	n, err := New(w.conf)
	if err != nil {
		w.fail("New after restart: %v", err)
	}
	for _, name := range n.Nodes() {
		n.SetNode(name, w.nodeOK[name])
	}
	for k := range w.broken {
		n.SetDevice(k.node, k.index, false)
	}
	pods := w.runningPods()
	for i := len(pods) - 1; i > 0; i-- {
		k := c.n(i + 1)
		pods[i], pods[k] = pods[k], pods[i]
	}
	w.note("restart, HiveD's annotations %v, pods %v", hived, len(pods))
	old := w.s
	w.s = n
	for _, p := range pods {
		at := p.at
		if partial {
			at = ownPlace(at, p.slot)
			p.at = at
		}
		if hived {
			at = at.clone()
			at.Order, at.Downgraded = 0, false
			for i := range at.Pods {
				at.Pods[i].Virtual, at.Pods[i].Set = nil, -1
			}
			p.at = at
			w.inexact = true
		}
		lost, err := n.Allocate(p.id, p.request, at, p.slot)
		if err != nil {
			w.fail("restart: pod %s can't go on: %v", p.id, err)
		}
		for _, d := range lost {
			g := w.byName[gangKey{d.VC, d.Gang}]
			if g == nil {
				w.fail("restart reports a gang that isn't there")
			}
			if g.guaranteed {
				w.fail("restart (HiveD's annotations %v) takes the guarantee of %s: %s\n%s", hived, g.key, d.Reason, text)
			}
		}
	}
	n.order = max(n.order, old.order)
	n.settle()
	if w.believe(partial || w.inexact || moved) || w.inexact {
		if len(pods) == 0 {
			w.inexact = false
		}
		return
	}
	if n.digest(true) != before {
		w.fail("a restart changed the state\n%s\nto\n%s", text, w.dumpText())
	}
	w.twins(c, old, n)
}

// twins sends the same requests to both schedulers. The restarted scheduler must make the same decisions.
func (w *world) twins(c *choices, a, b *Scheduler) {
	for _, ch := range a.chains {
		if slices.Max(ch.pressure) > 0 {
			return
		}
	}
	r := w.anyRequest(c, "twin")
	x, y := a.Schedule("twin", r, Filtering, nil), b.Schedule("twin", r, Filtering, nil)
	if x.Result != y.Result || x.Node != y.Node || !slices.Equal(x.Indices, y.Indices) || !slices.Equal(x.Victims, y.Victims) {
		w.fail("after a restart %v gets %s %s %v %v, before %s %s %v %v", r, y.Result, y.Node, y.Indices, y.Victims, x.Result, x.Node, x.Indices, x.Victims)
	}
}

// settleWaiting checks that no reservations remain when no pod waits.
func (w *world) settleWaiting() {
	for key, g := range w.s.gangs {
		if g.preempting {
			w.fail("gang %s holds reservations and all its pods are deleted: %v", key, g.waiting)
		}
	}
}

func (w *world) runningPods() []*wpod {
	var out []*wpod
	for _, g := range w.gangs {
		for _, p := range g.pods {
			if p.running {
				out = append(out, p)
			}
		}
	}
	return out
}

// reconfigure changes the configuration while gangs run, or only tests the change.
func (w *world) reconfigure(c *choices) {
	conf := changedConfig(c, w.conf)
	same := c.in(20)
	if same {
		conf = w.conf
	}
	before, text := w.s.digest(true), w.dumpText()
	n, changes, err := w.s.Reconfigure(conf)
	w.note("reconfigure to %+v: %v %v", conf, err, changes)
	if w.s.digest(true) != before {
		w.fail("Reconfigure changed the scheduler that it was called on\n%s\nto\n%s", text, w.dumpText())
	}
	if err != nil {
		if len(conf.Validate()) == 0 {
			w.fail("a valid configuration is refused: %v", err)
		}
		return
	}
	if len(conf.Validate()) > 0 {
		w.fail("an invalid configuration is accepted")
	}
	if c.in(20) {
		return // a dry run
	}
	w.s = n
	for _, p := range w.allPods() {
		p.bind = nil
	}
	w.adopt(conf)
	w.forgetHardware()
	for _, g := range w.gangs {
		g.refused = false
		g.moved = g.running > 0 && !same
	}
	if !same {
		w.inexact = true
	}
	n.settle()
	w.believe(false)
	w.lose(changes)
}

func (w *world) allPods() []*wpod {
	var out []*wpod
	for _, g := range w.gangs {
		out = append(out, g.pods...)
	}
	return out
}

func (w *world) forgetHardware() {
	there := map[string]bool{}
	for _, n := range w.hw.nodes {
		there[n] = true
	}
	for n := range w.nodeOK {
		if !there[n] {
			delete(w.nodeOK, n)
		}
	}
	for k := range w.broken {
		if !there[k.node] {
			delete(w.broken, k)
		}
	}
}
