// Package rendezvous lets the tasks of a job wait for each other's addresses.
// In: the peers of a job, once every task has an address. Out: the same for each requesting task, as soon as they are published.
//
// All state is in memory. The leading controller publishes again the messages that a new process doesn't have.
package rendezvous

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ErrOver is returned to a task of an attempt that has ended.
var ErrOver = errors.New("another attempt of the job has begun")

// Attempt names one attempt of one Framework.
type Attempt struct {
	Framework string
	UID       types.UID // the UID of the Framework, because names are reused
	Number    int32
}

// Message is the data that the tasks of an attempt receive.
type Message struct {
	Data    []byte // gzipped, of pkg/runtime/peers
	Version uint64 // unique among all messages
}

// Board holds a message for each job whose tasks all have an address.
type Board struct {
	mu      sync.Mutex
	jobs    map[string]*job // by the Framework's name
	version uint64
}

// New makes a board without messages. Its versions begin with the current time, so that they differ from the versions
// of a former process, which tasks may have.
func New() *Board { return &Board{jobs: map[string]*job{}, version: uint64(time.Now().UnixNano())} }

// job is the state for one name. It is removed when it has neither a message nor a waiting task.
type job struct {
	of      Attempt
	message Message
	changed chan struct{}
	waiting int
}

func (j *job) has(of Attempt) bool { return j.message.Version > 0 && j.of == of }

// Publish gives a message to all tasks of an attempt, including later tasks. It replaces an earlier message.
func (b *Board) Publish(of Attempt, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.job(of.Framework)
	b.version++
	j.of, j.message = of, Message{data, b.version}
	close(j.changed)
	j.changed = make(chan struct{})
}

// Has reports whether there is a message for an attempt.
func (b *Board) Has(of Attempt) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[of.Framework]
	return j != nil && j.has(of)
}

// Forget removes the message of a Framework that is gone or has ended.
func (b *Board) Forget(framework string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.jobs[framework]; j != nil {
		j.message = Message{}
		b.drop(j, framework)
	}
}

// Wait returns the message for an attempt once its version differs from seen, the version that the task has. For a task without a message seen is 0.
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

// job returns the state for a name, and creates it if it doesn't exist.
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
