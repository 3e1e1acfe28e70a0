package watch

import (
	"errors"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// kept holds the part of an object that the Store keeps, from a list or an event.
type kept[T any] struct {
	key  string
	item *Item[T]
	err  error
}

// keep extracts the part of o that the Store keeps. ok is false if o isn't an object.
func (s *Store[T]) keep(o any) (k kept[T], ok bool) {
	object, ok := o.(runtime.Object)
	if !ok {
		return k, false
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return k, false
	}
	k = kept[T]{key: m.GetName(), item: &Item[T]{UID: m.GetUID(), Version: m.GetResourceVersion()}}
	if s.o.Namespaces && m.GetNamespace() != "" {
		k.key = m.GetNamespace() + "/" + k.key
	}
	k.item.Value, k.err = s.o.Keep(object)
	return k, true
}

// Add implements cache.ReflectorStore for a new object.
func (s *Store[T]) Add(o any) error { return s.Update(o) }

// Update implements cache.ReflectorStore for a changed object.
func (s *Store[T]) Update(o any) error {
	if k, ok := s.keep(o); ok {
		s.change(func(changes []Change[T]) []Change[T] { return s.put(changes, k, false) })
	}
	return nil
}

// Delete implements cache.ReflectorStore for a removed object.
func (s *Store[T]) Delete(o any) error {
	if k, ok := s.keep(o); ok {
		s.change(func(changes []Change[T]) []Change[T] {
			s.bury(k.item.UID, k.item.Version, false)
			have := s.items[k.key].Item
			if have == nil || have.UID == k.item.UID { // otherwise another object already has that name
				switch {
				case k.err == nil:
				case have == nil:
					k.item = nil
				default:
					k.item.Value = have.Value
				}
				changes = s.remove(changes, k.key, k.item)
			}
			return changes
		})
	}
	return nil
}

// Replace implements cache.ReflectorStore for a whole list.
func (s *Store[T]) Replace(objects []any, version string) error {
	all := make([]kept[T], 0, len(objects))
	for _, o := range objects {
		if k, ok := s.keep(o); ok {
			all = append(all, k)
		}
	}
	s.replace(all, version, false)
	return nil
}

// Resync implements cache.ReflectorStore. It does nothing.
func (s *Store[T]) Resync() error { return nil }

// Clear removes all objects and reports their removals.
func (s *Store[T]) Clear() {
	s.change(func(changes []Change[T]) []Change[T] {
		for key := range s.items {
			changes = s.remove(changes, key, nil)
		}
		return changes
	})
}

// Forget drops objects that aren't needed until their next change, and frees their memory. It doesn't report the removals.
func (s *Store[T]) Forget(keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.items, key)
	}
	rest := make(map[string]entry[T], len(s.items)) // a map never shrinks
	maps.Copy(rest, s.items)
	s.items = rest
}

// change calls apply while mu is held, and passes the changes that apply returns to Changed.
func (s *Store[T]) change(apply func([]Change[T]) []Change[T]) {
	s.mu.Lock()
	changes := apply(nil)
	s.mu.Unlock()
	if len(changes) > 0 {
		s.o.Changed(changes, "")
	}
}

// replace applies a whole list. asked means that this program requested the list in addition to the watch. The watch may then have seen later or
// earlier changes than the list. Objects that are known to be newer than the list are kept.
func (s *Store[T]) replace(all []kept[T], version string, asked bool) {
	s.mu.Lock()
	missing := make(map[string]bool, len(s.items)+len(s.bad))
	for key := range s.items {
		missing[key] = true
	}
	for key := range s.bad {
		missing[key] = true
	}
	var changes []Change[T]
	for _, k := range all {
		delete(missing, k.key)
		changes = s.put(changes, k, asked)
	}
	for key := range missing {
		have := s.items[key]
		if have.Item == nil || (asked || have.ahead) && newer(have.Version, version) {
			delete(s.bad, key)
			continue
		}
		s.bury(have.UID, version, asked)
		changes = s.remove(changes, key, nil)
	}
	s.version.Add(1)
	s.mu.Unlock()
	s.o.Changed(changes, version)
	s.synced.Store(true)
}

