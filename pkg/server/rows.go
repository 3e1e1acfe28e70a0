package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/openpai/paictl/pkg/server/wire"
)

// Rows of lists that are in memory at a time: a row takes about a kilobyte until it is sent.
const (
	maxRows       = 60_000 // of all
	maxPersonRows = 50_000 // of one person, which is the longest list
	// rowsTime is how long a list waits for others to be answered.
	rowsTime = 5 * time.Second
)

// rows bounds how many rows are read and answered at a time.
type rows struct {
	all  *semaphore.Weighted
	wait time.Duration

	mu   sync.Mutex
	each map[string]*share
}

// share is what one person has; those who ask hold it.
type share struct {
	*semaphore.Weighted
	holders int
}

func newRows() *rows {
	return &rows{all: semaphore.NewWeighted(maxRows), wait: rowsTime, each: map[string]*share{}}
}

// take waits for a number of rows of a person; give gives them back.
func (s *rows) take(ctx context.Context, who string, n int) (give func(), err error) {
	weight := int64(min(max(n, 1), maxPersonRows))
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	own := s.hold(who)
	if err := own.Acquire(ctx, weight); err != nil {
		s.leave(who)
		return nil, busy("many of your lists are being answered", "ask for fewer rows, or for one list after the other")
	}
	if err := s.all.Acquire(ctx, weight); err != nil {
		own.Release(weight)
		s.leave(who)
		return nil, busy("many lists are being answered", "ask for fewer rows, or try again in a moment")
	}
	return func() {
		s.all.Release(weight)
		own.Release(weight)
		s.leave(who)
	}, nil
}

func (s *rows) hold(who string) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.each[who]
	if own == nil {
		own = &share{Weighted: semaphore.NewWeighted(maxPersonRows)}
		s.each[who] = own
	}
	own.holders++
	return own
}

func (s *rows) leave(who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.each[who].holders--; s.each[who].holders == 0 {
		delete(s.each, who)
	}
}

// retryBusy is when to try again where others are being answered.
const retryBusy = 2 * time.Second

func busy(message, remedy string) error {
	return &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeUnavailable, Message: message, Remedy: remedy, RetryAfter: retryBusy}
}

// Rows waits until a list of so many rows may be read. They count until the answer is sent.
func (c *Call) Rows(n int) error {
	give, err := c.Weigh(n)
	if err == nil {
		if a, ok := c.Writer.(*answer); ok {
			a.after = append(a.after, give)
		}
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
