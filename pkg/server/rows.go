package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/openpai/paictl/pkg/server/wire"
)

// Rows of lists that are in memory at a time: a row takes about a kilobyte until it is written as JSON.
const (
	maxRows       = 60_000 // of all
	maxPersonRows = 50_000 // of one person, which is the longest list
	// rowsTime is how long a list waits for others to be answered.
	rowsTime = 5 * time.Second
)

// rows bounds how many rows are read and answered at a time.
type rows struct {
	shares // of each person

	all  *semaphore.Weighted
	wait time.Duration
}

func newRows() *rows {
	return &rows{shares: shares{each: map[string]*share{}}, all: semaphore.NewWeighted(maxRows), wait: rowsTime}
}

// take waits for a number of rows of a person; give gives them back.
func (s *rows) take(ctx context.Context, who string, n int) (give func(), err error) {
	weight := int64(min(max(n, 1), maxPersonRows))
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	own, err := s.shares.take(ctx, who, weight, maxPersonRows)
	if err != nil {
		return nil, busy("many of your lists are being answered", "ask for fewer rows, or for one list after the other")
	}
	if err := s.all.Acquire(ctx, weight); err != nil {
		own()
		return nil, busy("many lists are being answered", "ask for fewer rows, or try again in a moment")
	}
	return func() {
		s.all.Release(weight)
		own()
	}, nil
}

// retryBusy is when to try again where others are being answered.
const retryBusy = 2 * time.Second

func busy(message, remedy string) error {
	return &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeUnavailable, Message: message, Remedy: remedy, RetryAfter: retryBusy}
}

// Rows waits until a list of so many rows may be read. They count until JSON has written them: then it is counted what waits for its reader.
func (c *Call) Rows(n int) error {
	give, err := c.Weigh(n)
	if err == nil {
		c.read = sync.OnceFunc(give)
		c.after(c.read)
	}
	return err
}

// Weigh waits as Rows does; they count until give is called.
func (c *Call) Weigh(n int) (give func(), err error) {
	if c.rows == nil {
		return func() {}, nil
	}
	return c.rows(n)
}

// weighed is a request for a list: it knows how many rows it asks for.
type weighed interface{ Rows() int }
