package ssh

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ssh/internal/wire"
)

// abortGrace is how long a caller waits for the last output of the process after the context has ended.
const abortGrace = 300 * time.Millisecond

// process is a command that runs in a session on a host.
type process struct {
	c       *conn
	what    string // for errors, such as "containerd/detect"
	session *ssh.Session
	stdin   io.WriteCloser
	stderr  *output
	front   *sudoFront // nil without sudo
	free    func()

	wrote  chan struct{} // closed when the program has been written
	exited chan struct{} // closed after the end; err is set then
	err    error
	stop   sync.Once
}

type access struct {
	root     bool
	user     string
	password secret.String
	// ask returns a password that a person typed. ask is nil if no person can be asked. forget drops a wrong password, so that the next call of ask asks
	// the person again.
	ask    func() (secret.String, error)
	forget func()
}

// sudo reports whether the command needs sudo to run as root.
func (a access) sudo() bool { return a.root && a.user != "root" }

// spawn starts inner, a command line from package wire. spawn returns when the command runs with the required rights.
func (c *conn) spawn(ctx context.Context, what, inner string, as access, stdout io.Writer) (*process, error) {
	s, free, err := c.session(ctx)
	if err != nil {
		return nil, c.explain(ctx, what, err)
	}
	p := &process{c: c, what: what, session: s, free: free, stderr: &output{max: c.o.MaxOutput}, wrote: make(chan struct{}), exited: make(chan struct{})}
	p.stderr.full = p.abort
	s.Stdout, s.Stderr = stdout, p.stderr
	line := wire.Direct(inner)
	if as.sudo() {
		nonce := rand.Text()
		nonce = fmt.Sprintf("%x", nonce[:8])
		p.front = newSudoFront(nonce, p.stderr)
		s.Stdout, s.Stderr = p.front.stdout(stdout), p.front
		line = wire.Sudo(nonce, inner)
	}
	if err := p.start(line); err != nil {
		p.abort()
		free()
		return nil, c.explain(ctx, what, err)
	}
	if p.front == nil {
		return p, nil
	}
	if err := p.becomeRoot(ctx, as); err != nil {
		p.abort()
		return nil, err
	}
	return p, nil
}

// start starts the command. A goroutine waits for the end of the command.
func (p *process) start(line string) (err error) {
	if p.stdin, err = p.session.StdinPipe(); err != nil {
		return err
	}
	if err := p.session.Start(line); err != nil {
		return err
	}
	go func() {
		p.err = p.session.Wait()
		_ = p.session.Close()
		close(p.exited)
		p.free()
	}()
	return nil
}

// write sends the program to the command. write ignores errors, because the command exits with an error if the program is incomplete.
func (p *process) write(program string) {
	_, _ = io.WriteString(p.stdin, program)
	close(p.wrote)
}

// abort ends the session immediately. On the host, the watcher of wire.Run detects the end of the standard input and kills the remaining processes.
// abort doesn't block, and can be called from any goroutine.
func (p *process) abort() {
	p.stop.Do(func() {
		go func() { _ = p.session.Close() }() // may block on a dead network
	})
}

// wait waits until the command exits, and returns its exit code.
func (p *process) wait(ctx context.Context) (int, error) {
	select {
	case <-p.exited:
		return p.exit(ctx)
	case <-ctx.Done():
	}
	p.abort()
	select {
	case <-p.exited:
	case <-time.After(abortGrace):
	}
	return -1, p.c.explain(ctx, p.what, context.Cause(ctx))
}

// exit returns the exit code of a command that has ended. The exit code is greater than 128 if a signal killed the command.
func (p *process) exit(ctx context.Context) (int, error) {
	if p.err == nil {
		return 0, nil
	}
	if status, ok := errors.AsType[*ssh.ExitError](p.err); ok {
		return status.ExitStatus(), nil
	}
	return -1, p.c.explain(ctx, p.what, p.err)
}

// explain wraps a failure of the transport in one of this package's errors.
func (c *conn) explain(ctx context.Context, what string, err error) error {
	refused, isRefused := errors.AsType[*ssh.OpenChannelError](err)
	switch {
	case errors.Is(err, errTooMuch):
		return hint.Errorf("make the script print less", "%s on %s: it printed more than %d bytes", what, c.name, c.o.MaxOutput)
	case errors.Is(err, ErrTimeout):
		return fmt.Errorf("%s on %s: %w", what, c.name, err)
	case ctx.Err() != nil:
		return fmt.Errorf("%s on %s: %w", what, c.name, context.Cause(ctx))
	case isRefused && !c.isClosed():
		return hint.Errorf("raise MaxSessions in the machine's sshd_config, or close other sessions",
			"%s on %s: %w", what, c.name, refused)
	}
	c.settle()
	return c.lost(what)
}

// settle waits briefly until a failed connection is marked as ended. Otherwise an immediate Dial could return the same connection.
func (c *conn) settle() {
	select {
	case <-c.done:
	case <-time.After(500 * time.Millisecond):
	}
}

// errTooMuch means that the output of a script exceeded Options.MaxOutput.
var errTooMuch = errors.New("too much output")

// output is a writer that stores the output of a script, up to a limit. The stored output can be read while the script runs.
type output struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	max  int64
	over bool
	full func() // called once at the limit

	to     io.Writer // takes all; nil: buf keeps it
	passed int64
	failed error // the error of the writer to
}

// Write stores b, or passes b to another writer. If the output exceeds the limit or the other writer fails, Write returns an error and calls full to
// end the session.
func (o *output) Write(b []byte) (int, error) {
	if o.to != nil {
		return o.pass(b)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over || int64(o.buf.Len()+len(b)) > o.max {
		if !o.over && o.full != nil {
			o.full()
		}
		o.over = true
		return 0, errTooMuch
	}
	return o.buf.Write(b)
}

// pass writes b to the writer "to". pass doesn't lock o.mu during the write, because the write may take long. pass is never called concurrently.
func (o *output) pass(b []byte) (int, error) {
	if _, err := o.sent(); err != nil {
		return 0, err
	}
	n, err := o.to.Write(b)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.passed += int64(n)
	if err != nil {
		o.failed = err
		if o.full != nil {
			o.full()
		}
	}
	return n, err
}

// sent returns how many bytes were passed to the writer "to", and the error of the last write.
func (o *output) sent() (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.passed, o.failed
}

// bytes returns a copy of the output so far, and reports whether the output exceeded the limit.
func (o *output) bytes() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.buf.Bytes()), o.over
}
