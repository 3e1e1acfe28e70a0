package session

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/progress"
)

// sink opens the renderer when a run has connected to its hosts. Before that, the user may have to answer questions about host keys and
// passphrases, which a live table would overwrite. The first event of a run is its start, and the second event comes after the connections are
// made.
type sink struct {
	open  func() progress.Renderer
	hello func(engine.Event)

	mu       sync.Mutex
	first    *engine.Event
	renderer progress.Renderer
	closed   bool
}

// Emit implements cluster.Sink.
func (s *sink) Emit(e engine.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.renderer == nil && s.first == nil && e.Kind == engine.EventRunStarted {
		s.first = &e
		s.hello(e)
		return
	}
	s.start()
	s.renderer.Emit(e)
}

func (s *sink) start() {
	if s.renderer != nil {
		return
	}
	s.renderer = s.open()
	if s.first != nil {
		s.renderer.Emit(*s.first)
	}
}

// Close ends the display. If the run never connected to a host, only its start is displayed.
func (s *sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.renderer == nil {
		return nil
	}
	return s.renderer.Close()
}

// hello returns a function that prints on a terminal that paictl connects to the hosts.
func hello(f *cmdutil.Factory, format string) func(engine.Event) {
	return func(e engine.Event) {
		if format != "json" && f.IO.IsErrTTY() {
			fmt.Fprintf(f.IO.Err, "%s: connecting to %s\n", e.Message, plural.Of(len(e.Hosts), "host"))
		}
	}
}

func (s *Session) renderer(ctx context.Context, format string) progress.Renderer {
	if format == "quiet" {
		return &quiet{w: s.f.IO.Err}
	}
	return progress.Open(ctx, s.f.IO, format)
}

// quiet prints only the events that the output of the command doesn't contain.
type quiet struct{ w io.Writer }

// Emit implements cluster.Sink.
func (q *quiet) Emit(e engine.Event) {
	switch e.Kind {
	case engine.EventWarning:
		fmt.Fprintf(q.w, "warning: %s\n", e.Message)
	case engine.EventNote:
		fmt.Fprintf(q.w, "%s\n", e.Message)
	case engine.EventHostSetAside:
		fmt.Fprintf(q.w, "%s: %s\n", e.Host, e.Error)
	default:
		return
	}
	if e.Hint != "" {
		fmt.Fprintf(q.w, "  -> %s\n", e.Hint)
	}
}

// Close implements progress.Renderer.
func (q *quiet) Close() error { return nil }
