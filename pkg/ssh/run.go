package ssh

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ssh/internal/wire"
)

// host is a reference to a connection. Each caller of Dial has its own reference.
type host struct {
	name    string
	client  *Client
	e       *endpoint
	conn    *conn
	release func()
}

func (h *host) Name() string { return h.name }

// Close releases the connection. The connection is closed when the last user releases it.
func (h *host) Close() error {
	h.release()
	return nil
}

// Run runs a script in a single round trip. If ctx ends or the script's timeout expires, Run returns the output so far, and the host kills the
// script's process group.
func (h *host) Run(ctx context.Context, s Script) (Result, error) {
	if err := h.check(s); err != nil {
		return Result{ExitCode: -1}, err
	}
	limit := cmp.Or(s.Timeout, h.client.o.ScriptTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, timeoutError(limit))
	defer cancel()
	start := h.client.o.Now()
	program := wire.Run(s.Body)
	r, err := h.run(ctx, s, program)
	r.Duration = h.client.o.Now().Sub(start)
	h.client.o.Tracer.Trace(Event{
		Host: h.name, Op: OpRun, Name: s.Name, Start: start, Duration: r.Duration, RoundTrips: 1,
		BytesOut: int64(len(program)), BytesIn: r.passed + int64(len(r.Stdout)+len(r.Stderr)), ExitCode: r.ExitCode, Err: err,
	})
	return r, err
}

// run sends the program and collects the output. All blocking calls run in another goroutine, so that run returns when ctx ends, even if the network
// is down.
func (h *host) run(ctx context.Context, s Script, program string) (Result, error) {
	if ctx.Err() != nil {
		return Result{ExitCode: -1}, h.conn.explain(ctx, s.Name, context.Cause(ctx))
	}
	stdout := &output{max: h.client.o.MaxOutput, to: s.Stdout}
	started := make(chan *process, 1)
	notStarted := make(chan error, 1)
	go func() {
		p, err := h.conn.spawn(ctx, s.Name, wire.Shell, h.access(!s.User), stdout)
		if err != nil {
			notStarted <- err
			return
		}
		stdout.onFull(p.abort)
		started <- p
		p.write(program)
	}()
	var p *process
	select {
	case err := <-notStarted:
		return Result{ExitCode: -1}, err
	case p = <-started:
	case <-ctx.Done():
		go abandon(started, notStarted)
		return Result{ExitCode: -1}, h.conn.explain(ctx, s.Name, context.Cause(ctx))
	}
	code, err := p.wait(ctx)
	return h.result(ctx, s, code, stdout, p.stderr, err)
}

// result returns the result of a finished script. err is the error of the transport.
func (h *host) result(ctx context.Context, s Script, code int, stdout, stderr *output, err error) (Result, error) {
	r := Result{ExitCode: code}
	var tooMuchOut, tooMuchErr bool
	r.Stdout, tooMuchOut = stdout.bytes()
	r.Stderr, tooMuchErr = stderr.bytes()
	var failed error
	if r.passed, failed = stdout.sent(); failed != nil {
		r.ExitCode = -1
		return r, fmt.Errorf("%s on %s: its output can't be stored: %w", s.Name, h.name, failed)
	}
	if tooMuchOut || tooMuchErr {
		r.ExitCode = -1
		return r, h.conn.explain(ctx, s.Name, errTooMuch)
	}
	return r, err
}

// abandon waits until the process has started, and aborts the process. The caller of Run has already returned.
func abandon(started <-chan *process, failed <-chan error) {
	select {
	case p := <-started:
		p.abort()
	case <-failed:
	}
}

func (h *host) check(s Script) error {
	if err := h.client.o.Gate.Check(h.name, s); err != nil {
		return err
	}
	if err := wire.Check(s.Body); err != nil {
		return fmt.Errorf("%s on %s: %w", s.Name, h.name, err)
	}
	return nil
}

// access returns the login user, and the password for sudo or a function that asks a person for the password. root means that the command runs as
// root.
func (h *host) access(root bool) access {
	as := access{root: root, user: h.e.user, password: h.e.sudo}
	if h.client.o.Prompt != nil && !as.password.IsSet() {
		question := "sudo password of " + h.e.user
		as.ask = func() (secret.String, error) { return h.client.questions.get(question) }
		as.forget = func() { h.client.questions.forget(question) }
	}
	return as
}

// timeoutError returns the cause of a context that ends at a script's time limit.
func timeoutError(limit time.Duration) error {
	return hint.Wrap(fmt.Errorf("%w after %s", ErrTimeout, limit), "look at the machine's load and disks, then run it again")
}

// onFull sets the function that is called when the output exceeds the limit or a write fails. onFull calls the function immediately if that has
// already happened.
func (o *output) onFull(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.full = f
	if o.over || o.failed != nil {
		f()
	}
}
