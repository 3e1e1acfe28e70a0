package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/openpai/paictl/pkg/openpai/history"
	"github.com/openpai/paictl/pkg/version"
)

const usage = history.Name + ` reads the database of a cluster of OpenPAI for "paictl migrate openpai --history-from", which starts it.
It has no commands for people, and one flag: --version.`

// Main runs the program paictl-history, and returns its exit code.
func Main(args []string) int { return run(args, connect) }

// database is the part of a Source that the program uses. Tests replace it.
type database interface {
	Read(ctx context.Context, o Options) (*history.Report, error)
	Close() error
}

func connect(ctx context.Context, from string) (database, error) { return Open(ctx, from) }

func run(args []string, open func(ctx context.Context, from string) (database, error)) int {
	switch {
	case slices.Equal(args, []string{"--version"}):
		fmt.Printf("%s %s (%s/%s, %s)\n", history.Name, version.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
		return 0
	case !slices.Equal(args, []string{history.Argument}):
		fmt.Fprintln(os.Stderr, usage)
		return 2
	}
	// The terminal sends Ctrl-C to both programs, but paictl decides how to react. If paictl has been killed, a write to paictl must not end this
	// program before it has removed its files.
	signal.Ignore(os.Interrupt, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := serve(ctx, os.Stdin, os.Stdout, open); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", history.Name, err)
		return 1
	}
	return 0
}

// errEnded means that paictl has closed the connection, because paictl has exited or no longer needs this program.
var errEnded = errors.New("paictl closed the connection")

// session is the communication with one paictl.
type session struct {
	*history.Conn
	received chan *history.Message
	lost     error // the error of a part that was sent incompletely: no message can follow it
}

// serve responds to the messages of paictl until paictl closes the connection. It returns only errors that it can't send to paictl.
func serve(ctx context.Context, in io.Reader, out io.Writer, open func(ctx context.Context, from string) (database, error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &session{Conn: history.NewConn(in, out), received: make(chan *history.Message)}
	if err := s.Greet(history.Name, "paictl"); err != nil {
		return fmt.Errorf("speak with paictl, which starts this program: %w", err)
	}
	go s.receive(ctx, cancel)
	err := s.serve(ctx, open)
	if errors.Is(context.Cause(ctx), errEnded) { // paictl doesn't read the answer
		return nil
	}
	return err
}

// receive passes on all messages. When the connection ends, it cancels the context, because paictl may exit while the database is being read.
func (s *session) receive(ctx context.Context, cancel context.CancelCauseFunc) {
	for {
		m, err := s.Receive()
		if errors.Is(err, io.EOF) {
			err = errEnded
		}
		if err != nil {
			cancel(err)
			return
		}
		select {
		case s.received <- m:
		case <-ctx.Done():
			return
		}
	}
}

// next waits for the next message, which must have the type kind.
func (s *session) next(ctx context.Context, kind string) (*history.Message, error) {
	select {
	case m := <-s.received:
		if m.Type != kind {
			return nil, fmt.Errorf("paictl sent the message %.100q instead of %q", m.Type, kind)
		}
		return m, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *session) serve(ctx context.Context, open func(ctx context.Context, from string) (database, error)) error {
	m, err := s.next(ctx, history.TypeOpen)
	if err != nil {
		return err
	}
	if err := history.SetSecrets(m.Secrets); err != nil {
		return err
	}
	d, err := open(ctx, m.From)
	if err != nil {
		failed := &history.Message{Type: history.TypeFailed}
		failed.SetError(err)
		return s.Send(failed)
	}
	defer func() { _ = d.Close() }() // it was only read
	if err := s.Send(&history.Message{Type: history.TypeOpened}); err != nil {
		return err
	}
	if m, err = s.next(ctx, history.TypeTake); err != nil {
		return err
	}
	report, err := d.Read(ctx, s.options(m.DryRun))
	if s.lost != nil {
		return s.lost
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx) // which says more
	}
	done := &history.Message{Type: history.TypeDone, Report: report}
	done.SetError(err)
	return s.Send(done)
}

// options returns Options whose functions communicate with paictl.
func (s *session) options(dryRun bool) Options {
	o := Options{Now: time.Now, Known: s.known, Progress: func(done, all int) {
		_ = s.Send(&history.Message{Type: history.TypeTold, Checked: done, All: all}) // the context ends with the connection
	}}
	if !dryRun {
		o.Store = s.give
	}
	return o
}

func (s *session) known(ctx context.Context, uids []string) ([]bool, error) {
	if err := s.Send(&history.Message{Type: history.TypeAsk, UIDs: uids}); err != nil {
		return nil, err
	}
	m, err := s.next(ctx, history.TypeKnown)
	if err != nil {
		return nil, err
	}
	if len(m.Known) != len(uids) {
		return nil, fmt.Errorf("paictl answered for %d jobs, not for %d", len(m.Known), len(uids))
	}
	return m.Known, nil
}

func (s *session) give(ctx context.Context, part io.Reader, size int64) error {
	if err := s.SendPart(part, size); err != nil {
		s.lost = fmt.Errorf("send a part to paictl: %w", err)
		return s.lost
	}
	_, err := s.next(ctx, history.TypeGiven)
	return err
}