// put stores an object. asked means that the object comes from the response to a request of this program. The response may have been delayed, so it
// is ignored if the Store has a newer state of the object, or a later object with the same name. Events of the watch arrive in order. They are
// ignored only if this program has seen a newer state in a response.
func (s *Store[T]) put(changes []Change[T], k kept[T], asked bool) []Change[T] {
	if t, ok := s.gone[k.item.UID]; ok {
		if (asked || t.ahead) && t.covers(k.item.Version) {
			return changes
		}
		delete(s.gone, k.item.UID)
	}
	have := s.items[k.key]
	switch {
	case have.Item == nil:
	case have.UID == k.item.UID && have.Version == k.item.Version && have.Version != "": // unchanged
		s.items[k.key] = entry[T]{have.Item, have.ahead && asked}
		return changes
	case (asked || have.ahead) && !newer(k.item.Version, have.Version):
		return changes
	}
	if k.err != nil {
		return s.leaveOut(changes, k)
	}
	if have.Item != nil && have.UID != k.item.UID {
		changes, have = s.remove(changes, k.key, nil), entry[T]{}
	}
	delete(s.bad, k.key)
	s.items[k.key] = entry[T]{k.item, asked}
	s.version.Add(1)
	return append(changes, Change[T]{Key: k.key, Was: have.Item, Is: k.item})
}

// leaveOut removes an object that can't be read or that Keep skips. It records why an object can't be read.
func (s *Store[T]) leaveOut(changes []Change[T], k kept[T]) []Change[T] {
	why := k.err.Error()
	switch {
	case errors.Is(k.err, ErrSkip):
		if s.items[k.key].Item == nil {
			return changes
		}
		return s.remove(changes, k.key, nil)
	case s.bad[k.key] != why:
		s.o.Log.Warn("an object is left out", "kind", s.o.Name, "object", k.key, "error", why)
	}
	changes = s.remove(changes, k.key, nil)
	s.bad[k.key] = why
	return changes
}

// remove removes an object from the Store. It reports the removal even if the object wasn't kept.
func (s *Store[T]) remove(changes []Change[T], key string, last *Item[T]) []Change[T] {
	was := s.items[key].Item
	delete(s.items, key)
	delete(s.bad, key)
	s.version.Add(1)
	return append(changes, Change[T]{Key: key, Was: was, Last: last})
}

// tombstone records a removed object. ahead means that this program learned of the removal before the watch, by its own request. The watch may then
// still send earlier events of the object.
type tombstone struct {
	at      time.Time
	version string // version of the removal; empty if the version isn't known, in which case the object can't return
	ahead   bool
}

// remember is how long a tombstone is kept. Responses and events from before the removal may arrive until then.
const remember = 5 * time.Minute

// covers reports whether a version of the object is from before its removal. If an object is selected again because its labels changed, its version
// is later than the removal.
func (t tombstone) covers(version string) bool {
	n, err := resourceversion.CompareResourceVersion(version, t.version)
	return err != nil || n <= 0
}

// bury records that an object was removed, and drops old tombstones. An object that this program deleted can't return, even if events of the object
// arrive later.
func (s *Store[T]) bury(uid types.UID, version string, ahead bool) {
	if s.o.Reads.List == nil {
		return
	}
	now := time.Now()
	maps.DeleteFunc(s.gone, func(_ types.UID, t tombstone) bool { return now.Sub(t.at) > remember })
	if have, ok := s.gone[uid]; !ok || have.version != "" {
		s.gone[uid] = tombstone{now, version, ahead}
	}
}

// newer reports whether version a of an object is later than version b. It returns true if the versions can't be compared.
func newer(a, b string) bool {
	n, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || n > 0
}
