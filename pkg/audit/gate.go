package audit

import (
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/origin"
)

const (
	// gateBurst is how many refusals of one are written at once; after that one a second.
	gateBurst = 20
	// maxGates bounds those that are told apart: an actor, or the network of who isn't signed in. What comes beyond that is one.
	maxGates = 10_000
)

// leftOut is the key in the detail of a record that says how many refusals of the same actor or network weren't written before it.
const leftOut = "left-out"

// gate lets refusals through, a few of each who is refused: else whoever knocks often enough fills the audit.
type gate struct {
	mu   sync.Mutex
	from map[string]*knocks
	left int // left out in all
}

type knocks struct {
	free float64
	as   time.Time
	left int
}

// limited reports whether a record is one of those that anyone can cause. What was done is always written, and what failed of those who are
// signed in where the fault is the server's: it may have been done in part.
func limited(r *Record) bool {
	return (r.Outcome == Refused || r.Outcome == Failed) && (r.Actor == "" || r.Status < 500)
}

// pass reports whether a record is to be written. It notes in it how many weren't.
func (g *gate) pass(r *Record) bool {
	if !limited(r) {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.of(r)
	if d := r.Time.Sub(k.as); d > 0 {
		k.free, k.as = min(gateBurst, k.free+d.Seconds()), r.Time
	}
	if k.free < 1 {
		k.left++
		g.left++
		return false
	}
	k.free--
	if k.left > 0 {
		detail := maps.Clone(r.Detail)
		if detail == nil {
			detail = map[string]string{}
		}
		detail[leftOut] = strconv.Itoa(k.left)
		r.Detail, k.left = detail, 0
	}
	return true
}

func (g *gate) of(r *Record) *knocks {
	key := "actor " + r.Actor
	if r.Actor == "" {
		key = "network " + origin.NetworkOf(r.Address)
	}
	if g.from[key] == nil && len(g.from) >= maxGates {
		maps.DeleteFunc(g.from, func(_ string, k *knocks) bool { return k.left == 0 && r.Time.Sub(k.as).Seconds() > gateBurst })
	}
	if g.from[key] == nil && len(g.from) >= maxGates {
		key = ""
	}
	if g.from[key] == nil {
		g.from[key] = &knocks{free: gateBurst, as: r.Time}
	}
	return g.from[key]
}
