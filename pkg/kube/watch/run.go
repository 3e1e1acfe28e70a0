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
	// pageSize is how many objects are read at once, so that the decoded data stays small.
	pageSize = 500
	// firstWait and maxWait bound the wait before another list or watch after a failure. maxRefused bounds it after an error that a user or an
	// administrator must correct, unless Confirm is set: programs don't work without a current Store. An API server that has just started also
	// rejects requests, until it has read its roles.
	firstWait  = 200 * time.Millisecond
	maxWait    = 3 * time.Second
	maxRefused = 15 * time.Second
	// beat is the interval of health checks of the API server while a watch is open, patience the time limit of one, and soon the interval
	// while no watch is open.
	beat     = 3 * time.Second
	patience = 3 * time.Second
	soon     = 100 * time.Millisecond
)

// Errors that end a watch. The objects are listed after them, because changes were missed. For kinds that seldom change, such as events, the
// API server often no longer keeps the changes since the last version that a watch has seen.
var (
	errEnded   = errors.New("the API server ended the watch early")
	errExpired = errors.New("the API server doesn't keep the changes since the last version that was seen")
)

// Refused reports whether the API server rejects this user, or doesn't know it.
func Refused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// session records the watch that is open.
type session struct {
	mu        sync.Mutex
	restart   context.CancelFunc
	open      bool
	opened    int // how often
	confirmed time.Time
	reported  string // the last error
}

// Run lists and watches until ctx ends. It continues after each error.
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
		case time.Since(began) > time.Minute: // it worked for a long time
			pause = firstWait
		case !s.o.Confirm && (Refused(err) || apierrors.IsNotFound(err)):
			pause = min(2*pause, maxRefused)
		default:
			pause = min(2*pause, maxWait)
		}
		sleep(ctx, wait.Jitter(pause, 0.5))
	}
}

// Restart begins with a list again, for example because the connection doesn't respond.
func (s *Store[T]) Restart() {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	if s.session.restart != nil {
		s.session.restart()
	}
}

// live lists the objects, and watches them until that fails. The reflector keeps the order of versions, and requests
// missed changes.
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

// health reports the state of the watch, and logs an error once.
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

// pages makes the reflector list in pages, so that only little of each page is kept. If it received all objects as a stream, it would keep whole
// objects.
type pages struct{}

// IsWatchListSemanticsUnSupported is called by client-go.
func (pages) IsWatchListSemanticsUnSupported() bool { return true }

// life sends the requests of a reflector and receives its events, from one list until the watch fails.
type life[T any] struct {
	*Store[T]
	began   time.Time // of the watch
	timeout time.Duration

	mu     sync.Mutex // an abandoned list may still be waiting for its response
	listed []kept[T]
	last   error
}

// Replace stores the list that was read last. The reflector gets only its version, so that it keeps no objects.
func (l *life[T]) Replace(_ []any, version string) error {
	l.mu.Lock()
	all := l.listed
	l.listed = nil
	l.mu.Unlock()
	l.replace(all, version, false)
	return nil
}

// fail records and reports why this life ends, with the original error instead of the reflector's.
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

// watch opens one watch. With Relist, the life ends if the previous watch ended before its timeout, because it was
// interrupted.
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
			// Not wrapped, because the reflector would otherwise continue from the last version after the API server rejected a connection.
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

// list reads all pages, and keeps only the parts of the objects.
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

// begin records that a watch is open, until the reflector stops reading it.
func (n *session) begin(w apiwatch.Interface) apiwatch.Interface {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = true
	n.opened++
	return &opened{w, n, n.opened}
}

// opened is a watch whose end is recorded.
type opened struct {
	apiwatch.Interface
	session *session
	number  int
}

// Stop ends the watch. The reflector calls it when it stops reading, and before it opens another one.
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

// Confirmed returns when the Store was last known to have the API server's state; zero means never. It needs Confirm or
// Load.
func (s *Store[T]) Confirmed() time.Time {
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	return s.session.confirmed
}

// confirm sends requests to the API server repeatedly, because a watch over a dead connection looks like one without
// changes.
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

// confirm records when everything was known, if the same watch has been open since. It reports whether the watch stayed open.
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
