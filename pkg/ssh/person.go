package ssh

import (
	"sync"
	"time"
)

// person records when a person at the terminal was last asked, so that time limits exclude the time until the person answers.
type person struct {
	now func() time.Time

	mu       sync.Mutex
	pending  int
	answered time.Time
}

// begin marks a question as open. end marks the question as answered.
func (p *person) begin() (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pending--
		p.answered = p.now()
	}
}

// busy reports whether a question is open, or was answered within the last d.
func (p *person) busy(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending > 0 || p.now().Sub(p.answered) < d
}

// limit calls stop after d, unless a question is open. cancel cancels the call, and reports whether stop was already called.
func (p *person) limit(d time.Duration, stop func()) (cancel func() bool) {
	var mu sync.Mutex
	var timer *time.Timer
	over, fired := false, false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case over:
		case p.busy(d):
			timer.Reset(d)
		default:
			fired = true
			stop()
		}
	})
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
		return fired
	}
}
