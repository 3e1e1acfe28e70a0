package cell

import "testing"

// Persist writes and reads a pod's place. If changed is set, it writes only the part that a downgrade changes.
type Persist func(r *Request, p *Placement, slot int, changed bool) (*Placement, int, error)

// WalkWith runs random walks with the caller's storage for annotations.
func WalkWith(t *testing.T, walks int, persist func() Persist) {
	t.Helper()
	for seed := range walks {
		data := randomWalk(uint64(seed), 300)
		set := func(w *world) { w.every, w.persist = 32, persist() }
		if _, err := play(data, nil, set); err != nil {
			report(t, data, set)
			t.Fatalf("seed %d: %s", seed, kind(err))
		}
	}
}
