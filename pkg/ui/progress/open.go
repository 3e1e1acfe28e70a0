package progress

import (
	"context"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// Renderer is a sink that must be closed when the run has ended, however it ended: the live table
// restores the terminal in Close.
type Renderer interface {
	engine.Sink
	Close() error
}

// ServiceRenderer is a Renderer of runs on services.
type ServiceRenderer interface {
	services.Sink
	Close() error
}

// Open chooses the rendering for all commands: JSON lines on stdout for format "json", the live
// table if stderr is a screen, plain lines otherwise. Ask all questions (passwords, host keys)
// before, because the live table reads the keyboard.
func Open(ctx context.Context, io *iostreams.IOStreams, format string) Renderer {
	switch {
	case format == "json":
		return NewJSON(io.Out)
	case io.CanRedraw():
		return NewLive(ctx, liveOn(io))
	default:
		return NewPlain(io.Err, io.ColourEnabled())
	}
}

// OpenServices chooses the rendering of a run on services, as Open does for machines.
func OpenServices(ctx context.Context, io *iostreams.IOStreams, format string) ServiceRenderer {
	switch {
	case format == "json":
		return newJSONLines[services.Event](io.Out)
	case io.CanRedraw():
		return newServiceLive(ctx, liveOn(io))
	default:
		return newServicePlain(io.Err, io.ColourEnabled())
	}
}

func liveOn(io *iostreams.IOStreams) LiveOptions {
	return LiveOptions{In: io.In, Out: io.Err, Colour: io.ColourEnabled()}
}
