package listing

import (
	"iter"
	"slices"
)

// order is a list of entries that begins with the oldest entry. Most entries are added at the end, where this costs least.
type order []*entry

func oldestFirst(a, b *entry) int { return NewestFirst(&b.row, &a.row) }

func (o *order) add(e *entry) {
	i, _ := slices.BinarySearchFunc(*o, e, oldestFirst)
	*o = slices.Insert(*o, i, e)
}

func (o *order) remove(e *entry) {
	if i, ok := slices.BinarySearchFunc(*o, e, oldestFirst); ok {
		*o = slices.Delete(*o, i, i+1)
	}
}

// of returns the order for a key. It creates the order if it doesn't exist.
func of[K comparable](m map[K]*order, key K) *order {
	if m[key] == nil {
		m[key] = &order{}
	}
	return m[key]
}

// remove removes an entry from the order for a key. If the order is then empty, remove deletes it.
func remove[K comparable](m map[K]*order, key K, e *entry) {
	o := m[key]
	if o == nil {
		return
	}
	if o.remove(e); len(*o) == 0 {
		delete(m, key)
	}
}

// total returns how many entries the orders have together.
func total(all []*order) (n int) {
	for _, o := range all {
		n += len(*o)
	}
	return n
}

// newest returns the entries of all orders after a cursor, starting with the newest entry. It returns an entry once, even if several orders
// contain it.
func newest(all []*order, after Cursor) iter.Seq[*entry] {
	rest := make([]order, len(all))
	for i, o := range all {
		n, _ := slices.BinarySearchFunc(*o, after, func(e *entry, c Cursor) int {
			if c.Passed(&e.row) {
				return -1
			}
			return 1
		})
		rest[i] = (*o)[:n]
	}
	return func(yield func(*entry) bool) {
		for {
			var next *entry
			for _, o := range rest {
				if n := len(o); n > 0 && (next == nil || oldestFirst(o[n-1], next) > 0) {
					next = o[n-1]
				}
			}
			if next == nil || !yield(next) {
				return
			}
			for i, o := range rest {
				if n := len(o); n > 0 && o[n-1] == next {
					rest[i] = o[:n-1]
				}
			}
		}
	}
}
