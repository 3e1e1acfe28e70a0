// Package history imports jobs from the database of a cluster of OpenPAI. It starts the program paictl-history and communicates with the program.
// In: an address, the existing jobs. Out: parts of a history, in the format that the job controller accepts; the number of jobs of each person, the
// jobs that are left out, and why.
//
// The program contains SQLite and a client of PostgreSQL, which the rest of paictl doesn't need.
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// Options specifies how Read handles the jobs that it receives.
type Options struct {
	// Known reports whether the history already has the job with a UID.
	Known func(uid string) bool
	// Store stores a part of size bytes in a history. If Store is nil, the run is a dry run.
	Store func(ctx context.Context, part io.Reader, size int64) error
	// Progress is called after each step with the number of processed jobs and the number of all jobs. It may be nil.
	Progress func(done, all int)
}

// Source is a database of OpenPAI that a paictl-history reads. It must not be used by several goroutines.
type Source struct {
	cmd  *exec.Cmd
	conn *Conn
	out  io.Reader
	errs head
	// stop closes the standard input of the program, which makes the program exit. It kills the program if the program still runs after the time
	// grace.
	stop     context.CancelFunc
	stopped  bool
	withheld map[string]string
}

// grace is the time in which the program must remove its files and exit.
const grace = 20 * time.Second

// Open makes the program connect to a database. from is an address without a password, or the name of a file with the address, which may contain the
// password. The program exits at the latest when the context ends. Errors contain no password.
func Open(ctx context.Context, program, from string) (*Source, error) {
	within, stop := context.WithCancel(ctx)
	s := &Source{cmd: exec.CommandContext(within, program, Argument), stop: stop}
	s.cmd.Env, s.withheld = split(os.Environ())
	s.cmd.Stderr, s.cmd.WaitDelay = &s.errs, grace
	in, inErr := s.cmd.StdinPipe()
	out, outErr := s.cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		stop()
		return nil, err
	}
	s.cmd.Cancel = in.Close
	if err := s.cmd.Start(); err != nil {
		stop()
		return nil, hint.Wrap(fmt.Errorf("start %s: %w", Name, err), install)
	}
	s.out, s.conn = out, NewConn(out, in)
	if err := s.open(from); err != nil {
		s.Close()
		return nil, cmp.Or(ctx.Err(), err)
	}
	return s, nil
}

func (s *Source) open(from string) error {
	if err := s.conn.Greet("paictl", Name); err != nil {
		return s.broken(err)
	}
	if err := s.conn.Send(&Message{Type: TypeOpen, From: from, Secrets: s.withheld}); err != nil {
		return s.broken(err)
	}
	m, err := s.conn.Receive()
	switch {
	case err != nil:
		return s.broken(err)
	case m.Type == TypeFailed && m.Error != "":
		return m.Err()
	case m.Type != TypeOpened:
		return s.broken(unexpected(m))
	}
	return nil
}

// Read makes the program read all jobs, and passes on the finished jobs in parts. It also passes on jobs that the history already has, because an
// earlier run may have been interrupted before their data was complete. If an error occurs, the report describes the jobs before the error; it is
// nil if the program exited without a report. Read can be called only once for each Source.
func (s *Source) Read(ctx context.Context, o Options) (*Report, error) {
	defer context.AfterFunc(ctx, s.stop)()
	report, err := s.take(ctx, o)
	return report, cmp.Or(ctx.Err(), err)
}

func (s *Source) take(ctx context.Context, o Options) (*Report, error) {
	err := s.conn.Send(&Message{Type: TypeTake, DryRun: o.Store == nil})
	var failed error // the error of o.Give; the program then stops, and reports the parts before it
	for err == nil {
		var m *Message
		if m, err = s.conn.Receive(); err != nil {
			break
		}
		switch {
		case m.Type == TypeDone && m.Report != nil && !slices.Contains(m.Report.People, nil):
			return m.Report, cmp.Or(failed, m.Err())
		case failed != nil && m.Type != TypePart: // it was sent before the program noticed
		case m.Type == TypeTold:
			if o.Progress != nil {
				o.Progress(m.Checked, m.All)
			}
		case m.Type == TypeAsk:
			err = s.answer(m.UIDs, o.Known)
		case m.Type == TypePart && o.Store != nil:
			give := o.Store
			if failed != nil {
				give = func(context.Context, io.Reader, int64) error { return failed }
			}
			var given error
			if given, err = s.give(ctx, m.Size, give); given != nil {
				failed = given
				s.stop()
			}
		default:
			err = unexpected(m)
		}
	}
	return nil, cmp.Or(failed, s.broken(err))
}

func (s *Source) answer(uids []string, known func(uid string) bool) error {
	m := &Message{Type: TypeKnown, Known: make([]bool, len(uids))}
	for i, uid := range uids {
		m.Known[i] = known(uid)
	}
	return s.conn.Send(m)
}

// give passes on a part. given is the error of the receiver, and err is the error of the connection to the program.
func (s *Source) give(ctx context.Context, size int64, give func(context.Context, io.Reader, int64) error) (given, err error) {
	part, err := s.conn.part(size)
	if err != nil {
		return nil, err
	}
	given = give(ctx, part, size)
	if err := part.end(); err != nil { // which the receiver reports in other words
		return nil, err
	}
	if given != nil {
		return given, nil
	}
	return nil, s.conn.Send(&Message{Type: TypeGiven})
}

// broken ends the program after an error of the connection. If the program has exited before, it returns an error that explains why.
func (s *Source) broken(err error) error {
	s.Close()
	for _, ended := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.EPIPE, os.ErrClosed} {
		if errors.Is(err, ended) {
			return fmt.Errorf("%s ended before it had finished (%s)%s", s.cmd.Path, s.cmd.ProcessState, s.said())
		}
	}
	return hint.Wrap(fmt.Errorf("use %s: %w", s.cmd.Path, err), cmp.Or(hint.Of(err), install))
}

// said returns the output on the program's standard error, without passwords.
func (s *Source) said() string {
	text := strings.TrimSpace(string(s.errs.text))
	for _, password := range s.withheld {
		if password != "" {
			text = strings.ReplaceAll(text, password, secret.Mask)
		}
	}
	if text == "" {
		return ""
	}
	return ": " + terminal.Line(text)
}

// Close ends the program, and waits until the program has exited. It may be called twice.
func (s *Source) Close() {
	if s.stopped {
		return
	}
	s.stopped = true
	s.stop()
	_, _ = io.Copy(io.Discard, s.out) // until it exits: it may be writing
	_ = s.cmd.Wait()                  // its state has the same error
}

// maxSaid is the number of bytes of the program's standard error that are kept. After a panic, the reason comes before the stacks.
const maxSaid = 2 << 10

// head is a writer that keeps only the first maxSaid bytes.
type head struct{ text []byte }

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.text = append(h.text, p[:min(len(p), maxSaid-len(h.text))]...)
	return len(p), nil
}
