// Package iostreams connects commands with the terminal.
// In: the process's files and environment. Out: streams, with methods that report whether they are terminals, how wide the screen is and whether
// colors are wanted. Tests use buffers.
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

// IOStreams are the three streams of a command. Data is written to Out, progress and messages to Err.
type IOStreams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer

	inTTY, outTTY, errTTY bool
	colour, dumb          bool

	saying sync.Mutex
}

// System returns the streams of the process. The program passes os.Getenv as getenv.
func System(getenv func(string) string) *IOStreams {
	errTTY := term.IsTerminal(int(os.Stderr.Fd()))
	dumb := getenv("TERM") == "dumb"
	return &IOStreams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		inTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		outTTY: term.IsTerminal(int(os.Stdout.Fd())),
		errTTY: errTTY,
		// https://no-color.org: any non-empty value disables colors.
		colour: errTTY && getenv("NO_COLOR") == "" && !dumb,
		dumb:   dumb,
	}
}

// Test returns streams over buffers. They are not terminals and have no colors.
func Test() (s *IOStreams, in, out, errOut *bytes.Buffer) {
	in, out, errOut = &bytes.Buffer{}, &bytes.Buffer{}, &bytes.Buffer{}
	return &IOStreams{In: in, Out: out, Err: errOut}, in, out, errOut
}

// Say writes a message to Err, ending with a newline. It removes control characters, because names and reasons in the message may come from
// other users. Several goroutines may call it.
func (s *IOStreams) Say(format string, args ...any) {
	s.saying.Lock()
	defer s.saying.Unlock()
	fmt.Fprintln(s.Err, terminal.Text(fmt.Sprintf(format, args...)))
}

// CanPrompt reports whether the command can ask the user a question.
func (s *IOStreams) CanPrompt() bool { return s.inTTY && s.errTTY }

// IsErrTTY reports whether Err, the stream for progress, is a terminal.
func (s *IOStreams) IsErrTTY() bool { return s.errTTY }

// CanRedraw reports whether Err, the stream for progress, is a terminal where lines can be replaced.
func (s *IOStreams) CanRedraw() bool { return s.errTTY && !s.dumb }

// IsOutTTY reports whether Out, the stream for data, is a terminal.
func (s *IOStreams) IsOutTTY() bool { return s.outTTY }

// Logs returns the writer for logs. On a terminal, it passes text and colors but no other control sequences, unless raw is set. To a file or a
// pipe it passes every byte.
func (s *IOStreams) Logs(raw bool) io.WriteCloser {
	if raw || !s.IsOutTTY() {
		return asItIs{s.Out}
	}
	return terminal.Colours(s.Out)
}

// asItIs writes text unchanged. It is a WriteCloser that doesn't close its writer.
type asItIs struct{ io.Writer }

// Close does nothing.
func (asItIs) Close() error { return nil }

// ColourEnabled reports whether progress may have colors.
func (s *IOStreams) ColourEnabled() bool { return s.colour }

// SetTerminal determines whether the streams behave like a terminal. Only tests call it.
func (s *IOStreams) SetTerminal(yes bool) { s.inTTY, s.outTTY, s.errTTY = yes, yes, yes }

// Width returns the number of columns of Err, the stream for progress, or 80 if the number isn't known.
func (s *IOStreams) Width() int {
	if n := Columns(s.Err); n > 0 {
		return n
	}
	return 80
}

// Columns returns the number of columns of w, or 0 if w isn't a terminal.
func Columns(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// ReadPassword reads one line from the terminal without echoing the typed characters.
func (s *IOStreams) ReadPassword() (string, error) {
	f, ok := s.In.(*os.File)
	if !ok {
		return "", os.ErrInvalid
	}
	b, err := term.ReadPassword(int(f.Fd()))
	return string(b), err
}
