//go:build !unix

package job

import (
	"context"
	"time"
)

// resized calls tell every second, because this system sends no signal when the size of a terminal changes.
func resized(ctx context.Context, tell func()) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			tell()
		case <-ctx.Done():
			return
		}
	}
}
