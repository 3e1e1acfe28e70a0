package view

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/openpai/paictl/pkg/ui/terminal"
)

const (
	keptLines = 20_000 // of a growing text
	lineMax   = 4096   // bytes of a line
	drawEvery = 40 * time.Millisecond
)

// stream collects the lines that an action writes. The action runs until it finishes or the stream is closed.
type stream struct {
	cancel context.CancelFunc

	mu    sync.Mutex
	lines []string // lines that haven't been taken yet
	part  []byte
	ended bool
	err   error
	wake  chan struct{}
}

// news is a message with new lines of a stream, or with the end of the stream.
type news struct {
	of    *stream
	lines []string
	ended bool
	err   error
}

// begin starts an action that writes to out. It returns the stream of lines, and a command that runs the action and
// waits for the first lines.
func begin(d *env, f func(ctx context.Context, out io.Writer) error) (*stream, tea.Cmd) {
	ctx, cancel := context.WithCancel(d.ctx)
	s := &stream{cancel: cancel, wake: make(chan struct{}, 1)}
	run := func() tea.Msg {
		safe := terminal.Colours(s)
		err := f(ctx, safe)
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		s.end(err)
		return nil
	}
	return s, tea.Batch(run, s.next)
}

// Write implements io.Writer. It buffers the lines for next.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rest := p; len(rest) > 0; {
		l, after, whole := bytes.Cut(rest, []byte("\n"))
		if room := lineMax - len(s.part); room > 0 {
			s.part = append(s.part, l[:min(len(l), room)]...)
		}
		if whole {
			s.lines = append(s.lines, shown(string(s.part)))
			s.part = s.part[:0]
		}
		rest = after
	}
	if n := len(s.lines) - keptLines; n > 0 {
		s.lines = append([]string(nil), s.lines[n:]...)
	}
	s.tell()
	return len(p), nil
}

func (s *stream) tell() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.part) > 0 {
		s.lines = append(s.lines, shown(string(s.part)))
	}
	s.ended, s.err = true, err
	s.tell()
}

// next waits for lines and returns them. It combines lines that arrive at about the same time.
func (s *stream) next() tea.Msg {
	<-s.wake
	time.Sleep(drawEvery)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := news{of: s, lines: s.lines, ended: s.ended, err: s.err}
	s.lines = nil
	return n
}

// shown returns a line as a terminal shows it. It replaces tabs with spaces and removes text that a carriage return
// overwrites.
func shown(l string) string {
	l = strings.TrimRight(l, "\r")
	if i := strings.LastIndexByte(l, '\r'); i >= 0 {
		l = l[i+1:]
	}
	for {
		i := strings.IndexByte(l, '\t')
		if i < 0 {
			return l
		}
		l = l[:i] + "        "[:8-i%8] + l[i+1:]
	}
}
