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

// Load lists all objects: more than maxLoads at the same time would only be slower. Further calls wait up to loadWait.
const (
	maxLoads = 8
	loadWait = 2 * time.Second
)

// errBusy is returned by a Load if too many others are running.
var errBusy = errors.New("too many changes at once")

// Rate limit of the requests of a Client's Stores, per second and in a burst. It is far above their usual rate.
const (
	perSecond = 50
	atOnce    = 100
)

// Client returns a client for Stores. It has its own rate limit: otherwise a user who causes many requests would make all data look stale.
func Client(config *rest.Config) (dynamic.Interface, error) {
	own := rest.CopyConfig(config)
	own.RateLimiter, own.QPS, own.Burst = nil, perSecond, atOnce
	return dynamic.NewForConfig(own)
}

// Load lists all objects now, and applies the list.
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

// Put applies the API server's response to a write at once. Earlier events don't undo it. It doesn't undo later events, because the response may
// have been delayed.
func (s *Store[T]) Put(o runtime.Object) {
	if k, ok := s.keep(o); ok {
		s.change(func(changes []Change[T]) []Change[T] { return s.put(changes, k, true) })
	}
}

// Drop removes a deleted object at once, without waiting for the event.
func (s *Store[T]) Drop(key string, uid types.UID) {
	s.change(func(changes []Change[T]) []Change[T] {
		s.bury(uid, "", true)
		if have := s.items[key].Item; have != nil && have.UID == uid {
			return s.remove(changes, key, nil)
		}
		return append(changes, Change[T]{Key: key})
	})
}

// Deleted reports whether an object was removed recently.
func (s *Store[T]) Deleted(uid types.UID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, gone := s.gone[uid]
	return gone
}
