package ssh

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/openpai/paictl/pkg/hint"
)

// Client is a Dialer for real machines. All Hosts of a machine share one connection. All hosts behind a jump host share the connection to the jump
// host.
type Client struct {
	o         Options
	person    *person
	questions *questions
	keys      *keyring
	hostKeys  *hostKeys
	dials     chan struct{} // one token per connection being made
	uploads   chan struct{} // one token per host that receives files

	resolveOnce sync.Once
	resolver    *resolver
	resolveErr  error

	mu      sync.Mutex
	entries map[string]*entry
	closed  bool
}

// entry is a connection and the number of its users. conn and err are valid after ready is closed.
type entry struct {
	key   string
	refs  int
	ready chan struct{}
	conn  *conn
	err   error
}

// NewClient returns a client. NewClient doesn't connect to hosts or read files.
func NewClient(o Options) *Client {
	o = o.withDefaults()
	p := &person{now: o.Now}
	q := &questions{ask: o.Prompt, person: p}
	return &Client{
		o:         o,
		person:    p,
		questions: q,
		keys:      &keyring{questions: q},
		hostKeys:  &hostKeys{confirm: o.Confirm, person: p},
		dials:     make(chan struct{}, o.Dials),
		uploads:   make(chan struct{}, o.Uploads),
		entries:   map[string]*entry{},
	}
}

// Dial connects to a host, or returns a reference to the existing connection. Dial returns at most 2 s after ctx has ended. The error wraps
// ErrUnreachable, ErrAuth or ErrHostKey.
func (c *Client) Dial(ctx context.Context, t Target) (Host, error) {
	start := c.o.Now()
	h, err := c.dial(ctx, t)
	c.o.Tracer.Trace(Event{Host: t.String(), Op: OpDial, Start: start, Duration: c.o.Now().Sub(start), Err: err})
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (c *Client) dial(ctx context.Context, t Target) (*host, error) {
	c.resolveOnce.Do(func() { c.resolver, c.resolveErr = newResolver(c.o) })
	if c.resolveErr != nil {
		return nil, c.resolveErr
	}
	e, err := c.resolver.target(t)
	if err != nil {
		return nil, err
	}
	en, err := c.acquire(ctx, e)
	if err != nil {
		return nil, err
	}
	return &host{name: t.String(), client: c, e: e, conn: en.conn, release: sync.OnceFunc(func() { c.release(en) })}, nil
}

// Close closes all connections. Later calls of Dial fail.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	entries := c.entries
	c.entries = map[string]*entry{}
	c.mu.Unlock()
	for _, en := range entries {
		<-en.ready
		if en.conn != nil {
			en.conn.close()
		}
	}
	return nil
}

// acquire returns an open connection to e, and adds a user to the connection.
func (c *Client) acquire(ctx context.Context, e *endpoint) (*entry, error) {
	for {
		en, mine, err := c.entry(e.key())
		if err != nil {
			return nil, err
		}
		if mine {
			en.conn, en.err = c.connect(ctx, e)
			close(en.ready)
			if en.err != nil {
				c.forget(en)
			}
		}
		select {
		case <-en.ready:
		case <-ctx.Done():
			c.release(en)
			return nil, fmt.Errorf("reach %s: %w", e.name, context.Cause(ctx))
		}
		if en.err == nil {
			return en, nil
		}
		// Another caller made the connection and was canceled. Try again, because this caller isn't canceled.
		if mine || ctx.Err() != nil || !errors.Is(en.err, context.Canceled) && !errors.Is(en.err, context.DeadlineExceeded) {
			return nil, en.err
		}
	}
}

// entry returns the entry of a key and adds a user to the entry. mine reports whether the caller must connect. A broken connection is replaced with a
// new entry.
func (c *Client) entry(key string) (en *entry, mine bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false, fmt.Errorf("%w: the client was closed", ErrClosed)
	}
	if en := c.entries[key]; en != nil && !en.broken() {
		en.refs++
		return en, false, nil
	}
	en = &entry{key: key, refs: 1, ready: make(chan struct{})}
	c.entries[key] = en
	return en, true, nil
}

// broken reports whether the connection couldn't be made or has ended.
func (en *entry) broken() bool {
	select {
	case <-en.ready:
		return en.err != nil || en.conn.isClosed()
	default:
		return false
	}
}

// forget removes the entry of a failed connection.
func (c *Client) forget(en *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[en.key] == en {
		delete(c.entries, en.key)
	}
}

// release removes a user from a connection, and closes the connection if no users remain.
func (c *Client) release(en *entry) {
	c.mu.Lock()
	en.refs--
	last := en.refs == 0
	if last && c.entries[en.key] == en {
		delete(c.entries, en.key)
	}
	c.mu.Unlock()
	if !last {
		return
	}
	go func() { // a connection that is still being made is closed when it is ready
		<-en.ready
		if en.conn != nil {
			en.conn.close()
		}
	}()
}

func (c *Client) connect(ctx context.Context, e *endpoint) (*conn, error) {
	if len(e.jumps) == 0 {
		client, err := c.handshake(ctx, e, nil)
		if err != nil {
			return nil, err
		}
		return newConn(c.o, e, client, func() {}), nil
	}
	jump, err := c.acquire(ctx, e.jumps[len(e.jumps)-1])
	if err != nil {
		return nil, hint.Wrap(fmt.Errorf("reach %s: %w", e.name, err), hint.Of(err))
	}
	client, err := c.handshake(ctx, e, jump.conn)
	if err != nil {
		c.release(jump)
		return nil, err
	}
	return newConn(c.o, e, client, func() { c.release(jump) }), nil
}
