package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/openpai/paictl/pkg/server/wire"
)

// Limits of the rows of lists in memory. A row takes about a kilobyte until it has been written as JSON.
const (
	maxRows       = 60_000 // in total
	maxPersonRows = 50_000 // of one person, and of the longest list
	// poolTime is how long a request waits until other requests release parts of a pool.
	poolTime = 5 * time.Second
)

// newRows returns a pool that limits the rows in memory.
func newRows() *pool {
	return newPool(maxRows, maxPersonRows,
		busy("many of your lists are being answered", "ask for fewer rows, or for one list after the other"),
		busy("many lists are being answered", "ask for fewer rows, or try again in a moment"))
}

// pool limits the use of a resource, in total and by key.
type pool struct {
	shares // of each key

	all             *semaphore.Weighted
	most, own       int64
	wait            time.Duration
	ownFull, allOut error
}

func newPool(most, own int64, ownFull, allOut error) *pool {
	return &pool{shares: shares{each: map[string]*share{}}, all: semaphore.NewWeighted(most), most: most, own: own, wait: poolTime, ownFull: ownFull, allOut: allOut}
}

// take waits until n more units fit into the share of a key and into the whole pool. It reduces a larger n to the share of one key. give releases the
// units.
func (s *pool) take(ctx context.Context, key string, n int) (give func(), err error) {
	weight := min(int64(max(n, 1)), s.own)
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	own, err := s.shares.take(ctx, key, weight, s.own)
	if err != nil {
		return nil, s.ownFull
	}
	if err := s.all.Acquire(ctx, weight); err != nil {
		own()
		return nil, s.allOut
	}
	return func() {
		s.all.Release(weight)
		own()
	}, nil
}

// retryBusy is the time after which a client should retry if the server is busy with other requests.
const retryBusy = 2 * time.Second

func busy(message, remedy string) error {
	return &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeUnavailable, Message: message, Remedy: remedy, RetryAfter: retryBusy}
}

// Rows waits until a list of n rows may be read. The rows count toward the limits until they are encoded. After that, their JSON counts until the
// client has read it.
func (c *Call) Rows(n int) error {
	give, err := c.Weigh(n)
	if err == nil {
		c.read = sync.OnceFunc(give)
		c.after(c.read)
	}
	return err
}

// Weigh waits like Rows, but the rows count until give is called.
func (c *Call) Weigh(n int) (give func(), err error) {
	if c.rows == nil {
		return func() {}, nil
	}
	return c.rows(n)
}

// weighed is a request for a list. Rows returns the maximum number of rows in the response.
type weighed interface{ Rows() int }
