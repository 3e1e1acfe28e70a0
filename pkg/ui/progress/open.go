package progress

import (
	"context"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// Renderer is a sink that must be closed at the end of the run, also after an error, because the live table restores the terminal in Close.
type Renderer interface {
	engine.Sink
	Close() error
}

// ServiceRenderer is the Renderer of a run on services.
type ServiceRenderer interface {
	services.Sink
	Close() error
}

// Open returns the renderer of a run on machines: JSON lines on stdout for format "json", otherwise the live table if stderr is a screen,
// otherwise plain lines. Commands must ask all questions (passwords, host keys) before they call Open, because the live table reads the
// keyboard.
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

// OpenServices returns the renderer of a run on services. It chooses the form as Open does.
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
