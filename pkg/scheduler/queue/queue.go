// Package queue determines the order in which waiting gangs start, and holds GPUs for gangs that wait too long.
//
// In: gangs that arrive, start and end, and a function that tries to start a gang. Out: the order, for the scheduler, for the
// simulator and for users. The package doesn't use cells or a clock. Times are numbers in a unit that the caller chooses.
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
	// Since is when the gang began to wait, in the caller's unit. For an evicted gang, it is the time of its first submission.
	Since int64
	// GPUs is the size of the gang in GPUs or CPU cells.
	GPUs int
	// CPU means that GPUs counts CPU cells. Free and EndsBy ignore such gangs.
	CPU bool
	// Lasts is the maximum run time of the gang, in the caller's unit. 0 means unknown.
	Lasts int64
	// Class is equal for equivalent gangs. If one of them can't start, the others can't start either.
	Class any
	// Data is for the caller. The queue doesn't use it.
	Data any
}

// Reservations specifies how long the first gang of a virtual cluster waits until GPUs are held for it. While GPUs are held,
// other gangs of the virtual cluster don't start. Exceptions are gangs that the first gang could preempt, and gangs that end
// before the first gang could start. A gang that more free GPUs wouldn't help, such as a gang over a quota, doesn't count as
// the first gang. 0 means that GPUs are never held.
type Reservations struct{ Guaranteed, Opportunistic int64 }

// ReservationAfter is the default time after which the scheduler and the simulator hold GPUs for a guaranteed gang. An hour
// made the mean completion time of guaranteed jobs 2 to 8 % longer. With six hours, the mean was up to 16 % longer with some
// settings, and unchanged with others. A day didn't change the mean. See docs/performance.md. GPUs are not held for
// opportunistic gangs. Even after a day, this made their mean completion time 6 to 30 % longer on 64 GPUs.
const ReservationAfter = 24 * time.Hour

// After returns Reservations that hold GPUs for guaranteed gangs after a wait. unit is the caller's unit of time.
func After(wait, unit time.Duration) Reservations {
	return Reservations{Guaranteed: int64(wait / unit)}
}

func (r Reservations) after(guaranteed bool) int64 {
	if guaranteed {
		return r.Guaranteed
	}
	return r.Opportunistic
}

// Queue holds the waiting gangs of all virtual clusters. It is not safe for concurrent use. The zero value is empty and never
// holds GPUs.
//
// Guaranteed gangs come before opportunistic gangs, so that opportunistic gangs aren't evicted right after their start. Within
// guaranteed and opportunistic gangs, the virtual clusters take turns. The next gang belongs to the virtual cluster with the
// fewest GPUs. This number includes the GPUs of gangs that come earlier in the order. Within a virtual cluster, gangs are sorted
// by priority and then by age.
type Queue struct {
	Reservations

	rows map[rowKey]*row
	n    int
	now  int64 // the time of the last pass
}

type rowKey struct {
	vc         string
	guaranteed bool
}

// row holds the waiting gangs of one virtual cluster and counts its running gangs. A row is either guaranteed or opportunistic.
type row struct {
	key     rowKey
	waiting []*Gang
	running int // the number of GPUs of running gangs
	// reserves is the gang for which GPUs are held, or nil. It is the first waiting gang that would start with more free GPUs.
	// notBefore is the earliest time at which it can start. 0 means any time.
	reserves  *Gang
	notBefore int64
	// free is the number of GPUs of the virtual cluster that no gang holds. ends lists the gangs with a known latest end.
	free int
	ends []ending
	// unfit is the number of gangs at the beginning of waiting that were Unfit in this pass.
	unfit int
}

type ending struct {
	at   int64
	gpus int
}

// Before compares two gangs by their order within a virtual cluster.
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

// Len returns the number of waiting gangs.
func (q *Queue) Len() int { return q.n }

// Add adds a waiting gang. The queue must not contain a gang with the same virtual cluster and name. Adding many gangs is
// fastest in the order of Before.
func (q *Queue) Add(g *Gang) {
	r := q.row(g)
	i, _ := slices.BinarySearchFunc(r.waiting, g, Before)
	r.waiting = slices.Insert(r.waiting, i, g)
	q.n++
}

// Remove removes a gang, and reports whether the gang was waiting.
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

// Started adds a gang's GPUs to the GPUs of its virtual cluster.
func (q *Queue) Started(g *Gang) { q.row(g).running += g.GPUs }

// Ended undoes Started.
func (q *Queue) Ended(g *Gang) { q.row(g).running -= g.GPUs }

// Free sets the number of GPUs of a virtual cluster that no started gang holds.
func (q *Queue) Free(vc string, gpus int) { q.row(&Gang{VC: vc}).free = gpus }

// EndsBy sets the latest end of a started gang.
func (q *Queue) EndsBy(g *Gang, at int64) {
	r := q.row(g)
	r.ends = append(r.ends, ending{at, g.GPUs})
}

// Reservation returns the gang whose reservation prevents g from starting now, or nil.
func (q *Queue) Reservation(g *Gang) *Gang {
	r := q.row(g)
	h := r.reserves
	switch {
	case h == nil || h == g || h.Priority > g.Priority || Before(h, g) >= 0:
		return nil
	case g.Lasts > 0 && q.now+g.Lasts <= r.notBefore:
		return nil // g ends before GPUs can become free for h
	}
	return h
}

// Reserving returns the gangs for which GPUs are held since the last pass.
func (q *Queue) Reserving() []*Gang {
	var out []*Gang
	for _, r := range q.rows {
		if r.reserves != nil {
			out = append(out, r.reserves)
		}
	}
	return out
}

// earliest returns when enough GPUs are free for a gang if all gangs run for their maximum time, or 0 if that is unknown. The
// gang may start later than this time, because it may need specific GPUs and other gangs may run longer than expected.
func (r *row) earliest(g *Gang) int64 {
	free := r.free
	if g.CPU || free >= g.GPUs {
		return 0 // the gang waits for GPUs in other places, or doesn't need GPUs
	}
	slices.SortFunc(r.ends, func(a, b ending) int { return cmp.Compare(a.at, b.at) })
	for _, e := range r.ends {
		if free += e.gpus; free >= g.GPUs {
			return e.at
		}
	}
	return 0
}

// Order returns the waiting gangs in the order in which they will probably start.
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

// turns chooses the virtual cluster of the next gang.
type turns struct{ rows []turn }

type turn struct {
	row  *row
	gpus int // the GPUs that it would hold if all earlier gangs had started
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
	// Starts means that the gang started and no longer waits.
	Starts Attempt = iota
	// Waits means that the cells that the gang needs are in use.
	Waits
	// Unfit means that free GPUs wouldn't help the gang. For example, the gang exceeds a quota or waits for the repair of a
	// machine.
	Unfit
	// Later means that the gang wasn't tried, because its virtual cluster has had its turn in this pass.
	Later
)

// Pass tries each waiting gang once, in order. It skips gangs that are equivalent to a gang that couldn't start, and gangs that
// a reservation prevents from starting. If passed isn't nil, Pass calls it with each skipped gang and the gang that caused the
// skip. try must call Remove and Started if a gang starts, and may add other gangs. An error ends the pass.
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
			q.reserve(g, Unfit, now) // like the equivalent gang, g isn't the head
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

// reserve holds GPUs for a gang that has waited long enough. It releases the GPUs if they don't help the gang.
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
