// Package feed keeps the objects of one resource, as they are in the API server.
// In: a resource, a decoder for one object. Out: the decoded objects, by watch or read once; whether they are confirmed; which changed.
// An object that can't be decoded is left out, and stops nothing else.
package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

// Options of a Feed.
type Options[T any] struct {
	Resource dynamic.ResourceInterface // of Client
	Reads    dynamic.ResourceInterface // for Load, which requests cause; nil is Resource
	Name     string                    // for errors and logs: users
	Selector string                    // of labels
	// Decode makes an item of an object, which it must not keep or change.
	Decode func(*unstructured.Unstructured) (T, error)
	// Changed is called with the name of an object that was added, changed or removed; "" if all may have changed. It must not block.
	Changed func(object string)
	Log     *slog.Logger
}

// Feed keeps objects. Items are shared: they must not be changed.
type Feed[T any] struct {
	o Options[T]

	mu    sync.RWMutex
	items map[string]item[T] // by name of the object
	bad   map[string]string  // why an object is left out
	gone  map[types.UID]tombstone
	there bool // a list has come

	version atomic.Int64 // goes up while mu is held

	watch watching
	loads chan struct{} // one for each running Load
}

// A Load lists everything: more than maxLoads at once would only be slow. Further ones wait for loadWait.
const (
	maxLoads = 8
	loadWait = 2 * time.Second
)

// ErrBusy is returned by a Load if too many others are running.
var ErrBusy = errors.New("too many changes at once")

type item[T any] struct {
	uid     types.UID
	version string
	value   T
}

// tombstone records a removed object. Late events of its life don't restore it.
type tombstone struct {
	at      time.Time
	version string // when it was removed; empty: it isn't known, and the object can't return
}

// remember is how long a tombstone stays: responses and events of the object's life may still arrive.
const remember = 5 * time.Minute

// covers reports whether a version of the object is from before its removal. An object that is labelled again, and so selected again, has
// a later version.
func (t tombstone) covers(version string) bool {
	if t.version == "" {
		return true
	}
	n, err := resourceversion.CompareResourceVersion(version, t.version)
	return err != nil || n <= 0
}

// New returns a Feed that keeps nothing yet.
func New[T any](o Options[T]) *Feed[T] {
	if o.Changed == nil {
		o.Changed = func(string) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Reads == nil {
		o.Reads = o.Resource
	}
	return &Feed[T]{o: o, loads: make(chan struct{}, maxLoads), items: map[string]item[T]{}, bad: map[string]string{}, gone: map[types.UID]tombstone{}}
}

// Get returns a decoded object.
func (f *Feed[T]) Get(object string) (T, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	i, ok := f.items[object]
	return i.value, ok
}

// All returns all items, by name of the object.
func (f *Feed[T]) All() map[string]T {
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := make(map[string]T, len(f.items))
	for name, i := range f.items {
		out[name] = i.value
	}
	return out
}

// Bad says why objects are left out, by name of the object.
func (f *Feed[T]) Bad() map[string]string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := make(map[string]string, len(f.bad))
	for name, why := range f.bad {
		out[name] = why
	}
	return out
}

// Version increases with each change. Get and All never return a change before its Version, so a value that is derived from them is
// current as long as the Version is unchanged.
func (f *Feed[T]) Version() int64 { return f.version.Load() }

// Deleted reports whether an object was removed recently.
func (f *Feed[T]) Deleted(uid types.UID) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	_, gone := f.gone[uid]
	return gone
}

// Load reads everything once.
func (f *Feed[T]) Load(ctx context.Context) error {
	select {
	case f.loads <- struct{}{}:
		defer func() { <-f.loads }()
	case <-time.After(loadWait):
		return fmt.Errorf("list %s: %w", f.o.Name, ErrBusy)
	case <-ctx.Done():
		return ctx.Err()
	}
	began := time.Now()
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return f.o.Reads.List(ctx, o)
	})
	list, _, err := p.List(ctx, metav1.ListOptions{LabelSelector: f.o.Selector})
	if err != nil {
		return fmt.Errorf("list %s: %w", f.o.Name, err)
	}
	all, version, err := contents(list)
	if err != nil {
		return err
	}
	if err := f.Replace(all, version); err != nil {
		return err
	}
	f.watch.read(began)
	return nil
}

// Put keeps the API server's response to a write, at once. Earlier events don't undo it.
func (f *Feed[T]) Put(u *unstructured.Unstructured) {
	f.mu.Lock()
	known := f.put(u)
	f.mu.Unlock()
	if known {
		f.o.Changed(u.GetName())
	}
}

