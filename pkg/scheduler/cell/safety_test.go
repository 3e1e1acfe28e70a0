package cell

import (
	"fmt"
	"slices"
	"testing"
)

// The following functions check sharing safety by state. Each gang that a virtual cluster could start alone on the hardware
// must also start in the shared cluster.

// copyOf returns a scheduler with healthy hardware and the selected running gangs in their current places.
func (w *world) copyOf(include func(*gang) bool) *Scheduler {
	n, err := New(w.conf)
	if err != nil {
		w.fail("New: %v", err)
	}
	for _, name := range n.Nodes() {
		n.SetNode(name, true)
	}
	var gangs []*gang
	for _, g := range w.s.gangs {
		if !g.preempting && w.complete(g) && include(g) {
			gangs = append(gangs, g)
		}
	}
	slices.SortFunc(gangs, cmpOrder)
	for _, g := range gangs {
		at := g.placement.clone()
		for i := range g.slots {
			if g.slots[i].pod == "" {
				continue
			}
			lost, err := n.Allocate(g.slots[i].pod, g.request, at, i)
			if err != nil || len(lost) > 0 {
				w.fail("gang %s can't be copied: %v %v", g.key, err, lost)
			}
		}
	}
	return n
}

// complete reports whether the configuration contains all devices of a gang.
func (w *world) complete(g *gang) bool {
	for i := range g.slots {
		if slices.Contains(g.slots[i].leaves, nil) {
			return false
		}
	}
	return true
}

// sharedAsAlone requests places for random gangs of each virtual cluster, in the virtual cluster alone and in the whole
// cluster.
func (w *world) sharedAsAlone() {
	for i, v := range w.conf.VirtualClusters {
		if len(v.Cells)+len(v.Pinned) == 0 {
			continue
		}
		alone := w.copyOf(func(g *gang) bool { return g.space != nil && g.key.vc == v.Name })
		c := newChoices([]byte{byte(i), byte(w.step), byte(w.step >> 8), byte(len(w.gangs))})
		for range 24 {
			r := w.anyRequest(c, "probe")
			if r.VirtualCluster != v.Name || r.Priority < MinGuaranteed {
				continue
			}
			r.OnlySuggested = false
			d := alone.Schedule("probe", r, Filtering, nil)
			w.tally["alone "+string(d.Result)]++
			if d.Result == Bind || d.Result == Preempt {
				w.startsIn(w.copyOf(func(*gang) bool { return true }), r, d)
			}
		}
	}
}

// startsIn ends the scheduler's victims until the gang starts.
func (w *world) startsIn(s *Scheduler, r *Request, alone Decision) {
	for range len(s.gangs) + 1 {
		d := s.Schedule("probe", r, Preempting, nil)
		switch d.Result {
		case Bind:
			if err := s.Check(); err != nil {
				w.fail("Check: %v", err)
			}
			return
		case Preempt:
			for _, v := range d.Victims {
				s.DeleteAllocated(v.Pod)
			}
		default:
			w.fail("%v gets %s in its virtual cluster alone, and %s in the shared cluster: %s", r, alone.Result, d.Result, d.Reason)
		}
	}
	w.fail("%v gets %s in its virtual cluster alone, and doesn't start in the shared cluster whoever has gone", r, alone.Result)
}

func TestASharedClusterStartsWhatAVirtualClusterAloneStarts(t *testing.T) {
	walks := envNumber("PAICTL_CELL_SAFETY", 60)
	from := envNumber("PAICTL_CELL_SEED", 1)
	tally := map[string]int{}
	for seed := from; seed < from+walks; seed++ {
		data := randomWalk(uint64(seed), 100)
		set := func(w *world) { w.every, w.safety = 64, 12 }
		w, err := play(data, nil, set)
		if err != nil {
			report(t, data, set)
			t.Fatalf("seed %d: %s", seed, kind(err))
		}
		for k, n := range w.tally {
			tally[k] += n
		}
	}
	t.Log(fmt.Sprint(tally))
}
