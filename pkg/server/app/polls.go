package app

import (
	"sync"
	"time"
)

// polls records the time of the last poll of each waiting program.
type polls struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// tooSoon is the minimum accepted time between two polls. It is shorter than the interval in the response, because clocks and transmission times
// vary.
const tooSoon = deviceInterval - time.Second

// fast records a poll, and reports whether the program has polled too soon.
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
