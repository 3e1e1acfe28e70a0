package ssh

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/openpai/paictl/pkg/hint"
)

// conn is a connection to a machine. All Hosts for the machine share the connection.
type conn struct {
	o      Options
	name   string
	client *ssh.Client
	done   chan struct{} // closed when the connection has ended
	dials  chan struct{} // one token per connection being made through this one
	slots  *slots
	after  func() // releases the jump host

	mu    sync.Mutex
	cause error // why it ended, if known
	quiet bool  // closed on purpose
	// claimed holds the paths of the files that uploads are writing. The channel of a path is closed when the upload ends.
	claimed map[string]chan struct{}
}

// newConn wraps an authenticated connection and starts the keepalives.
func newConn(o Options, e *endpoint, client *ssh.Client, after func()) *conn {
	c := &conn{
		o: o, name: e.name, client: client, after: sync.OnceFunc(after),
		done: make(chan struct{}), dials: make(chan struct{}, o.DialsPerJump), slots: newSlots(o.Sessions),
		claimed: map[string]chan struct{}{},
	}
	go func() {
		err := client.Wait()
		c.mu.Lock()
		if c.cause == nil {
			c.cause = err
		}
		quiet := c.quiet
		c.mu.Unlock()
		close(c.done)
		c.after()
		if !quiet {
			o.Tracer.Trace(Event{Host: e.name, Op: OpClosed, Start: o.Now(), Err: c.lost("keep the connection")})
		}
	}()
	go c.keepAlive(o.KeepAlive)
	return c
}

func (c *conn) isClosed() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// close closes the connection without reporting an error.
func (c *conn) close() {
	c.mu.Lock()
	c.quiet = true
	c.mu.Unlock()
	_ = c.client.Close()
}

func (c *conn) fail(cause error) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = cause
	}
	c.mu.Unlock()
	_ = c.client.Close()
}

// lost returns the error of an operation that the end of the connection interrupted.
func (c *conn) lost(what string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil || c.quiet {
		return fmt.Errorf("%s on %s: %w", what, c.name, ErrClosed)
	}
	return hint.Errorf("see whether the machine is up and its network works, then run the same command again",
		"%s on %s: %w: %w", what, c.name, ErrClosed, c.cause)
}

// session opens a session, and waits while the limit is reached. The caller must call free. If the server rejects the session because of MaxSessions,
// session lowers the limit permanently.
func (c *conn) session(ctx context.Context) (s *ssh.Session, free func(), err error) {
	const tries = 40
	for i := 0; ; i++ {
		if err := c.slots.take(ctx); err != nil {
			return nil, nil, err
		}
		s, err := c.client.NewSession()
		if err == nil {
			c.slots.opened()
			return s, sync.OnceFunc(c.slots.closed), nil
		}
		refused, ok := errors.AsType[*ssh.OpenChannelError](err)
		if !ok || i == tries {
			c.slots.free()
			if ok {
				return nil, nil, fmt.Errorf("open session: %w", refused)
			}
			return nil, nil, err
		}
		if c.slots.lower() {
			continue
		}
		// The server has accepted this number of sessions before, so the server may still be closing an earlier session.
		c.slots.free()
		select {
		case <-time.After(time.Duration(i+1) * 5 * time.Millisecond):
		case <-c.done:
			return nil, nil, err
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// slots limits the number of open sessions. The limit can only decrease.
type slots struct {
	tokens chan struct{}
	mu     sync.Mutex
	limit  int
	open   int
	most   int // the maximum that was open at a time
}

func newSlots(n int) *slots {
	return &slots{tokens: make(chan struct{}, n), limit: n}
}

// take waits for a token. free returns the token.
func (s *slots) take(ctx context.Context) error {
	select {
	case s.tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *slots) free() { <-s.tokens }

func (s *slots) opened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	s.most = max(s.most, s.open)
}

// closed records the end of an accepted session, and returns the token.
func (s *slots) closed() {
	s.mu.Lock()
	s.open--
	s.mu.Unlock()
	s.free()
}

// lower lowers the limit by one: the caller's token isn't returned. lower returns false, and changes nothing, if the server has already accepted that
// number of sessions.
func (s *slots) lower() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit <= max(1, s.most) {
		return false
	}
	s.limit--
	return true
}
