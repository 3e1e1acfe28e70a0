// Package history imports jobs from the database of a cluster of OpenPAI, by the program paictl-history, which paictl starts and communicates
// with.
// In: an address, the existing jobs. Out: parts of a history, in the format that the job controller accepts; the number of jobs of each person,
// the jobs that are left out, and why.
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

// Options define what to do with jobs.
type Options struct {
	// Known reports whether the history has a job, by its UID.
	Known func(uid string) bool
	// Give stores a part of a history of size bytes; if it is nil, the run is a dry run.
	Give func(ctx context.Context, part io.Reader, size int64) error
	// Told is called after each step with the number of processed jobs and the total; it may be nil.
	Told func(done, all int)
}

// Source is a database of OpenPAI that paictl-history reads. It is for one goroutine.
type Source struct {
	cmd  *exec.Cmd
	conn *Conn
	out  io.Reader
	errs head
	// stop closes the standard input of the program, which ends it, and kills it if it still runs after grace.
	stop     context.CancelFunc
	stopped  bool
	withheld map[string]string
}

// grace is how long a program may take to remove its files and to exit.
const grace = 20 * time.Second

// Open makes the program connect to a database. from is an address without a password, or the name of a file with the address, which may contain
// the password. The program exits when the context ends, if it hasn't before. Errors contain no password.
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

// Take makes the program read all jobs, and passes on the finished jobs in parts. It passes on existing jobs again, to complete an earlier run that
// was interrupted. If an error occurs, the report covers the jobs before the error; the report is nil if the program exited without a report. Take
// can be called only once per Source.
func (s *Source) Take(ctx context.Context, o Options) (*Report, error) {
	defer context.AfterFunc(ctx, s.stop)()
	report, err := s.take(ctx, o)
	return report, cmp.Or(ctx.Err(), err)
}

func (s *Source) take(ctx context.Context, o Options) (*Report, error) {
	err := s.conn.Send(&Message{Type: TypeTake, DryRun: o.Give == nil})
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
			if o.Told != nil {
				o.Told(m.Checked, m.All)
			}
		case m.Type == TypeAsk:
			err = s.answer(m.UIDs, o.Known)
		case m.Type == TypePart && o.Give != nil:
			give := o.Give
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

// give passes on a part. It returns the receiver's error, and the error of the connection with the program.
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

// broken ends the program after an error of the connection, and returns an error that explains why it ended, if that is known.
func (s *Source) broken(err error) error {
	s.Close()
	for _, ended := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.EPIPE, os.ErrClosed} {
		if errors.Is(err, ended) {
			return fmt.Errorf("%s ended before it had finished (%s)%s", s.cmd.Path, s.cmd.ProcessState, s.said())
		}
	}
	return hint.Wrap(fmt.Errorf("use %s: %w", s.cmd.Path, err), cmp.Or(hint.Of(err), install))
}

// said returns the text that the program wrote to its standard error, without passwords.
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

// Close ends the program and waits until it has exited. Close may be called twice.
func (s *Source) Close() {
	if s.stopped {
		return
	}
	s.stopped = true
	s.stop()
	_, _ = io.Copy(io.Discard, s.out) // until it exits: it may be writing
	_ = s.cmd.Wait()                  // its state has the same error
}

// maxSaid is how much of the program's standard error is kept, in bytes: the reason of a panic comes before its stacks.
const maxSaid = 2 << 10

// head is a writer that keeps only the first bytes.
type head struct{ text []byte }

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.text = append(h.text, p[:min(len(p), maxSaid-len(h.text))]...)
	return len(p), nil
}
