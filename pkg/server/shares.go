package server

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// placeTime is how long a request waits for other requests of the same person.
const placeTime = 20 * time.Second

// shares limits the use of a resource by key.
type shares struct {
	mu   sync.Mutex
	each map[string]*share
}

// share is the share of one key. holders is the number of requests that hold a part of the share or wait for a part.
type share struct {
	*semaphore.Weighted
	holders int
}

// take waits until n more units fit into the share of a key. most is the size of the share. give releases the units.
func (s *shares) take(ctx context.Context, key string, n, most int64) (give func(), err error) {
	own := s.hold(key, most)
	if err := own.Acquire(ctx, n); err != nil {
		s.leave(key)
		return nil, err
	}
	return func() {
		own.Release(n)
		s.leave(key)
	}, nil
}

// try takes n more units for a key if they fit into the key's share now. most is the size of the share.
func (s *shares) try(key string, n, most int64) (give func(), ok bool) {
	own := s.hold(key, most)
	if !own.TryAcquire(n) {
		s.leave(key)
		return nil, false
	}
	return func() {
		own.Release(n)
		s.leave(key)
	}, true
}

func (s *shares) hold(key string, most int64) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.each[key]
	if own == nil {
		own = &share{Weighted: semaphore.NewWeighted(most)}
		s.each[key] = own
	}
	own.holders++
	return own
}

func (s *shares) leave(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.each[key].holders--; s.each[key].holders == 0 {
		delete(s.each, key)
	}
}

// place waits until the person has fewer than most requests for the same operation in progress. It waits, instead of failing, because a browser sends
// all requests of a page at once.
func (s *Server) place(ctx context.Context, what, who string, most int) (give func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, placeTime)
	defer cancel()
	if give, err = s.places.take(ctx, what+" "+who, 1, int64(most)); err != nil {
		return nil, busy("you already have the maximum number of these requests under way", "wait for the end of one")
	}
	return give, nil
}

// Place waits until the caller has fewer than most requests of this route and kind in progress. The request counts until its response has been sent.
func (c *Call) Place(kind string, most int) error {
	give, err := c.place(kind, most)
	if err == nil {
		c.after(give)
	}
	return err
}

// after registers a function that is called when the response has been sent.
func (c *Call) after(f func()) {
	if a, ok := c.Writer.(*answer); ok {
		a.after = append(a.after, f)
	}
}
