package cell

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// These tests check sharing safety by history. The guaranteed gangs of a virtual cluster start and end in two schedulers: alone
// on the hardware, and in the shared cluster among the gangs of other virtual clusters. Each gang that is placed alone must
// also be placed in the shared cluster.

type history struct {
	*world
	alone *Scheduler
	vc    string
	mine  []*past // gangs that run alone
	other []*past // gangs that run in the shared cluster
	trace *strings.Builder
	n     int
}

type past struct {
	request *Request
	pods    []PodID
}

func (h *history) note(format string, args ...any) {
	if h.trace != nil {
		fmt.Fprintf(h.trace, format+"\n", args...)
	}
}

// playHistory returns the first violation, and the number of compared gangs.
func playHistory(data []byte, trace *strings.Builder) (placed int, err error) {
	defer catch(&err)
	if len(data) < headerBytes {
		return 0, nil
	}
	c := newChoices(data[:headerBytes])
	conf := makeCluster(c)
	v := &conf.VirtualClusters[c.n(len(conf.VirtualClusters))]
	oneChain(v)
	h := &history{trace: trace, vc: v.Name, world: &world{conf: conf, hw: newHardware(conf)}}
	h.note("types %+v\nphysical %+v\nvirtual clusters %+v", conf.Types, conf.Physical, conf.VirtualClusters)
	none := func(*gang) bool { return false }
	h.s = &Scheduler{}
	h.s, h.alone = h.copyOf(none), h.copyOf(none)
	for at := headerBytes; at+recordBytes <= len(data); at += recordBytes {
		h.event(newChoices(data[at : at+recordBytes]))
		if err := h.s.Check(); err != nil {
			h.fail("Check: %v", err)
		}
	}
	return h.n, nil
}

// oneChain leaves a virtual cluster only the cells of one chain. With several chains, the chosen chain would depend on the
// gangs to preempt.
func oneChain(v *VirtualCluster) {
	var cells []Virtual
	for _, cell := range v.Cells {
		chain, _, _ := strings.Cut(cell.Type, ".")
		if first, _, _ := strings.Cut(v.Cells[0].Type, "."); chain == first {
			cells = append(cells, cell)
		}
	}
	v.Cells = cells
}

// racked reports whether the virtual cluster owns cells above the node level.
func racked(data []byte) bool {
	c := newChoices(data[:headerBytes])
	conf := makeCluster(c)
	v := &conf.VirtualClusters[c.n(len(conf.VirtualClusters))]
	oneChain(v)
	for _, r := range newHardware(conf).roots {
		if r.vc == v.Name && r.level > r.chain.node {
			return true
		}
	}
	return false
}

func (h *history) event(c *choices) {
	switch n := c.n(16); {
	case n < 5:
		h.arrive(h.v1(c, h.vc, 0))
	case n < 8:
		if len(h.mine) > 0 {
			i := c.n(len(h.mine))
			h.end(h.alone, h.mine[i])
			h.end(h.s, h.mine[i])
			h.mine = slices.Delete(h.mine, i, i+1)
		}
	case n < 13:
		v := pick(c, h.conf.VirtualClusters...)
		priority := pick(c, Opportunistic, 0, 3, Opportunistic)
		if v.Name == h.vc {
			priority = Opportunistic
		}
		r := h.v1(c, v.Name, priority)
		if g, _ := h.start(h.s, r); g != nil {
			h.other = append(h.other, g)
		}
	default:
		if len(h.other) > 0 {
			i := c.n(len(h.other))
			h.end(h.s, h.other[i])
			h.other = slices.Delete(h.other, i, i+1)
		}
	}
}

// v1 returns a request for a gang with a few sets of equal pods.
func (h *history) v1(c *choices, vc string, priority int) *Request {
	h.made++
	r := &Request{VirtualCluster: vc, Gang: fmt.Sprintf("g%d", h.made), Priority: priority}
	for i := range h.conf.VirtualClusters {
		if v := &h.conf.VirtualClusters[i]; v.Name == vc {
			if len(v.Pinned) > 0 && priority >= 0 && c.in(30) {
				r.PinnedCell = pick(c, v.Pinned...)
			}
			ch := h.chainFor(c, v, r)
			for range 1 + pick(c, 0, 0, 0, 1) {
				r.Root.Pods = append(r.Root.Pods, PodSet{Count: 1 + pick(c, 0, 0, 1, 0, 1, 2, 3), Cells: anySize(c, ch)})
			}
		}
	}
	return r
}

// start schedules a gang, ends its victims at once, and makes the gang run.
func (h *history) start(s *Scheduler, r *Request) (*past, Decision) {
	g := &past{request: r}
	var d Decision
	for i, set := range r.Sets() {
		for range set.Count {
			own := *r
			own.Set = i
			id := PodID(fmt.Sprintf("%s-%d", r.Gang, len(g.pods)))
			for d = s.Schedule(id, &own, Preempting, nil); d.Result == Preempt; d = s.Schedule(id, &own, Preempting, nil) {
				h.note("%s preempts %v", r.Gang, d.Victims)
				for _, v := range d.Victims {
					if r.VirtualCluster == h.vc && v.VC == h.vc && slices.ContainsFunc(h.mine, func(p *past) bool { return p.request.Gang == v.Gang }) {
						h.fail("%s preempts its equal %s", r.Gang, v.Gang)
					}
					s.DeleteAllocated(v.Pod)
					h.other = slices.DeleteFunc(h.other, func(p *past) bool { return p.request.Gang == v.Gang })
				}
			}
			if d.Result != Bind {
				if len(g.pods) > 0 {
					h.fail("a part of %s starts", r.Gang)
				}
				return nil, d
			}
			if _, err := s.Allocate(id, &own, d.Placement, d.Slot); err != nil {
				h.fail("Allocate: %v", err)
			}
			h.note("%s on %s %v %v", id, d.Node, d.Indices, virtualOf(&d))
			g.pods = append(g.pods, id)
		}
	}
	return g, d
}

func (h *history) arrive(r *Request) {
	h.note("alone: %v", r)
	g, _ := h.start(h.alone, r)
	if g == nil {
		return
	}
	h.note("shared:")
	if in, d := h.start(h.s, r); in == nil {
		h.fail("gang %v starts in its virtual cluster alone and gets %s in the shared cluster: %s", r, d.Result, d.Reason)
	}
	h.n++
	h.mine = append(h.mine, g)
}

func (h *history) end(s *Scheduler, g *past) {
	h.note("end %s", g.request.Gang)
	for _, p := range g.pods {
		s.DeleteAllocated(p)
	}
}

func TestAHistoryOfGangsGoesOnInASharedClusterAsAlone(t *testing.T) {
	walks := envNumber("PAICTL_CELL_HISTORIES", 200)
	from := envNumber("PAICTL_CELL_SEED", 1)
	placed, bad := 0, 0
	for seed := from; seed < from+walks; seed++ {
		data := randomWalk(uint64(seed), 60+seed%5*60)
		n, err := playHistory(data, nil)
		placed += n
		if err == nil {
			continue
		}
		bad++
		if racked(data) && bad*100 <= walks {
			continue // the rack from which an idle node is taken depends on the gangs that would be preempted
		}
		if !t.Failed() {
			data = shrink(data, func(d []byte) error { _, err := playHistory(d, nil); return err })
			var trace strings.Builder
			_, err := playHistory(data, &trace)
			t.Errorf("seed %d, shrunk to %d steps: %v\n%s", seed, (len(data)-headerBytes)/recordBytes, err, trace.String())
		}
	}
	t.Logf("%d gangs placed alone and shared; %d of %d histories fail", placed, bad, walks)
}
