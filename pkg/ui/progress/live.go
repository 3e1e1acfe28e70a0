package progress

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	tea "github.com/charmbracelet/bubbletea"
	"golang.org/x/term"

	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/ui/tui"
)

// frameEvery is the time between two frames. Events that arrive between two frames are drawn together.
const frameEvery = 100 * time.Millisecond

// LiveOptions are the options of a live table.
type LiveOptions struct {
	In     io.Reader // the keyboard; only read if it is a terminal
	Out    io.Writer // the terminal
	Colour bool
	// Interrupt is called for each Ctrl-C, which a terminal in raw mode doesn't turn into a signal. If Interrupt is nil, this process receives
	// os.Interrupt for each Ctrl-C. The first signal cancels main's context. The second signal is sent after the terminal is restored, and ends
	// the program.
	Interrupt func()
	// Now returns the current time. If it is nil, time.Now is used.
	Now func() time.Time
}

// Live draws a table of hosts and phases on a terminal during the run, and leaves the final table with the summary on the screen. Emit never
// waits for the screen.
type Live struct{ *live[engine.Event] }

// live is a live table for events of any type.
type live[E any] struct {
	opts    LiveOptions
	lines   func() sinkOf[E] // returns the sink that replaces a screen that ends before the run
	program *tea.Program
	unwatch func() bool
	closing chan struct{}
	ended   chan struct{}
	once    sync.Once

	mu    sync.Mutex
	queue []E
	plain sinkOf[E] // nil while the screen is in use
	last  model[E]
	err   error
}

// sinkOf receives events of any type.
type sinkOf[E any] interface{ Emit(e E) }

// NewLive starts to draw on the terminal, and stops in Close. When ctx ends, the table shows that the run is finishing its current steps.
func NewLive(ctx context.Context, opts LiveOptions) *Live {
	return &Live{newLive(ctx, opts, reader[engine.Event](newHosts()), func() sinkOf[engine.Event] { return NewPlain(opts.Out, opts.Colour) })}
}

func newServiceLive(ctx context.Context, opts LiveOptions) *live[services.Event] {
	return newLive(ctx, opts, reader[services.Event](newReleases()), func() sinkOf[services.Event] { return newServicePlain(opts.Out, opts.Colour) })
}

func newLive[E any](ctx context.Context, opts LiveOptions, run reader[E], lines func() sinkOf[E]) *live[E] {
	if opts.Interrupt == nil {
		opts.Interrupt = interruptSelf
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	l := &live[E]{opts: opts, lines: lines, closing: make(chan struct{}), ended: make(chan struct{})}
	m := model[E]{
		run: run, p: tui.NewLinePalette(opts.Colour), now: opts.Now(), next: l.nextFrame,
		interrupt: func() tea.Msg { opts.Interrupt(); return nil },
	}
	l.program = tea.NewProgram(m, tea.WithInput(keyboard(opts.In)), tea.WithOutput(opts.Out),
		tea.WithoutSignalHandler(), tea.WithoutBracketedPaste())
	l.unwatch = context.AfterFunc(ctx, func() { l.program.Send(stoppingMsg{}) })
	go l.run()
	return l
}

// Emit adds an event to the queue. The next frame shows it.
func (l *live[E]) Emit(e E) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plain != nil {
		l.plain.Emit(e)
		return
	}
	l.queue = append(l.queue, e)
}

// Close draws the remaining events, restores the terminal and prints the final table.
func (l *live[E]) Close() error {
	l.once.Do(func() {
		l.unwatch()
		close(l.closing)
		<-l.ended
		if l.plain == nil {
			_, l.err = io.WriteString(l.opts.Out, l.last.screen().final(l.last.run.picture()))
		}
	})
	return l.err
}

// run draws the table until the run has ended. If drawing ends before the run, after a second Ctrl-C or because the terminal can't be drawn on,
// the rest of the run is written as plain lines.
func (l *live[E]) run() {
	defer close(l.ended)
	end, err := l.program.Run()
	l.mu.Lock()
	last, ok := end.(model[E])
	l.last = last
	if err != nil || !ok || last.aborted {
		l.plain = l.lines()
		for _, e := range l.queue {
			l.plain.Emit(e)
		}
		l.queue = nil
	}
	l.mu.Unlock()
	if last.aborted {
		fmt.Fprintln(l.opts.Out, "stopped at once; steps that ran may be half done, run the same command again")
		l.opts.Interrupt()
	}
}

// nextFrame waits until it is time for the next frame, or until the run has ended, and returns the events in the queue.
func (l *live[E]) nextFrame() tea.Msg {
	t := time.NewTimer(frameEvery)
	defer t.Stop()
	closed := false
	select {
	case <-t.C:
	case <-l.closing:
		closed = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.queue
	l.queue = nil
	return frame[E]{now: l.opts.Now(), events: events, closed: closed}
}

// keyboard returns in if it is a terminal. Otherwise it returns nil, and Ctrl-C is an ordinary signal.
func keyboard(in io.Reader) io.Reader {
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

func interruptSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Signal(os.Interrupt)
	}
}
