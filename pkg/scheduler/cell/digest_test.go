package cell

import (
	"fmt"
	"slices"
	"strings"
)

// digest returns a number that is equal for equal states. It covers gangs, leaves, bindings and health. It omits details that a
// restart may drop: the last order, the record of preemptions, and former guarantees.
func (s *Scheduler) digest(ages bool) uint64 {
	s.settle()
	sum := uint64(len(s.gangs))
	for _, g := range s.gangs {
		sum += g.digest(ages)
	}
	h := hash64(sum)
	for _, ch := range s.chains {
		for l, cells := range ch.cells {
			for _, p := range cells {
				if p.bound != nil {
					h.text(p.bound.address)
					if p.bound.doomed {
						h.number(7)
					}
				}
				h.number(uint64(p.badCount))
				if l == 0 {
					h.gang(p.using)
					h.gang(p.reserving)
				}
			}
		}
	}
	for _, v := range s.vcs {
		for _, sp := range v.spaces {
			for _, leaf := range sp.leaves {
				h.gang(leaf.owner)
			}
		}
	}
	return uint64(h)
}

func (g *gang) digest(ages bool) uint64 {
	h := hash64(1)
	h.gang(g)
	h.number(uint64(g.priority))
	if ages {
		h.number(g.order)
	}
	if g.opportunistic() {
		h.number(3)
	}
	if g.preempting {
		h.number(5)
	}
	h.number(uint64(g.running))
	h.number(uint64(g.taken))
	for i := range g.slots {
		sl := &g.slots[i]
		h.text(string(sl.pod))
		h.text(sl.at.Node)
		for k, d := range sl.at.Indices {
			h.number(uint64(d))
			if v := sl.leaf(k); v != nil {
				h.text(v.address)
			}
		}
	}
	for _, p := range g.waiting {
		h.text(string(p))
	}
	return uint64(h)
}

// String returns a text without pointers, so that traces can be compared.
func (d Downgrade) String() string {
	return fmt.Sprintf("%s/%s %v %v restored %v: %s", d.VC, d.Gang, d.Pods, d.Placement.Pods, d.Restored, d.Reason)
}

type hash64 uint64

func (h *hash64) number(n uint64) { *h = (*h ^ hash64(n)) * 0x100000001B3 }
func (h *hash64) text(s string) {
	for i := range len(s) {
		*h = (*h ^ hash64(s[i])) * 0x100000001B3
	}
	h.number(255)
}

func (h *hash64) gang(g *gang) {
	if g == nil {
		h.number(0)
		return
	}
	h.text(g.key.vc)
	h.text(g.key.name)
}

func (s *Scheduler) dump() string {
	s.settle()
	var b strings.Builder
	keys := make([]gangKey, 0, len(s.gangs))
	for k := range s.gangs {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b gangKey) int { return compare(a.String(), b.String()) })
	for _, k := range keys {
		g := s.gangs[k]
		fmt.Fprintf(&b, "gang %s priority %d order %d opportunistic %v preempting %v taken %d waiting %v\n", k, g.priority, g.order, g.opportunistic(), g.preempting, g.taken, g.waiting)
		for i := range g.slots {
			sl := &g.slots[i]
			fmt.Fprintf(&b, "  pod %q set %d on %s %v virtual", sl.pod, sl.at.Set, sl.at.Node, sl.at.Indices)
			for k := range sl.at.Indices {
				if v := sl.leaf(k); v != nil {
					b.WriteString(" " + v.address)
				}
			}
			b.WriteString("\n")
		}
	}
	for _, ch := range s.chains {
		for l := ch.top(); l >= 0; l-- {
			for _, p := range ch.cells[l] {
				if p.bound != nil {
					fmt.Fprintf(&b, "%s %s = %s doomed %v\n", ch.names[l], p.address, p.bound.address, p.bound.doomed)
				}
				if l == 0 && (p.using != nil || p.reserving != nil || p.bad) {
					fmt.Fprintf(&b, "%s using %s reserving %s bad %v\n", p.address, p.using.keyText(), p.reserving.keyText(), p.bad)
				}
			}
		}
	}
	return b.String()
}
