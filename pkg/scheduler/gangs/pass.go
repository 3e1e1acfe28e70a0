package gangs

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/queue"
)

// Decide assigns places to waiting gangs, in their order, and activates their pods in kube-scheduler. It releases the lock
// between two gangs.
func (b *Store) Decide() {
	b.sweep(b.podObject, b.pods.LastSyncResourceVersion())
	if b.claims != nil && b.claims.HasSynced() {
		b.checkClaims(b.claimObject)
	}
	var p *pass
	b.locked(func(s *state) {
		s.expire()
		p = &pass{epoch: s.epoch, share: b.share, spent: map[turn]time.Duration{}, looked: map[turn]int{}, left: map[turn]bool{}}
	})
	q, leading := b.waiting()
	if !leading || p == nil {
		return
	}
	start := time.Now()
	defer func() { b.count.pass.Observe(time.Since(start).Seconds()) }()
	var found []*corev1.Pod
	// The function never returns an error.
	_ = q.Pass(b.now().UnixNano(), func(w *queue.Gang) (attempt queue.Attempt, err error) {
		attempt = queue.Unfit
		of := turn{w.VC, w.Priority >= cell.MinGuaranteed}
		unfinished := false
		b.locked(func(s *state) {
			if g := s.gangs[gangKey{w.VC, w.Name}]; g != nil {
				var pods []*corev1.Pod
				attempt, pods = s.look(p, g, of)
				found = append(found, pods...)
				unfinished = len(s.unfinished) > 0
			}
		})
		if unfinished {
			begun := time.Now()
			var pods []*corev1.Pod
			attempt, pods = b.finish(attempt)
			found = append(found, pods...)
			b.evictRest()
			if p.counts {
				p.spent[of] += time.Since(begun)
			}
		}
		if attempt == queue.Starts {
			q.Remove(w)
			q.Started(w)
		}
		return attempt, nil
	}, func(w, cause *queue.Gang) {
		b.locked(func(s *state) { s.passed(w, cause, q.Reservation(w) == cause) })
	})
	again := false
	b.locked(func(s *state) { again = s.ended(&q, p) })
	if again {
		b.signal()
	}
	b.queue.Activate(found)
}

// turn identifies the gangs that share a turn: all guaranteed gangs or all opportunistic gangs of a virtual cluster.
type turn struct {
	vc         string
	guaranteed bool
}

// turnShare is how long one pass searches places for the gangs of one turn. After that, the other turns follow, including newly
// arrived gangs. The next pass continues where this pass stopped.
const turnShare = 20 * time.Millisecond

// heads is the number of gangs at the beginning of a turn that each pass tries, even if the round has already tried them. They
// are the first gangs to get cells that become free during a long round.
const heads = 8

// pass is the state of one pass over the waiting gangs.
type pass struct {
	epoch  uint64 // the epoch when the pass began
	share  time.Duration
	spent  map[turn]time.Duration
	looked map[turn]int  // the number of gangs that the pass has reached
	left   map[turn]bool // turns in which some gangs were not tried
	// second means that opportunistic gangs wait for the end of this round of guaranteed gangs. known means that second is
	// valid.
	second, known bool
	counts        bool // whether the time of the last gang counts as time of its turn
}

// look tries a gang. It skips the gang if the state hasn't changed since the last attempt, or if the gang's turn has used its
// share.
func (s *state) look(p *pass, g *gang, of turn) (queue.Attempt, []*corev1.Pod) {
	p.looked[of]++
	p.counts = false
	if p.looked[of] == 1 && !s.goesOn[of] {
		s.round[of] = p.epoch
	}
	switch {
	case g.searched >= p.epoch || g.searched >= s.round[of] && p.looked[of] > heads:
		return g.attempt, nil
	case !of.guaranteed && s.second(p):
		p.left[of] = true
		return queue.Later, nil
	case g.searched >= s.round[of] && p.left[of]:
		return g.attempt, nil // an earlier gang of the turn hasn't been tried
	case g.searched >= s.round[of]:
		return s.try(g) // this time doesn't count, so that gangs that the round hasn't reached keep their share
	case p.spent[of] >= p.share:
		p.left[of] = true
		return queue.Later, nil
	}
	begun := time.Now()
	defer func() { p.spent[of] += time.Since(begun) }()
	p.counts = true
	return s.try(g)
}

// mostSecond is the maximum number of consecutive passes in which opportunistic gangs wait for guaranteed gangs.
const mostSecond = 8

