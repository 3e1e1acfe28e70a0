package feed

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

const (
	// beat is the interval of health checks of the API server while a watch is open.
	beat = 3 * time.Second
	// patience is the time limit of a health check.
	patience = 3 * time.Second
	// soon is the interval while no watch is open.
	soon = 100 * time.Millisecond
)

// How often Feeds may ask. It is far more than they do.
const (
	perSecond = 50
	atOnce    = 100
)

// Client returns a client for Feeds. It doesn't share a rate limit with other requests: otherwise a user who causes many of them would
// make all data of Feeds look stale.
func Client(config *rest.Config) (dynamic.Interface, error) {
	own := rest.CopyConfig(config)
	own.RateLimiter, own.QPS, own.Burst = nil, perSecond, atOnce
	return dynamic.NewForConfig(own)
}

// watching records whether a watch is open, and when that was last confirmed.
type watching struct {
	mu        sync.Mutex
	open      int
	opened    int // how often
	confirmed time.Time
}

// Confirmed returns when the Feed was last known to have the API server's state; zero: never.
func (f *Feed[T]) Confirmed() time.Time {
	f.watch.mu.Lock()
	defer f.watch.mu.Unlock()
	return f.watch.confirmed
}

// Run watches until ctx ends. It continues after each error.
func (f *Feed[T]) Run(ctx context.Context) {
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = f.o.Selector
			return f.o.Resource.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = f.o.Selector
			if o.SendInitialEvents != nil && *o.SendInitialEvents { // a list arrives again, as events
				f.mu.Lock()
				f.there = false
				f.mu.Unlock()
			}
			w, err := f.o.Resource.Watch(ctx, o)
			if err != nil {
				return nil, err
			}
			return f.watch.follow(w), nil
		},
	}
	r := toolscache.NewReflectorWithOptions(lw, &unstructured.Unstructured{}, f, toolscache.ReflectorOptions{
		Name: f.o.Name, TypeDescription: f.o.Name,
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Steps: 20, Cap: 2 * time.Second, Jitter: 0.5},
	})
	var beats sync.WaitGroup
	beats.Go(func() { f.confirm(ctx) })
	r.RunWithContext(ctx)
	beats.Wait()
}

// confirm asks the API server again and again. A watch over a connection that is dead looks as if nothing happened.
func (f *Feed[T]) confirm(ctx context.Context) {
	for {
		pause := soon
		if opened := f.watch.session(); opened != 0 {
			began := time.Now()
			err := f.ask(ctx)
			// A list has come, and the watch after it was open all the time.
			if err == nil && f.complete() && f.watch.confirm(opened, began) {
				pause = beat
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (f *Feed[T]) complete() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.there
}

// ask reads one object, past all caches.
func (f *Feed[T]) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := f.o.Resource.List(ctx, metav1.ListOptions{LabelSelector: f.o.Selector, Limit: 1}); err != nil {
		return fmt.Errorf("list %s: %w", f.o.Name, err)
	}
	return nil
}

// session is which watch is open, 0 if none.
func (w *watching) session() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == 0 {
		return 0
	}
	return w.opened
}

// confirm reports whether the same watch is open as before.
func (w *watching) confirm(opened int, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if opened == 0 || w.open == 0 || w.opened != opened {
		return false
	}
	w.confirmed = at
	return true
}

// read notes that everything was listed, as it was at a time.
func (w *watching) read(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at.After(w.confirmed) {
		w.confirmed = at
	}
}

// follow notes when a watch ends.
func (w *watching) follow(of watch.Interface) watch.Interface {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open++
	w.opened++
	out := &followed{Interface: of, out: make(chan watch.Event), stopped: make(chan struct{})}
	go out.pump(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open--
	})
	return out
}

// followed is a watch whose end is noticed.
type followed struct {
	watch.Interface
	out     chan watch.Event
	once    sync.Once
	stopped chan struct{} // closed by Stop, so that the sender doesn't wait for a reader that has left
}

// Stop ends the watch.
func (f *followed) Stop() {
	f.once.Do(func() { close(f.stopped) })
	f.Interface.Stop()
}

// ResultChan returns the events of the watch.
func (f *followed) ResultChan() <-chan watch.Event { return f.out }

func (f *followed) pump(ended func()) {
	defer close(f.out)
	defer ended()
	for e := range f.Interface.ResultChan() {
		select {
		case f.out <- e:
		case <-f.stopped:
			return
		}
	}
}
