package people

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// changes notifies readers of changes of people and groups.
type changes struct {
	mu      sync.Mutex
	readers map[chan Change]bool
}

// waiting is the number of changes that a channel can buffer for a slow reader.
const waiting = 32

// Changed returns a channel that receives changes until stop is called. A slow reader receives the zero Change instead of the changes that it missed.
func (d *Directory) Changed() (changed <-chan Change, stop func()) {
	c := make(chan Change, waiting)
	d.changes.mu.Lock()
	defer d.changes.mu.Unlock()
	if d.changes.readers == nil {
		d.changes.readers = map[chan Change]bool{}
	}
	d.changes.readers[c] = true
	return c, func() {
		d.changes.mu.Lock()
		defer d.changes.mu.Unlock()
		delete(d.changes.readers, c)
	}
}

func (c *changes) tell(change Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.readers {
		select {
		case r <- change:
			continue
		default:
		}
		// If the channel is full, replace all buffered changes with one zero Change.
		for drained := false; !drained; {
			select {
			case <-r:
			default:
				drained = true
			}
		}
		r <- Change{}
	}
}

// hooks holds the functions that are called for each token Secret that this process deletes. They return before the deletion returns.
type hooks struct {
	mu  sync.Mutex
	all []func(secret string, uid types.UID)
}

// OnRevoke registers a function that is called with the name and the UID of each Secret that the Directory deletes. So a token that was revoked in
// this process becomes invalid at once.
func (d *Directory) OnRevoke(tell func(secret string, uid types.UID)) {
	d.revoked.mu.Lock()
	defer d.revoked.mu.Unlock()
	d.revoked.all = append(d.revoked.all, tell)
}

func (h *hooks) tell(secret string, uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, tell := range h.all {
		tell(secret, uid)
	}
}
