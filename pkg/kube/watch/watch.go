// Package watch keeps the objects of one kind in the state that the API server has.
// In: a list and a watch of client-go, and the part of an object to keep. Out: these parts, typed, by key; each change; whether they are
// current. An object that can't be read is left out, without affecting others.
//
// It uses client-go's reflector. An informer doesn't report when it has passed on all of a later list, nor that a connection is lost.
// Two programs use informers: kube-scheduler shares its own with pkg/scheduler/gangs, and the caches of pkg/job/controller need indexes,
// several handlers each, and controller-runtime's sources.
package watch

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// Source lists and watches objects.
type Source struct {
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch func(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
}

// From returns the Source of a client, for the objects that the selectors of only match.
func From[L runtime.Object](client interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error)
}, only metav1.ListOptions) Source {
	selected := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector, o.FieldSelector = only.LabelSelector, only.FieldSelector
		return o
	}
	return Source{
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, selected(o))
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return client.Watch(ctx, selected(o))
		},
	}
}

// ErrSkip is returned by Keep for an object that isn't kept.
var ErrSkip = errors.New("not kept")

// Options of a Store of objects of type O.
type Options[O runtime.Object, T any] struct {
	Name   string // the name of the objects, in the plural, for errors and logs: users
	Source Source
	// Keep returns the part of an object that is kept. It must not keep or change the object itself, unless that is the part.
	Keep func(O) (T, error)
	// Namespaces makes the keys namespace/name, for objects of several namespaces. Otherwise they are names.
	Namespaces bool
	// Changed is called in order after each change was applied to the Store: with one change, or with all changes of a list and the list's
	// version. It must not block.
	Changed func(changes []Change[T], list string)
	// Health is called with nil when a watch begins, and with the reason when a list or watch fails.
	Health func(error)
	// Relist makes the Store list the objects after an interrupted watch, instead of requesting the changes since then. The result is then
	// correct even if the API server was restored from a backup and has counted past the last version since.
	Relist bool
	// Confirm makes the Store check every few seconds that the API server responds while the watch is open; see Confirmed.
	Confirm bool
	// Reads lists the objects for Load. A Store with Reads remembers removed objects for some time: see Put.
	Reads Source
	Log   *slog.Logger // nil discards the log
}

// Item is the kept part of an object. It never changes.
type Item[T any] struct {
	UID     types.UID
	Version string
	Value   T
}

// Change is a change of an object. If an object replaces another one of the same name, that is two changes.
type Change[T any] struct {
	Key string
	Was *Item[T] // nil if it wasn't kept
	Is  *Item[T] // nil if it isn't kept now
	// Last is the last state of a removed object, with the version of its removal; nil if the removal itself wasn't observed.
	Last *Item[T]
}

// Store keeps objects. Values are shared: they must not be changed.
type Store[T any] struct {
	o Options[runtime.Object, T]

	mu    sync.RWMutex
	items map[string]entry[T]
	bad   map[string]string // why an object is left out
	gone  map[types.UID]tombstone

	version atomic.Int64 // increases while mu is held
	synced  atomic.Bool
	session session
	loads   chan struct{} // one for each running Load
}

// entry is a kept object. ahead means that this program wrote or listed it, so that the watch may still send earlier
// versions.
type entry[T any] struct {
	*Item[T]
	ahead bool
}

// New returns a Store that keeps nothing yet.
func New[O runtime.Object, T any](o Options[O, T]) *Store[T] {
	if o.Changed == nil {
		o.Changed = func([]Change[T], string) {}
	}
	if o.Health == nil {
		o.Health = func(error) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Store[T]{
		o: Options[runtime.Object, T]{Name: o.Name, Source: o.Source, Namespaces: o.Namespaces, Changed: o.Changed, Health: o.Health, Relist: o.Relist,
			Confirm: o.Confirm, Reads: o.Reads, Log: o.Log, Keep: func(one runtime.Object) (value T, err error) {
				if typed, ok := one.(O); ok {
					return o.Keep(typed)
				}
				return value, ErrSkip
			}},
		items: map[string]entry[T]{}, bad: map[string]string{}, gone: map[types.UID]tombstone{}, loads: make(chan struct{}, maxLoads),
	}
}

// Get returns the kept part of an object.
func (s *Store[T]) Get(key string) (T, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if e, ok := s.items[key]; ok {
		return e.Value, true
	}
	var none T
	return none, false
}

// All returns the kept parts of all objects by key.
func (s *Store[T]) All() map[string]T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make(map[string]T, len(s.items))
	for key, e := range s.items {
		out[key] = e.Value
	}
	return out
}

// Bad returns the reasons why objects are left out, by key.
func (s *Store[T]) Bad() map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.bad)
}

// Version increases with each change. Get and All never return a change before its Version, so a value that is derived from them is
// current as long as the Version is unchanged.
func (s *Store[T]) Version() int64 { return s.version.Load() }

// Synced reports whether a whole list has been read and passed to Changed.
func (s *Store[T]) Synced() bool { return s.synced.Load() }
