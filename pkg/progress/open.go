package progress

import (
	"context"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/iostreams"
)

// Renderer is a sink that must be closed when the run is over, however it ended: the
// live table gives the terminal back in Close.
type Renderer interface {
	cluster.Sink
	Close() error
}

// Open chooses the rendering, in one place for all commands: JSON lines on stdout for
// format "json", the live table where a person watches stderr on a screen, plain lines otherwise.
// Ask all questions (passwords, host keys) before: the live table reads the keyboard.
func Open(ctx context.Context, io *iostreams.IOStreams, format string) Renderer {
	switch {
	case format == "json":
		return NewJSON(io.Out)
	case io.CanRedraw():
		return NewLive(ctx, LiveOptions{In: io.In, Out: io.Err, Colour: io.ColourEnabled()})
	default:
		return NewPlain(io.Err, io.ColourEnabled())
	}
}

// Tee hands every event to each sink, in order.
func Tee(sinks ...cluster.Sink) cluster.Sink { return tee(sinks) }

type tee []cluster.Sink

// Emit implements cluster.Sink.
func (t tee) Emit(e cluster.Event) {
	for _, s := range t {
		s.Emit(e)
	}
}
