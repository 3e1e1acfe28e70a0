package httpserver

import (
	"context"
	"slices"
	"sync"
)

// Places limits how many operations run at a time, both in total and for each key.
type Places struct {
	total, each int

	mu      sync.Mutex
	taken   int
	held    map[string]int // by key
	waiting []*waiter
}

// waiter is an operation that waits for a place.
type waiter struct {
	keys  []string
	ready chan struct{} // closed: it has the place
}

// NewPlaces returns a Places with the given total number of places. One key may hold at most the number each.
func NewPlaces(total, each int) *Places {
	return &Places{total: total, each: each, held: map[string]int{}}
}

// Acquire waits for a place until ctx ends. The place counts towards all keys. A free place is given to the waiter whose keys hold the fewest
// places, so that many waiters with one key don't delay a waiter with another key.
func (p *Places) Acquire(ctx context.Context, keys ...string) (release func(), err error) {
	w := &waiter{keys: keys, ready: make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.allot()
	p.mu.Unlock()
	release = sync.OnceFunc(func() { p.release(w) })
	select {
	case <-w.ready:
		return release, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	at := slices.Index(p.waiting, w)
	if at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
	}
	p.mu.Unlock()
	if at < 0 {
		release() // the place was given at the same moment
	}
	return nil, ctx.Err()
}

func (p *Places) release(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	for _, k := range w.keys {
		if p.held[k]--; p.held[k] == 0 {
			delete(p.held, k)
		}
	}
	p.allot()
}

// allot gives the free places to the waiters whose keys hold the fewest places.
func (p *Places) allot() {
	for p.taken < p.total {
		best, fewest := -1, p.each
		for i, w := range p.waiting {
			if n := p.most(w.keys); n < fewest {
				best, fewest = i, n
			}
		}
		if best < 0 {
			return
		}
		w := p.waiting[best]
		p.waiting = slices.Delete(p.waiting, best, best+1)
		p.taken++
		for _, k := range w.keys {
			p.held[k]++
		}
		close(w.ready)
	}
}

// most returns the number of places of the key that holds the most.
func (p *Places) most(keys []string) (n int) {
	for _, k := range keys {
		n = max(n, p.held[k])
	}
	return n
}