// second reports whether opportunistic gangs have to wait in a pass. They wait while untried guaranteed gangs could start on
// the free cells. Otherwise these gangs would evict the opportunistic gangs again. The wait ends when all guaranteed gangs of
// each virtual cluster have been tried once since the last turn of opportunistic gangs. This may take several passes. The
// number of passes is limited, because guaranteed gangs may arrive faster than they are tried.
func (s *state) second(p *pass) bool {
	if p.known {
		return p.second
	}
	p.known = true
	for of := range p.looked {
		if of.guaranteed && !p.left[of] {
			s.whole[of] = true
		}
	}
	for of := range p.left {
		p.second = p.second || of.guaranteed && !s.whole[of]
	}
	if s.seconds++; !p.second || s.seconds > mostSecond {
		p.second, s.seconds = false, 0
		clear(s.whole)
	}
	return p.second
}

// remainder is the unfinished part of trying a gang. It continues after the lock was released for other requests. It is dropped
// if the state is rebuilt or the configuration changes. The next pass then starts again.
type remainder struct {
	gang *gang
	do   func() (queue.Attempt, []*corev1.Pod)
}

// leave stores the unfinished part of trying a gang.
func (s *state) leave(g *gang, do func() (queue.Attempt, []*corev1.Pod)) {
	s.unfinished = append(s.unfinished, remainder{g, do})
}

// dropUnfinished drops the unfinished parts and releases the places of their gangs, because these places contain cells of the
// former configuration.
func (s *state) dropUnfinished(reason string) {
	for _, r := range s.unfinished {
		s.takeBack(r.gang, reason)
	}
	s.unfinished = nil
}

// next runs the first unfinished part. Its result replaces the gang's former result.
func (s *state) next() (attempt queue.Attempt, pods []*corev1.Pod) {
	next := s.unfinished[0]
	s.unfinished = s.unfinished[1:]
	g := next.gang
	if s.gangs[g.gangKey] != g {
		return queue.Unfit, nil
	}
	attempt, pods = next.do()
	if g.attempt = attempt; len(pods) > 0 {
		g.searched = 0
	}
	return attempt, pods
}

// finish runs the unfinished parts of trying a gang. attempt is the result so far.
func (b *Store) finish(attempt queue.Attempt) (_ queue.Attempt, pods []*corev1.Pod) {
	for more := true; more; {
		more = false
		b.locked(func(s *state) {
			if len(s.unfinished) > 0 {
				a, found := s.next()
				attempt, pods, more = a, append(pods, found...), true
			}
		})
	}
	return attempt, pods
}

// ended ends a pass. again means that another pass must follow.
func (s *state) ended(q *queue.Queue, p *pass) (again bool) {
	s.goesOn = p.left
	s.reserving = map[gangKey]bool{}
	for _, w := range q.Reserving() {
		s.reserving[gangKey{w.VC, w.Name}] = true
	}
	s.reservation = q.Reservation
	for of := range p.looked {
		again = again || s.round[of] < p.epoch // the state has changed since the round began, and the round has passed some gangs
	}
	return again || len(p.left) > 0
}

// reservedFor explains that free cells are held for another gang.
func (s *state) reservedFor(g *queue.Gang) string {
	return fmt.Sprintf("free cells of virtual cluster %s are reserved for %s, which has waited for more than %s", g.VC, g.Name, shortly(s.reserves))
}

// passed sets the reason why a gang wasn't tried. The gang is equivalent to the gang of cause, or free cells are held for the
// gang of cause.
func (s *state) passed(w, cause *queue.Gang, reserved bool) {
	g, other := s.gangs[gangKey{w.VC, w.Name}], s.gangs[gangKey{cause.VC, cause.Name}]
	if g == nil || other == nil {
		return
	}
	g.held = reserved
	reason := other.first().reason
	switch {
	case reserved:
		reason = s.reservedFor(cause)
	case slices.ContainsFunc(other.pods, func(p *pod) bool { return p.trial != "" }):
		reason = fmt.Sprintf("it waits behind %s/%s, which has the same request", cause.VC, cause.Name) // a trial of the other gang doesn't concern this gang
	}
	_, has := s.core.Brief(g.vc, g.name)
	for _, p := range g.ready(g.first().class) {
		if p.state == api.Waiting {
			if !has {
				s.forgetTrial(p)
			}
			s.wait(p, reason)
		}
	}
}
