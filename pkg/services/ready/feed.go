package ready

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openpai/paictl/pkg/kube/watch"
)

// feed keeps the objects for waits up to date. feed uses one list and one watch per kind and namespace. feed runs while at least one wait uses the
// feed.
type feed struct {
	stores []*watch.Store[runtime.Object]
	stop   context.CancelFunc
	runs   sync.WaitGroup
	users  int

	lock   sync.Mutex
	wake   map[chan struct{}]struct{}
	denied error // why the API doesn't allow reading
}

// join returns the feed of a namespace, and a function that leaves the feed. The first call for a namespace starts the feed.
func (c *Checker) join(ctx context.Context, namespace string, wake chan struct{}) (*feed, func()) {
	c.lock.Lock()
	defer c.lock.Unlock()
	f := c.feeds[namespace]
	if f == nil {
		// The feed must continue for other waits after the first wait has ended.
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		f = &feed{stop: stop, wake: map[chan struct{}]struct{}{}}
		for _, k := range slices.Concat(namespaced, clusterWide) {
			f.start(own, k.from(c.client, namespace))
		}
		c.feeds[namespace] = f
	}
	f.users++
	f.lock.Lock()
	f.wake[wake] = struct{}{}
	f.lock.Unlock()
	return f, func() { c.leave(namespace, f, wake) }
}

func (c *Checker) leave(namespace string, f *feed, wake chan struct{}) {
	c.lock.Lock()
	defer c.lock.Unlock()
	f.lock.Lock()
	delete(f.wake, wake)
	f.lock.Unlock()
	if f.users--; f.users == 0 {
		delete(c.feeds, namespace)
		f.stop()
		f.runs.Wait()
	}
}

func (f *feed) start(ctx context.Context, from watch.Source) {
	store := watch.New(watch.Options[runtime.Object, runtime.Object]{Name: "objects of services", Source: from, Keep: withoutManagedFields,
		Changed: func([]watch.Change[runtime.Object], string) { f.changed() }, Health: f.health})
	f.stores = append(f.stores, store)
	f.runs.Go(func() { store.Run(ctx) })
}

// changed wakes all waits. Several changes may produce only one signal.
func (f *feed) changed() {
	f.lock.Lock()
	defer f.lock.Unlock()
	for c := range f.wake {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// health records a permanent error and wakes the waits. After other errors, such as the end of a watch, the store retries. A nil error means that a
// list was read.
func (f *feed) health(err error) {
	if err != nil && !watch.Refused(err) {
		return
	}
	if err != nil {
		f.lock.Lock()
		f.denied = err
		f.lock.Unlock()
	}
	f.changed()
}

func (f *feed) ready() (bool, error) {
	f.lock.Lock()
	err := f.denied
	f.lock.Unlock()
	if err != nil {
		return false, err
	}
	for _, store := range f.stores {
		if !store.Synced() {
			return false, nil
		}
	}
	return true, nil
}

func snapshotOf(feeds []*feed) *snapshot {
	out := &snapshot{now: time.Now()}
	seen := map[any]bool{}
	for _, f := range feeds {
		for _, store := range f.stores {
			for _, o := range store.All() {
				// Every feed contains the objects without a namespace.
				if m, err := meta.Accessor(o); err == nil && (len(feeds) == 1 || !seen[m.GetUID()] || m.GetUID() == "") {
					seen[m.GetUID()] = true
					out.put(o)
				}
			}
		}
	}
	return out.index()
}

func withoutManagedFields(o runtime.Object) (runtime.Object, error) {
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
	}
	return o, nil
}
