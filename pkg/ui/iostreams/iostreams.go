// Package iostreams connects commands with the terminal.
// In: the process's files and environment. Out: streams that know whether a person reads them, how
// wide the screen is and whether colour is wanted. Tests use buffers.
package iostreams

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"github.com/openpai/paictl/pkg/ui/terminal"
)

// IOStreams are the three streams of a command. Out carries data, Err progress
// and messages.
type IOStreams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer

	inTTY, outTTY, errTTY bool
	colour, dumb          bool

	saying sync.Mutex
}

// System returns the process's own streams. getenv is os.Getenv in the program.
func System(getenv func(string) string) *IOStreams {
	errTTY := term.IsTerminal(int(os.Stderr.Fd()))
	dumb := getenv("TERM") == "dumb"
	return &IOStreams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		inTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		outTTY: term.IsTerminal(int(os.Stdout.Fd())),
		errTTY: errTTY,
		// https://no-color.org: any non-empty value disables colour.
		colour: errTTY && getenv("NO_COLOR") == "" && !dumb,
		dumb:   dumb,
	}
}

// Test returns streams over buffers: no terminal, no colour.
func Test() (s *IOStreams, in, out, errOut *bytes.Buffer) {
	in, out, errOut = &bytes.Buffer{}, &bytes.Buffer{}, &bytes.Buffer{}
	return &IOStreams{In: in, Out: out, Err: errOut}, in, out, errOut
}

// Say writes a message to the user, on separate lines. Names and reasons in the message may come from others. Several goroutines may call it.
func (s *IOStreams) Say(format string, args ...any) {
	s.saying.Lock()
	defer s.saying.Unlock()
	fmt.Fprintln(s.Err, terminal.Text(fmt.Sprintf(format, args...)))
}

// CanPrompt reports whether a person can be asked a question.
func (s *IOStreams) CanPrompt() bool { return s.inTTY && s.errTTY }

// IsErrTTY reports whether the progress stream is a terminal.
func (s *IOStreams) IsErrTTY() bool { return s.errTTY }

// CanRedraw reports whether the progress stream is a screen that allows replacing lines.
func (s *IOStreams) CanRedraw() bool { return s.errTTY && !s.dumb }

// IsOutTTY reports whether the data stream is a terminal.
func (s *IOStreams) IsOutTTY() bool { return s.outTTY }

// Logs returns the output for logs. On a terminal, logs may contain colours but no other control sequences, unless raw is set. A file or
// a pipe gets every byte.
func (s *IOStreams) Logs(raw bool) io.WriteCloser {
	if raw || !s.IsOutTTY() {
		return asItIs{s.Out}
	}
	return terminal.Colours(s.Out)
}

// asItIs writes text unchanged.
type asItIs struct{ io.Writer }

// Close does nothing.
func (asItIs) Close() error { return nil }

// ColourEnabled reports whether progress may be coloured.
func (s *IOStreams) ColourEnabled() bool { return s.colour }

// SetTerminal makes the streams behave as a terminal, or not; for tests.
func (s *IOStreams) SetTerminal(yes bool) { s.inTTY, s.outTTY, s.errTTY = yes, yes, yes }

// Width returns the number of columns of the progress stream, or 80 if it isn't known.
func (s *IOStreams) Width() int {
	if n := Columns(s.Err); n > 0 {
		return n
	}
	return 80
}

// Columns returns the number of columns of a terminal, or 0 if w isn't one.
func Columns(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// ReadPassword reads one line from the terminal without echo.
func (s *IOStreams) ReadPassword() (string, error) {
	f, ok := s.In.(*os.File)
	if !ok {
		return "", os.ErrInvalid
	}
	b, err := term.ReadPassword(int(f.Fd()))
	return string(b), err
}
