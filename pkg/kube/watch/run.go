package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const (
	// pageSize is how many objects one list request reads. It keeps the decoded data small.
	pageSize = 500
	// firstWait and maxWait bound the wait before the next list or watch after a failure. maxRefused is the bound after an error that a user or an
	// administrator must correct. If Confirm is set, maxWait applies to such errors too, because the program doesn't work without a current Store,
	// and because an API server that has just started also rejects requests until it has read its roles.
	firstWait  = 200 * time.Millisecond
	maxWait    = 3 * time.Second
	maxRefused = 15 * time.Second
	// beat is the interval between health checks of the API server while a watch is open, and soon the interval while no watch is open. patience is
	// the time limit for one health check.
	beat     = 3 * time.Second
	patience = 3 * time.Second
	soon     = 100 * time.Millisecond
)

// These errors end a watch. The Store then lists the objects, because changes were missed. For kinds that seldom change, the API server often no
// longer keeps the changes since the last version that a watch has seen, because it keeps only recent changes.
var (
	errEnded   = errors.New("the API server ended the watch early")
	errExpired = errors.New("the API server doesn't keep the changes since the last version that was seen")
)

// Refused reports whether the API server rejected the request because it doesn't know the user or because the user has no permission.
func Refused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// session records whether a watch is open, and what was last known about the API server.
type session struct {
	mu        sync.Mutex
	restart   context.CancelFunc
	open      bool
	opened    int // how many watches were opened
	confirmed time.Time
	reported  string // the last error
}

// Run lists and watches the objects until ctx ends. It continues after each error.
func (s *Store[T]) Run(ctx context.Context) {
	var beats sync.WaitGroup
	defer beats.Wait()
	if s.o.Confirm {
		beats.Go(func() { s.confirm(ctx) })
	}
	for pause := firstWait / 2; ctx.Err() == nil; {
		began := time.Now()
		err := s.live(ctx)
		switch {
		case time.Since(began) > time.Minute: // the watch worked for a long time
			pause = firstWait
		case !s.o.Confirm && (Refused(err) || apierrors.IsNotFound(err)):
			pause = min(2*pause, maxRefused)
		default:
			pause = min(2*pause, maxWait)
		}
		sleep(ctx, wait.Jitter(pause, 0.5))
	}
}

// Restart ends the current watch and lists the objects again, for example because the connection doesn't respond.
func (s *Store[T]) Restart() {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	if s.session.restart != nil {
		s.session.restart()
	}
}

// live lists the objects once, and watches them until the watch fails. The reflector keeps the order of versions, and requests missed changes.
func (s *Store[T]) live(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.session.mu.Lock()
	s.session.restart = cancel
	s.session.mu.Unlock()
	l := &life[T]{Store: s}
	lw := &cache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: l.watch}
	err := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, pages{}), nil, l, cache.ReflectorOptions{
		Name: s.o.Name, TypeDescription: s.o.Name,
		Backoff: &wait.Backoff{Duration: firstWait, Factor: 2, Steps: 20, Cap: maxWait, Jitter: 0.5},
	}).ListAndWatchWithContext(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if failed := l.failed(); failed != nil {
		return failed
	}
	err = cmp.Or(err, errExpired)
	s.health(err)
	return err
}

// health passes the state of the watch to Health, and logs each new error once.
func (s *Store[T]) health(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.session.mu.Lock()
	news := s.session.reported != text
	s.session.reported = text
	s.session.mu.Unlock()
	switch {
	case !news || err == nil:
	case errors.Is(err, errExpired) || apierrors.IsResourceExpired(err):
		s.o.Log.Info("objects are listed again", "kind", s.o.Name, "why", text)
	default:
		s.o.Log.Warn("objects can't be watched; retrying", "kind", s.o.Name, "error", text)
	}
	s.o.Health(err)
}

// pages makes the reflector list the objects in pages, of which it keeps only a small part. If the reflector received all objects as a stream, it
// would keep whole objects.
type pages struct{}

// IsWatchListSemanticsUnSupported returns true, so that the reflector doesn't request the objects as a stream. client-go calls it.
func (pages) IsWatchListSemanticsUnSupported() bool { return true }

// life sends the requests of a reflector and receives its events, from one list until the watch fails.
type life[T any] struct {
	*Store[T]
	began   time.Time // when the watch began
	timeout time.Duration

	mu     sync.Mutex // an abandoned list may still be waiting for its response
	listed []kept[T]
	last   error
}

