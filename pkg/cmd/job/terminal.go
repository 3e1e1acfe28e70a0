package job

import (
	"context"
	"os"

	"golang.org/x/term"

	"github.com/openpai/paictl/pkg/job/stream"
)

// rawTerminal puts a terminal into raw mode, in which it passes on each key immediately, until restore is called. sizes receives the size of the
// terminal now and after each change.
func rawTerminal(ctx context.Context, f *os.File) (restore func(), sizes <-chan stream.Size, err error) {
	fd := int(f.Fd())
	state, err := term.MakeRaw(fd)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan stream.Size, 1)
	tell := func() {
		width, height, err := term.GetSize(fd)
		if err != nil || width < 0 || height < 0 || width > 1<<16-1 || height > 1<<16-1 {
			return
		}
		select {
		case out <- stream.Size{Width: uint16(width), Height: uint16(height)}:
		case <-ctx.Done():
		}
	}
	tell()
	go resized(ctx, tell)
	return func() {
		cancel()
		_ = term.Restore(fd, state) // an error can't be handled here
	}, out, nil
}
