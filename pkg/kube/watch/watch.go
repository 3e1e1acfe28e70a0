// Package watch keeps the objects of one kind in the state that the API server has.
// In: a list and a watch of client-go, and the part of an object to keep. Out: these parts, typed, by key; each change; whether the parts are
// current. An object that can't be read is left out and doesn't affect other objects.
//
// It uses client-go's reflector, because an informer reports neither that it has passed on all of a later list nor that a connection is lost. Two
// programs use informers: kube-scheduler shares its informers with pkg/scheduler/gangs, and the caches of pkg/job/controller need indexes, several
// handlers for each kind, and controller-runtime's sources.
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

// Source lists and watches the objects of one kind.
type Source struct {
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch func(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
}

// From returns a Source that lists and watches with a client. It selects the objects that match the label and field selectors of only.
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

// ErrSkip is the error that Keep returns for an object that the Store doesn't keep.
var ErrSkip = errors.New("not kept")

// Options configure a Store of objects of type O whose kept parts have type T.
type Options[O runtime.Object, T any] struct {
	Name   string // the plural name of the objects, for errors and logs: users
	Source Source
	// Keep returns the part of an object that the Store keeps. It must not keep or change the object itself, unless the part is the whole object.
	Keep func(O) (T, error)
	// Namespaces makes the keys namespace/name, for objects in several namespaces. Otherwise the keys are names.
	Namespaces bool
	// Changed is called in order, after the Store has applied each change. It gets either one change, or all changes of a list and the list's
	// version. It must not block.
	Changed func(changes []Change[T], list string)
	// Health is called with nil when a watch begins, and with the error when a list or watch fails.
	Health func(error)
	// Relist makes the Store list the objects after an interrupted watch, instead of requesting the changes since the last version. The result is
	// then correct even if the API server was restored from a backup and its versions have already passed the last version that the Store saw.
	Relist bool
	// Confirm makes the Store check every few seconds that the API server responds while the watch is open. See Confirmed.
	Confirm bool
	// Reads lists the objects for Load. A Store with Reads remembers removed objects for some time. See Put.
	Reads Source
	Log   *slog.Logger // nil discards the log
}

// Item is the kept part of an object. It never changes.
type Item[T any] struct {
	UID     types.UID
	Version string
	Value   T
}

// Change is a change of an object. If another object with the same name replaces an object, the Store reports two changes.
type Change[T any] struct {
	Key string
	Was *Item[T] // nil if the object wasn't kept before
	Is  *Item[T] // nil if the object isn't kept now
	// Last is the last state of a removed object, with the version of its removal. It is nil if the watch didn't observe the removal itself.
	Last *Item[T]
}

// Store keeps the parts of objects. Values are shared, so callers must not change them.
type Store[T any] struct {
	o Options[runtime.Object, T]

	mu    sync.RWMutex
	items map[string]entry[T]
	bad   map[string]string // why an object is left out, by key
	gone  map[types.UID]tombstone

	version atomic.Int64 // increases while mu is held
	synced  atomic.Bool
	session session
	loads   chan struct{} // holds an element for each running Load
}

// entry is a kept object. ahead means that this program itself wrote or listed the object, so that the watch may still send earlier versions.
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

// Get returns the kept part of the object with a key, and whether the Store keeps that object.
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

// Version returns a number that increases with each change. Get and All never return a change before Version counts it, so a value that is derived
// from their results is current as long as Version returns the same number.
func (s *Store[T]) Version() int64 { return s.version.Load() }

// Synced reports whether the Store has read a whole list and passed it to Changed.
func (s *Store[T]) Synced() bool { return s.synced.Load() }
