package extender

import (
	"time"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

const (
	// wakeDelay is what kube-scheduler gets to try again by itself after an event that it sees, too.
	wakeDelay = time.Second
	// wakeMost bounds the gangs that are woken in one round.
	wakeMost = 64
)

// wake makes kube-scheduler try gangs again that could start. It tries by itself when a pod or a node
// changes, but then it may ask before we have seen that change, and of a new configuration
// it sees nothing; a pod that was told to wait then would lie for minutes.
func (e *Extender) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.state
	if s == nil || !s.freed.After(s.woken) || s.now().Sub(s.freed) < wakeDelay {
		return
	}
	freed, woken := s.freed, 0
	for _, g := range s.queue() {
		p := g.first()
		if p.request == nil || p.asked.IsZero() || p.asked.After(freed) || p.touched.After(freed) {
			continue
		}
		if !s.couldStart(p) {
			continue
		}
		for _, q := range g.pods {
			if !q.asked.After(freed) {
				q.touched = s.now()
				s.todo(task{touch, q.uid})
			}
		}
		if woken++; woken == wakeMost {
			return // the rest in the next round, when these have been asked about
		}
	}
	s.woken = freed
}

// couldStart tells whether kube-scheduler would get another answer than last time for a pod.
func (s *state) couldStart(p *pod) bool {
	d := s.core.Schedule(cell.PodID(p.uid), p.request, cell.Filtering, nil)
	s.apply(d.Changes)
	return d.Result == cell.Bind || d.Result == cell.Preempt && p.state == api.Waiting
}
