//go:build unix

package job

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// resized calls tell whenever the size of the terminal changes.
func resized(ctx context.Context, tell func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	for {
		select {
		case <-changed:
			tell()
		case <-ctx.Done():
			return
		}
	}
}
