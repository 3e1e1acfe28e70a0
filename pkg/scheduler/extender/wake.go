package extender

import (
	"time"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

const (
	// wakeDelay is what kube-scheduler gets to try again by itself after an event that it sees, too.
	wakeDelay = time.Second
	// wakeAnyway is how often all gangs are looked at without an event: one that is only held back
	// for a while waits for none.
	wakeAnyway = 10 * time.Second
	// wakeMost bounds the gangs that are woken in one round.
	wakeMost = 64
)

// wake makes kube-scheduler try gangs again that could start. It tries by itself when a pod or a node
// changes, but then it may ask before we have seen that change, and of a new configuration
// it sees nothing; a pod that was told to wait then would lie for minutes.
func (e *Extender) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != nil {
		e.state.wake()
	}
}

func (s *state) wake() {
	now, since := s.now(), s.freed
	freed := s.freed.After(s.woken)
	switch {
	case now.Sub(s.looked) < wakeAnyway && (!freed || now.Sub(s.freed) < wakeDelay):
		return // in a busy cluster there is always something that became free just now
	case !freed:
		since = now.Add(-wakeAnyway)
	}
	s.looked = now
	woken := 0
	for _, g := range s.queue() {
		p := g.asked()
		if p == nil || p.asked.After(since) || p.touched.After(since) || !s.couldStart(p) {
			continue
		}
		for _, q := range g.pods {
			if !q.asked.After(since) {
				q.touched = now
				s.todo(task{touch, q.uid})
			}
		}
		if woken++; woken == wakeMost {
			return // the rest in the next round, when these have been asked about
		}
	}
	s.woken = s.freed
}

// couldStart reports whether kube-scheduler would get another answer than last time for a pod.
func (s *state) couldStart(p *pod) bool {
	d := s.core.Schedule(cell.PodID(p.uid), p.request, cell.Filtering, nil)
	s.apply(d.Changes)
	return d.Result == cell.Bind || d.Result == cell.Preempt && p.state == api.Waiting
}
