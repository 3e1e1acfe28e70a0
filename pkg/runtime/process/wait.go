package process

import (
	"bytes"
	"context"
	"io"

	"golang.org/x/sys/unix"
)

// Wait waits for the program and returns its exit code. When the context ends, Wait ends the program's process group.
func (p *Process) Wait(ctx context.Context) (int, error) {
	select {
	case status := <-p.done:
		return Code(status), nil
	case <-ctx.Done():
		_ = p.Signal(unix.SIGKILL)
		return Code(<-p.done), context.Cause(ctx)
	}
}

// maxAnswer is the maximum output of Ask, in bytes.
const maxAnswer = 8 << 20

// Output runs a short program and returns its output and exit code. It replaces os/exec's Output while a Reaper runs.
func (r *Reaper) Output(ctx context.Context, c Command) (string, int, error) {
	var out bytes.Buffer
	s, w, err := NewStream(&limited{&out}, io.Discard)
	if err != nil {
		return "", 0, err
	}
	c.Stdout, c.Stderr = w, w
	p, err := r.Start(c)
	_ = w.Close() // the program has inherited it
	if err != nil {
		_ = s.Close()
		return "", 0, err
	}
	code, err := p.Wait(ctx)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return out.String(), code, err
}

// limited drops output beyond maxAnswer.
type limited struct{ b *bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.b.Len() < maxAnswer {
		l.b.Write(p)
	}
	return len(p), nil
}
