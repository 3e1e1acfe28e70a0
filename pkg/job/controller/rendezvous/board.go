// Package rendezvous lets the tasks of a job wait for each other's addresses.
// In: the addresses of a job's tasks, once every task has an address. Out: the same addresses for each task that requests them.
//
// All state is in memory. After a restart, the leading controller publishes the addresses again.
package rendezvous

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ErrOver is returned to a task whose attempt has ended.
var ErrOver = errors.New("another attempt of the job has begun")

// Attempt identifies one attempt of one Framework.
type Attempt struct {
	Framework string
	UID       types.UID // the UID of the Framework, because names are reused
	Number    int32
}

// Message contains the addresses that the tasks of an attempt receive.
type Message struct {
	Data    []byte // gzipped, of pkg/runtime/peers
	Version uint64 // unique among all messages
}

// Board holds the message for each job whose tasks all have an address.
type Board struct {
	mu      sync.Mutex
	jobs    map[string]*job // by the Framework's name
	version uint64
}

// New returns a board without messages. Its versions begin with the current time, so that they differ from the versions of an earlier process,
// which tasks may still have.
func New() *Board { return &Board{jobs: map[string]*job{}, version: uint64(time.Now().UnixNano())} }

// job is the state for a Framework's name. It is removed when it has neither a message nor a waiting task.
type job struct {
	of      Attempt
	message Message
	changed chan struct{}
	waiting int
}

func (j *job) has(of Attempt) bool { return j.message.Version > 0 && j.of == of }

// Publish provides a message to all tasks of an attempt that wait for it or request it later. The message replaces an earlier message of the
// Framework.
func (b *Board) Publish(of Attempt, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.job(of.Framework)
	b.version++
	j.of, j.message = of, Message{data, b.version}
	close(j.changed)
	j.changed = make(chan struct{})
}

// Has reports whether the board has a message for an attempt.
func (b *Board) Has(of Attempt) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[of.Framework]
	return j != nil && j.has(of)
}

// Forget removes the message of a Framework that has ended or no longer exists.
func (b *Board) Forget(framework string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.jobs[framework]; j != nil {
		j.message = Message{}
		b.drop(j, framework)
	}
}

// Wait waits until the board has a message for the attempt whose version differs from seen, and returns it. seen is the version that the task
// already has, or 0.
func (b *Board) Wait(ctx context.Context, of Attempt, seen uint64) (Message, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.job(of.Framework)
	j.waiting++
	defer func() { j.waiting--; b.drop(j, of.Framework) }()
	for {
		switch {
		case j.has(of) && j.message.Version != seen:
			return j.message, nil
		case j.message.Version > 0 && j.of.UID == of.UID && j.of.Number > of.Number:
			return Message{}, ErrOver
		}
		changed := j.changed
		b.mu.Unlock()
		select {
		case <-changed:
			b.mu.Lock()
		case <-ctx.Done():
			b.mu.Lock()
			return Message{}, context.Cause(ctx)
		}
	}
}

// job returns the state for a Framework's name. It creates the state if it doesn't exist.
func (b *Board) job(framework string) *job {
	j := b.jobs[framework]
	if j == nil {
		j = &job{changed: make(chan struct{})}
		b.jobs[framework] = j
	}
	return j
}

func (b *Board) drop(j *job, framework string) {
	if j.waiting == 0 && j.message.Version == 0 && b.jobs[framework] == j {
		delete(b.jobs, framework)
	}
}
