package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// maxLoads is how many calls of Load run at once: each lists all objects, so more calls would only be slower. Further calls wait up to loadWait.
const (
	maxLoads = 8
	loadWait = 2 * time.Second
)

// errBusy is the error of a Load that waited loadWait because too many other Loads are running.
var errBusy = errors.New("too many changes at once")

// perSecond and atOnce limit the rate and the burst of the requests of a Client's Stores. They are far above the usual rate.
const (
	perSecond = 50
	atOnce    = 100
)

// Client returns a client for Stores. It has its own rate limit, because otherwise a user who causes many requests would make all data stale.
func Client(config *rest.Config) (dynamic.Interface, error) {
	own := rest.CopyConfig(config)
	own.RateLimiter, own.QPS, own.Burst = nil, perSecond, atOnce
	return dynamic.NewForConfig(own)
}

// Load lists all objects now with Reads, and applies the list.
func (s *Store[T]) Load(ctx context.Context) error {
	timer := time.NewTimer(loadWait)
	defer timer.Stop()
	select {
	case s.loads <- struct{}{}:
		defer func() { <-s.loads }()
	case <-timer.C:
		return fmt.Errorf("list %s: %w", s.o.Name, errBusy)
	case <-ctx.Done():
		return ctx.Err()
	}
	began := time.Now()
	all, version, err := s.list(ctx, s.o.Reads)
	if err != nil {
		return fmt.Errorf("list %s: %w", s.o.Name, err)
	}
	s.replace(all, version, true)
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	if began.After(s.session.confirmed) {
		s.session.confirmed = began
	}
	return nil
}

// Put applies the API server's response to a write at once. Earlier events that arrive afterwards don't undo the write. Put doesn't undo later
// events, because the response may have been delayed.
func (s *Store[T]) Put(o runtime.Object) {
	if k, ok := s.keep(o); ok {
		s.change(func(changes []Change[T]) []Change[T] { return s.put(changes, k, true) })
	}
}

// Drop removes a deleted object at once, without waiting for the event of its deletion.
func (s *Store[T]) Drop(key string, uid types.UID) {
	s.change(func(changes []Change[T]) []Change[T] {
		s.bury(uid, "", true)
		if have := s.items[key].Item; have != nil && have.UID == uid {
			return s.remove(changes, key, nil)
		}
		return append(changes, Change[T]{Key: key})
	})
}

// Deleted reports whether the Store remembers that the object with this UID was removed.
func (s *Store[T]) Deleted(uid types.UID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, gone := s.gone[uid]
	return gone
}
