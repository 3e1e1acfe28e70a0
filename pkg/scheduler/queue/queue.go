// Package queue determines the order in which waiting gangs start, and holds GPUs for gangs that wait too long.
//
// In: gangs that arrive, start and end, and a function that tries to start a gang. Out: the order, for the scheduler, for
// the simulator and for people. It doesn't know cells or a clock: times are numbers in a unit of the caller.
package queue

import (
	"cmp"
	"slices"
	"time"
)

// Gang holds the properties that determine the order.
type Gang struct {
	VC, Name string
	// Priority is −1 for opportunistic gangs, and 0 or more for guaranteed gangs.
	Priority int
	// Since is when it began to wait, in the caller's unit. A gang that was evicted counts as waiting since it was
	// first submitted.
	Since int64
	// GPUs is its size: GPUs, or CPU cells.
	GPUs int
	// CPU means that they are CPU cells, which Free and EndsBy don't count.
	CPU bool
	// Lasts is how long it runs at most once it has started, in the caller's unit; 0: unknown.
	Lasts int64
	// Class is equal for gangs that are equivalent: if one of them couldn't start a moment before, the others can't
	// either.
	Class any
	// Data belongs to the caller.
	Data any
}

// Reservations specifies how long a gang at the head of its virtual cluster waits until GPUs are held for it. Then other gangs of
// the virtual cluster that it couldn't preempt no longer start, unless they are known to end before it could start. Gangs that more
// GPUs don't help, such as gangs over a quota, don't count as the head. If a value is 0, GPUs are never held.
type Reservations struct{ Guaranteed, Opportunistic int64 }

// ReservationAfter is how long a guaranteed gang waits by default until the scheduler and the simulator hold GPUs for it. An hour made the
// mean completion time of guaranteed jobs 2 to 8 % longer. With six hours, it was up to 16 % longer for some jobs, and unchanged for other
// jobs. A day didn't change it: docs/performance.md. GPUs are not held for opportunistic gangs: even after a day it made their mean
// completion time 6 to 30 % longer on 64 GPUs.
const ReservationAfter = 24 * time.Hour

// After returns the reservations of guaranteed gangs that have waited for some time, in a caller's unit of time.
func After(wait, unit time.Duration) Reservations {
	return Reservations{Guaranteed: int64(wait / unit)}
}

func (r Reservations) after(guaranteed bool) int64 {
	if guaranteed {
		return r.Guaranteed
	}
	return r.Opportunistic
}

// Queue holds the gangs of all virtual clusters. It is not safe for concurrent use. The zero value is empty and reserves
// nothing.
//
// Guaranteed gangs come before opportunistic gangs, so that opportunistic gangs don't start only to be evicted. Within each of the
// two kinds the virtual clusters take turns: the next gang belongs to the virtual cluster that holds the fewest GPUs, including
// the GPUs of its earlier gangs in this order. Within a virtual cluster, gangs are sorted by priority, then age.
type Queue struct {
	Reservations

	rows map[rowKey]*row
	n    int
	now  int64 // of the last pass
}

type rowKey struct {
	vc         string
	guaranteed bool
}

// row holds the waiting and running gangs of one virtual cluster, guaranteed or opportunistic.
type row struct {
	key     rowKey
	waiting []*Gang
	running int // GPUs
	// reserves is the gang that GPUs are held for: the first of waiting that GPUs could help, or nil. It doesn't start
	// before notBefore; 0: it could start at any time.
	reserves  *Gang
	notBefore int64
	// free counts the GPUs of the virtual cluster that no gang has; ends has the gangs that end by a known time.
	free int
	ends []ending
	// unfit is how many gangs of waiting, from the first on, were Unfit in this pass.
	unfit int
}

type ending struct {
	at   int64
	gpus int
}

// Before compares gangs in the order within a virtual cluster.
func Before(a, b *Gang) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Since, b.Since), cmp.Compare(a.Name, b.Name))
}

func (q *Queue) row(g *Gang) *row {
	key := rowKey{g.VC, g.Priority >= 0}
	r := q.rows[key]
	if r == nil {
		if q.rows == nil {
			q.rows = map[rowKey]*row{}
		}
		r = &row{key: key}
		q.rows[key] = r
	}
	return r
}

// Len returns how many gangs wait.
func (q *Queue) Len() int { return q.n }

// Add adds a waiting gang. A gang that already waits, by virtual cluster and name, must not be added again. Adding many is fastest
// in the order of Before.
func (q *Queue) Add(g *Gang) {
	r := q.row(g)
	i, _ := slices.BinarySearchFunc(r.waiting, g, Before)
	r.waiting = slices.Insert(r.waiting, i, g)
	q.n++
}

// Remove removes a gang that no longer waits, and reports whether it waited.
func (q *Queue) Remove(g *Gang) bool {
	r := q.row(g)
	i, ok := slices.BinarySearchFunc(r.waiting, g, Before)
	if !ok {
		return false
	}
	r.waiting = slices.Delete(r.waiting, i, i+1)
	q.n--
	if r.reserves == g {
		r.reserves = nil
	}
	return true
}

// Started counts a gang's GPUs as held by its virtual cluster; Ended undoes that.
func (q *Queue) Started(g *Gang) { q.row(g).running += g.GPUs }

// Ended removes a gang that Started counted.
func (q *Queue) Ended(g *Gang) { q.row(g).running -= g.GPUs }

