package audit

import (
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/httpserver/clientaddr"
)

const (
	// gateBurst is how many refusals of one sender are written without delay. After that, at most one refusal a second is written.
	gateBurst = 20
	// maxGates is the maximum number of senders that are counted separately. A sender is an actor, or the network of clients that aren't signed
	// in. All other senders are counted together.
	maxGates = 10_000
)

// leftOut is the key in a record's Detail for the number of earlier refusals of the same actor or network that weren't written.
const leftOut = "left-out"

// gate limits the number of refusals that are written for each sender, so that frequent requests don't fill the audit.
type gate struct {
	mu   sync.Mutex
	from map[string]*knocks
	left int // total number of records that weren't written
}

type knocks struct {
	free float64
	as   time.Time
	left int
}

// limited reports whether the gate limits a record. The gate limits refusals and failures, because anyone can cause them in large numbers. It
// never limits records of changes that were made, nor records of the server's own errors for users who are signed in, because the change may have
// been made in part.
func limited(r *Record) bool {
	return (r.Outcome == Refused || r.Outcome == Failed) && (r.Actor == "" || r.Status < 500)
}

// pass reports whether to write a record. pass adds to the record's Detail how many earlier records of the same sender were left out.
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
		key = "network " + clientaddr.NetworkOf(r.Address)
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