// Replace stores the list that was read last. The reflector gets only the version of the list, so that it keeps no objects.
func (l *life[T]) Replace(_ []any, version string) error {
	l.mu.Lock()
	all := l.listed
	l.listed = nil
	l.mu.Unlock()
	l.replace(all, version, false)
	return nil
}

// fail records and reports the error that ends this life. It is the original error, not the reflector's.
func (l *life[T]) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	l.mu.Lock()
	l.last = err
	l.mu.Unlock()
	l.health(err)
	return err
}

func (l *life[T]) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *life[T]) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	all, version, err := l.Store.list(ctx, l.o.Source)
	if err != nil {
		return nil, l.fail(ctx, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listed = all
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: version}}, nil
}

// watch opens one watch. With Relist, it fails and so ends the life if the previous watch ended before its timeout, because an early end means an
// interruption.
func (l *life[T]) watch(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	now := time.Now()
	if l.o.Relist && !l.began.IsZero() && now.Sub(l.began) < l.timeout*9/10 {
		return nil, l.fail(ctx, errEnded)
	}
	l.began = now
	if o.TimeoutSeconds != nil {
		l.timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	w, err := l.o.Source.Watch(ctx, o)
	if err != nil {
		if err = l.fail(ctx, err); l.o.Relist {
			// The error isn't wrapped, because otherwise the reflector would continue from the last version after the API server rejected a
			// connection.
			err = fmt.Errorf("watch the %s: %v", l.o.Name, err) //nolint:errorlint // see above
		}
		return nil, err
	}
	l.mu.Lock()
	l.last = nil
	l.mu.Unlock()
	w = l.session.begin(w)
	l.health(nil)
	return w, nil
}

// list reads all pages of the objects and returns the kept parts and the list's version. It keeps only these parts in memory.
func (s *Store[T]) list(ctx context.Context, from Source) (all []kept[T], version string, err error) {
	for o := (metav1.ListOptions{Limit: pageSize}); ; {
		page, err := from.List(ctx, o)
		if err != nil {
			return nil, "", err
		}
		list, err := meta.ListAccessor(page)
		if err != nil {
			return nil, "", err
		}
		if err := meta.EachListItem(page, func(one runtime.Object) error {
			if k, ok := s.keep(one); ok {
				all = append(all, k)
			}
			return nil
		}); err != nil {
			return nil, "", err
		}
		if o.Continue = list.GetContinue(); o.Continue == "" {
			return all, list.GetResourceVersion(), nil
		}
	}
}

// begin records that a watch is open, and returns a watch that records its end when the reflector stops reading it.
func (n *session) begin(w apiwatch.Interface) apiwatch.Interface {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = true
	n.opened++
	return &opened{w, n, n.opened}
}

// opened is a watch that records its end in its session.
type opened struct {
	apiwatch.Interface
	session *session
	number  int
}

// Stop ends the watch. The reflector calls Stop when it stops reading, and before it opens another watch.
func (o *opened) Stop() {
	o.session.mu.Lock()
	if o.session.opened == o.number {
		o.session.open = false
	}
	o.session.mu.Unlock()
	o.Interface.Stop()
}

// current returns the number of the open watch, or 0 if no watch is open.
func (n *session) current() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.open {
		return 0
	}
	return n.opened
}

// Confirmed returns the last time at which the Store was known to have the API server's state, or the zero time if that was never known. Only Confirm
// and Load set this time.
func (s *Store[T]) Confirmed() time.Time {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	return s.session.confirmed
}

// confirm sends requests to the API server repeatedly, because a watch over a dead connection looks like a watch without changes.
func (s *Store[T]) confirm(ctx context.Context) {
	for ctx.Err() == nil {
		pause := soon
		if watched := s.session.current(); watched != 0 {
			began := time.Now()
			asked, cancel := context.WithTimeout(ctx, patience)
			_, err := s.o.Source.List(asked, metav1.ListOptions{Limit: 1}) // not served from a cache
			cancel()
			if err == nil && s.session.confirm(watched, began) {
				pause = beat
			}
		}
		sleep(ctx, pause)
	}
}

// confirm records that the Store was current at a time, if the watch with this number is still open. It reports whether the watch is still open.
func (n *session) confirm(watched int, at time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.open || n.opened != watched {
		return false
	}
	n.confirmed = at
	return true
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
