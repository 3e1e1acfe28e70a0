package progress

import (
	"context"

	"github.com/openpai/paictl/pkg/iostreams"
	"github.com/openpai/paictl/pkg/services"
)

// ServiceRenderer is a Renderer of runs on services.
type ServiceRenderer interface {
	services.Sink
	Close() error
}

// OpenServices chooses the rendering of a run on services, as Open does for machines.
func OpenServices(ctx context.Context, io *iostreams.IOStreams, format string) ServiceRenderer {
	switch {
	case format == "json":
		return newJSONLines[services.Event](io.Out)
	case io.CanRedraw():
		return newServiceLive(ctx, LiveOptions{In: io.In, Out: io.Err, Colour: io.ColourEnabled()})
	default:
		return newServicePlain(io.Err, io.ColourEnabled())
	}
}

func newServiceLive(ctx context.Context, opts LiveOptions) *live[services.Event] {
	return newLive(ctx, opts, picture[services.Event](newServiceBoard()), func() sinkOf[services.Event] { return newServicePlain(opts.Out, opts.Colour) })
}
