package app

import (
	"sync"
	"time"
)

// polls records when each waiting program last polled.
type polls struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// tooSoon is the shortest accepted time between two polls. It is a little shorter than the interval that programs are asked to keep, because clocks
// and transmission times vary.
const tooSoon = deviceInterval - time.Second

// fast reports whether a program has polled again too soon. It records the poll.
func (p *polls) fast(id string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[string]time.Time{}
	}
	last, asked := p.last[id]
	for other, at := range p.last {
		if now.Sub(at) > deviceTime {
			delete(p.last, other)
		}
	}
	p.last[id] = now
	return asked && now.Sub(last) < tooSoon
}
