package ready

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// feed keeps the objects that waits read up to date: one list and one watch per kind of a namespace, as long as someone waits in it.
type feed struct {
	stores []cache.Store
	synced []cache.InformerSynced
	stop   context.CancelFunc
	done   func() // waits for the informers to end
	users  int

	lock   sync.Mutex
	wake   map[chan struct{}]struct{}
	denied error // why the API doesn't allow reading
}

// join returns the feed of a namespace, which the first caller starts, and a function to leave it.
func (c *Checker) join(ctx context.Context, namespace string, wake chan struct{}) (*feed, func()) {
	c.lock.Lock()
	defer c.lock.Unlock()
	f := c.feeds[namespace]
	if f == nil {
		// The first waiter's end must not take the feed from the others.
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		f = &feed{stop: stop, wake: map[chan struct{}]struct{}{}}
		f.start(own, informers.NewSharedInformerFactoryWithOptions(c.client, 0,
			informers.WithNamespace(namespace), informers.WithTransform(withoutManagedFields)))
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
		f.done()
	}
}

func (f *feed) start(ctx context.Context, factory informers.SharedInformerFactory) {
	apps, core := factory.Apps().V1(), factory.Core().V1()
	all := []cache.SharedIndexInformer{
		apps.Deployments().Informer(), apps.DaemonSets().Informer(), apps.StatefulSets().Informer(),
		apps.ReplicaSets().Informer(), apps.ControllerRevisions().Informer(), factory.Batch().V1().Jobs().Informer(),
		core.Pods().Informer(), core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer(),
		core.Nodes().Informer(), factory.Storage().V1().StorageClasses().Informer(),
	}
	for _, i := range all {
		// An informer that hasn't started yet takes handlers without an error.
		_ = i.SetWatchErrorHandler(f.failed)
		_, _ = i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { f.changed() }, UpdateFunc: func(_, _ any) { f.changed() }, DeleteFunc: func(any) { f.changed() },
		})
		f.stores, f.synced = append(f.stores, i.GetStore()), append(f.synced, i.HasSynced)
	}
	factory.StartWithContext(ctx)
	f.done = factory.Shutdown
}

// changed wakes the waiters. One signal is enough for many changes.
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

// failed records errors that patience doesn't solve. Other errors are those of a watch that ends or of an API server that doesn't answer:
// the informer retries.
func (f *feed) failed(_ *cache.Reflector, err error) {
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		return
	}
	f.lock.Lock()
	f.denied = err
	f.lock.Unlock()
	f.changed()
}

func (f *feed) ready() (bool, error) {
	f.lock.Lock()
	err := f.denied
	f.lock.Unlock()
	if err != nil {
		return false, err
	}
	for _, synced := range f.synced {
		if !synced() {
			return false, nil
		}
	}
	return true, nil
}

// snapshotOf returns the current content of the feeds.
func snapshotOf(feeds []*feed) *snapshot {
	out := &snapshot{now: time.Now()}
	seen := map[any]bool{}
	for _, f := range feeds {
		for _, store := range f.stores {
			for _, o := range store.List() {
				// Kinds without a namespace are in every feed.
				if m, err := meta.Accessor(o); err == nil && (len(feeds) == 1 || !seen[m.GetUID()] || m.GetUID() == "") {
					seen[m.GetUID()] = true
					out.put(o)
				}
			}
		}
	}
	return out.index()
}

func withoutManagedFields(o any) (any, error) {
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
	}
	return o, nil
}
