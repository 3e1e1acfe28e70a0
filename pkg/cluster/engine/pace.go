package engine

import (
	"time"

	"github.com/openpai/paictl/pkg/cluster/peer"
)

// pace measures how fast a machine receives a file from paictl. A measurement covers a window of patience.Stall.
type pace struct {
	patience    peer.Patience
	began, last time.Time // when the transfer began, and when the machine last received data
	got         int64
	all         bool
	seen        []sample // samples in the window, and one before it
}

// sample is the number of bytes that a machine had received at a point in time.
type sample struct {
	at  time.Time
	got int64
}

func newPace(p peer.Patience, began time.Time) *pace {
	return &pace{patience: p, began: began, last: began, seen: []sample{{began, 0}}}
}

// looks returns the interval between two checks of the pace. recent returns how long the result of a check is valid.
func (p *pace) looks() time.Duration  { return p.patience.Stall / 4 }
func (p *pace) recent() time.Duration { return p.patience.Stall / 2 }

// took records how many bytes of the file a machine has received.
func (p *pace) took(sent, total int64, now time.Time) {
	p.last, p.got, p.all = now, sent, sent >= total
}

// look reports whether the machine receives the file too slowly, and whether it receives the file fast enough. A machine is fast enough only if it
// was fast enough in both halves of the window, because the first bytes may only fill network buffers. Both results are false if it is too early to
// decide.
func (p *pace) look(now time.Time) (slow, fast bool) {
	begin, middle := now.Add(-p.patience.Stall), now.Add(-p.recent())
	for len(p.seen) > 1 && !p.seen[1].at.After(begin) {
		p.seen = p.seen[1:]
	}
	p.seen = append(p.seen, sample{now, p.got})
	half := p.seen[0]
	for _, s := range p.seen {
		if !s.at.After(middle) {
			half = s
		}
	}
	whole := !p.seen[0].at.After(begin)
	fast = whole && p.enough(p.seen[0], half) && p.enough(half, p.seen[len(p.seen)-1])
	still := now.Sub(p.last)
	if p.got == 0 || p.all { // the machine is checking the files that it had, or those that it received
		return still > p.patience.Grace, fast
	}
	return still > p.patience.Stall || p.patience.TooSlow(p.got, now.Sub(p.began)) && !p.enough(p.seen[0], p.seen[len(p.seen)-1]), fast
}

func (p *pace) enough(from, to sample) bool {
	return to.at.After(from.at) && float64(to.got-from.got) >= float64(p.patience.Rate)*to.at.Sub(from.at).Seconds()
}