// Drop removes a deleted object at once.
func (f *Feed[T]) Drop(object string, uid types.UID) {
	f.mu.Lock()
	defer f.o.Changed(object)
	defer f.mu.Unlock()
	f.bury(uid, "")
	if f.items[object].uid == uid {
		delete(f.items, object)
		delete(f.bad, object)
		f.version.Add(1)
	}
}

// bury records that an object was removed, and drops old records. An object that was deleted here can't return, even if events arrive
// later.
func (f *Feed[T]) bury(uid types.UID, version string) {
	now := time.Now()
	maps.DeleteFunc(f.gone, func(_ types.UID, t tombstone) bool { return now.Sub(t.at) > remember })
	if have, ok := f.gone[uid]; !ok || have.version != "" {
		f.gone[uid] = tombstone{now, version}
	}
}

// put keeps an object, unless the known object of that name is newer, of this life or of a later one. It reports whether something
// changed.
func (f *Feed[T]) put(u *unstructured.Unstructured) bool {
	name, uid := u.GetName(), u.GetUID()
	if t, ok := f.gone[uid]; ok {
		if t.covers(u.GetResourceVersion()) {
			return false
		}
		delete(f.gone, uid)
	}
	if have, ok := f.items[name]; ok && !newer(u.GetResourceVersion(), have.version) {
		return false
	}
	value, err := f.o.Decode(u)
	f.version.Add(1)
	if err != nil {
		delete(f.items, name)
		if f.bad[name] != err.Error() {
			f.bad[name] = err.Error()
			f.o.Log.Warn("an object is left out", "kind", f.o.Name, "object", name, "error", err)
		}
		return true
	}
	delete(f.bad, name)
	f.items[name] = item[T]{uid: uid, version: u.GetResourceVersion(), value: value}
	return true
}

// newer reports whether version a of an object is later than version b. It returns true if the versions can't be compared.
func newer(a, b string) bool {
	n, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || n > 0
}

// Add implements the store of a reflector, for a new object.
func (f *Feed[T]) Add(o any) error {
	if u, ok := o.(*unstructured.Unstructured); ok {
		f.Put(u)
	}
	return nil
}

// Update implements the store of a reflector, for a changed object.
func (f *Feed[T]) Update(o any) error { return f.Add(o) }

// Delete implements the store of a reflector, for a removed object.
func (f *Feed[T]) Delete(o any) error {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	f.mu.Lock()
	f.bury(u.GetUID(), u.GetResourceVersion())
	if have, ok := f.items[u.GetName()]; ok && have.uid != u.GetUID() {
		f.mu.Unlock() // another object already has that name
		return nil
	}
	delete(f.items, u.GetName())
	delete(f.bad, u.GetName())
	f.version.Add(1)
	f.mu.Unlock()
	f.o.Changed(u.GetName())
	return nil
}

// Replace implements the store of a reflector, for a whole list. Objects that were written here after the list was made stay.
func (f *Feed[T]) Replace(all []any, version string) error {
	f.mu.Lock()
	listed := map[string]bool{}
	for _, o := range all {
		if u, ok := o.(*unstructured.Unstructured); ok {
			listed[u.GetName()] = true
			f.put(u)
		}
	}
	for name, i := range f.items {
		if !listed[name] && !newer(i.version, version) {
			delete(f.items, name)
			f.bury(i.uid, version)
		}
	}
	for name := range f.bad {
		if !listed[name] {
			delete(f.bad, name)
		}
	}
	f.there = true
	f.version.Add(1)
	f.mu.Unlock()
	f.o.Changed("")
	return nil
}

// Resync implements the store of a reflector.
func (f *Feed[T]) Resync() error { return nil }

// contents returns the objects of a list, and its version.
func contents(list runtime.Object) (all []any, version string, err error) {
	l, ok := list.(*unstructured.UnstructuredList)
	if !ok { // of several pages
		paged, isList := list.(*metav1.List)
		if !isList {
			return nil, "", fmt.Errorf("the API server answered %T", list)
		}
		for i := range paged.Items {
			if u, isObject := paged.Items[i].Object.(*unstructured.Unstructured); isObject {
				all = append(all, u)
			}
		}
		return all, paged.ResourceVersion, nil
	}
	for i := range l.Items {
		all = append(all, &l.Items[i])
	}
	return all, l.GetResourceVersion(), nil
}