// Free sets the number of GPUs of a virtual cluster that no started gang has.
func (q *Queue) Free(vc string, gpus int) { q.row(&Gang{VC: vc}).free = gpus }

// EndsBy sets the latest end of a started gang.
func (q *Queue) EndsBy(g *Gang, at int64) {
	r := q.row(g)
	r.ends = append(r.ends, ending{at, g.GPUs})
}

// Reservation returns the gang whose reservation keeps another one from starting now; nil if no reservation does.
func (q *Queue) Reservation(g *Gang) *Gang {
	r := q.row(g)
	h := r.reserves
	switch {
	case h == nil || h == g || h.Priority > g.Priority || Before(h, g) >= 0:
		return nil
	case g.Lasts > 0 && q.now+g.Lasts <= r.notBefore:
		return nil // it has ended by then
	}
	return h
}

// Reserving returns the gangs that GPUs are held for since the last pass.
func (q *Queue) Reserving() []*Gang {
	var out []*Gang
	for _, r := range q.rows {
		if r.reserves != nil {
			out = append(out, r.reserves)
		}
	}
	return out
}

// earliest returns when enough GPUs are free for a gang if all gangs run for as long as they may, or 0 if that isn't known. It is
// never later than the actual start: a gang may need more than enough GPUs, and others may run longer than expected.
func (r *row) earliest(g *Gang) int64 {
	free := r.free
	if g.CPU || free >= g.GPUs {
		return 0 // it waits for GPUs in other places, or doesn't need GPUs
	}
	slices.SortFunc(r.ends, func(a, b ending) int { return cmp.Compare(a.at, b.at) })
	for _, e := range r.ends {
		if free += e.gpus; free >= g.GPUs {
			return e.at
		}
	}
	return 0
}

// Order returns the gangs in their planned order of starts.
func (q *Queue) Order() []*Gang {
	out := make([]*Gang, 0, q.n)
	for _, guaranteed := range []bool{true, false} {
		var t turns
		for _, r := range q.rows {
			if r.key.guaranteed == guaranteed && len(r.waiting) > 0 {
				t.rows = append(t.rows, turn{r, r.running, r.waiting})
			}
		}
		for g := t.next(); g != nil; g = t.next() {
			out = append(out, g)
		}
	}
	return out
}

// turns chooses the next virtual cluster.
type turns struct{ rows []turn }

type turn struct {
	row  *row
	gpus int // that it would hold if all earlier gangs had started
	left []*Gang
}

func (t *turns) next() *Gang {
	best := -1
	for i := range t.rows {
		if len(t.rows[i].left) > 0 && (best < 0 || t.less(i, best)) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	r := &t.rows[best]
	g := r.left[0]
	r.left = r.left[1:]
	r.gpus += g.GPUs
	return g
}

func (t *turns) less(i, k int) bool {
	a, b := &t.rows[i], &t.rows[k]
	return cmp.Or(cmp.Compare(a.gpus, b.gpus), cmp.Compare(a.left[0].Since, b.left[0].Since), cmp.Compare(a.row.key.vc, b.row.key.vc)) < 0
}

// Attempt is the result of an attempt to start a gang.
type Attempt int

// Results of an attempt.
const (
	// Starts means that the gang no longer waits.
	Starts Attempt = iota
	// Waits: the cells that it needs are in use.
	Waits
	// Unfit: it waits for something other than free GPUs, such as a quota or the repair of a machine; or it can never
	// start.
	Unfit
	// Later: it wasn't tried, because its virtual cluster has had its turn in this pass.
	Later
)

// Pass tries all waiting gangs, each once and in order, after something has changed. If a gang couldn't start, Pass skips equivalent gangs,
// and also gangs that a reservation keeps from starting. If passed isn't nil, Pass calls it with each skipped gang and with the gang that
// the skipped gang waits for. try calls Remove and Started if a gang starts, and may add other gangs. An error ends the pass.
func (q *Queue) Pass(now int64, try func(*Gang) (Attempt, error), passed func(g, cause *Gang)) error {
	q.now = now
	for _, r := range q.rows {
		r.unfit = 0
	}
	type failure struct {
		gang    *Gang
		attempt Attempt
	}
	failed := map[any]failure{}
	for _, g := range q.Order() {
		like := failed[g.Class]
		cause := like.gang
		switch {
		case cause == nil:
			cause = q.Reservation(g)
		case like.attempt == Unfit:
			q.reserve(g, Unfit, now) // like equivalent gangs, it isn't the head
		}
		if cause != nil {
			if passed != nil {
				passed(g, cause)
			}
			continue
		}
		a, err := try(g)
		if err != nil {
			return err
		}
		if a == Starts || a == Later {
			continue
		}
		failed[g.Class] = failure{g, a}
		q.reserve(g, a, now)
	}
	return nil
}

// reserve holds GPUs for a gang that has waited long enough, or releases them if holding them doesn't help.
func (q *Queue) reserve(g *Gang, a Attempt, now int64) {
	r := q.row(g)
	if len(r.waiting) <= r.unfit || r.waiting[r.unfit] != g {
		return
	}
	r.reserves = nil
	if a == Unfit {
		r.unfit++
	} else if after := q.after(r.key.guaranteed); after > 0 && now-g.Since >= after {
		r.reserves, r.notBefore = g, r.earliest(g)
	}
}
