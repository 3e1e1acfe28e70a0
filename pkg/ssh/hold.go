package ssh

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh/internal/wire"
)

// closeGrace is how long Session.Close waits for the script to exit after closing the script's input.
const closeGrace = 5 * time.Second

// Hold starts a script and returns when the script's first line has arrived. ctx and the script's Timeout apply only until the first line arrives.
// The session stays open until the caller calls Close, the script exits, or the connection ends.
func (h *host) Hold(ctx context.Context, s Script) (Session, error) {
	if err := h.check(s); err != nil {
		return nil, err
	}
	limit := cmp.Or(s.Timeout, h.client.o.ScriptTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, timeoutError(limit))
	defer cancel()
	start := h.client.o.Now()
	program := wire.Hold(s.Body)
	sess, err := h.hold(ctx, s, program)
	e := Event{
		Host: h.name, Op: OpHold, Name: s.Name, Start: start, Duration: h.client.o.Now().Sub(start),
		RoundTrips: 1, BytesOut: int64(len(program)), Err: err,
	}
	if err != nil {
		h.client.o.Tracer.Trace(e)
		return nil, err
	}
	e.BytesIn = int64(len(sess.FirstLine()) + 1)
	h.client.o.Tracer.Trace(e)
	return sess, nil
}

func (h *host) hold(ctx context.Context, s Script, program string) (*session, error) {
	if ctx.Err() != nil {
		return nil, h.conn.explain(ctx, s.Name, context.Cause(ctx))
	}
	line := &firstLine{max: h.client.o.MaxOutput, complete: make(chan struct{})}
	started := make(chan *process, 1)
	failed := make(chan error, 1)
	go func() {
		p, err := h.conn.spawn(ctx, s.Name, wire.Shell, h.access(!s.User), line)
		if err != nil {
			failed <- err
			return
		}
		started <- p
		p.write(program)
	}()
	var p *process
	select {
	case err := <-failed:
		return nil, err
	case p = <-started:
	case <-ctx.Done():
		go abandon(started, failed)
		return nil, h.conn.explain(ctx, s.Name, context.Cause(ctx))
	}
	select {
	case <-line.complete:
		return &session{p: p, line: line.text()}, nil
	case <-ctx.Done():
		p.abort()
		return nil, h.conn.explain(ctx, s.Name, context.Cause(ctx))
	case <-p.exited:
	}
	select {
	case <-line.complete: // if both are ready, the line arrived first
		return &session{p: p, line: line.text()}, nil
	default:
	}
	code, err := p.exit(ctx)
	if err != nil {
		return nil, err
	}
	said, _ := p.stderr.bytes()
	return nil, hint.Errorf("see what the machine says in the error", "%s on %s: %w: exit code %d: %s",
		s.Name, h.name, errNoFirstLine, code, strings.TrimSpace(string(said[:min(len(said), 500)])))
}

// errNoFirstLine means that a held script exited before printing a line.
var errNoFirstLine = errors.New("it ended before its first line")

type session struct {
	p    *process
	line string
	once sync.Once
	err  error
}

func (s *session) FirstLine() string { return s.line }

func (s *session) Done() <-chan struct{} { return s.p.exited }

// Close closes the script's input, waits up to closeGrace for the script to exit, and ends the session. The error is ErrClosed if the connection was
// lost earlier.
func (s *session) Close() error {
	s.once.Do(func() {
		go func() { // may block on a dead network
			<-s.p.wrote
			_ = s.p.stdin.Close()
		}()
		select {
		case <-s.p.exited:
			_, s.err = s.p.exit(context.Background())
		case <-time.After(closeGrace):
			s.p.abort()
			s.err = hint.Errorf("look for the process on the machine", "%s on %s: %w: it keeps running after the end of its input",
				s.p.what, s.p.c.name, ErrTimeout)
		}
	})
	return s.err
}

// firstLine is a writer that keeps the first line and drops the rest.
type firstLine struct {
	mu       sync.Mutex
	buf      bytes.Buffer
	max      int64
	done     bool
	complete chan struct{} // closed with the newline
}

func (f *firstLine) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done {
		return len(b), nil
	}
	head, _, found := bytes.Cut(b, []byte("\n"))
	if int64(f.buf.Len()+len(head)) > f.max {
		return 0, fmt.Errorf("first line: %w", errTooMuch)
	}
	f.buf.Write(head)
	if found {
		f.done = true
		close(f.complete)
	}
	return len(b), nil
}

func (f *firstLine) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.buf.String()
}
