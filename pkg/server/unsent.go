package server

import (
	"golang.org/x/sync/semaphore"

	"github.com/openpai/paictl/pkg/server/wire"
)

// Limits of the responses that wait for their readers, in bytes.
const (
	maxUnsent       = 64 << 20 // in total
	maxPersonUnsent = 8 << 20  // of one person: more than the longest list takes
)

// unsent limits the memory of lists that wait for slow clients. At the limit, further requests fail. They don't wait, because waiting lists would
// occupy memory, too.
type unsent struct {
	shares // of each person

	all *semaphore.Weighted
}

func newUnsent() *unsent {
	return &unsent{shares: shares{each: map[string]*share{}}, all: semaphore.NewWeighted(maxUnsent)}
}

// take counts bytes for a person until give is called. It returns an error if a limit is reached.
func (u *unsent) take(who string, bytes int) (give func(), err error) {
	own, ok := u.try(who, int64(min(max(bytes, 1), maxPersonUnsent)), maxPersonUnsent)
	if !ok {
		return nil, busy("many answers wait for you to read them", "read them first, or ask for fewer rows")
	}
	weight := int64(min(max(bytes, 1), maxUnsent)) // the whole list, even one that is longer than a person's share
	if !u.all.TryAcquire(weight) {
		own()
		return nil, busy("many answers wait for slow readers", "try again in a moment")
	}
	return func() {
		u.all.Release(weight)
		own()
	}, nil
}

// waits counts the body of a response that waits for its client, until give is called.
func (c *Call) waits(body *wire.Packed) (give func(), err error) {
	if c.unsent == nil {
		return func() {}, nil
	}
	return c.unsent(body.Size())
}
