//go:build !unix

package job

import (
	"context"
	"time"
)

// resized calls tell now and then: there is no signal here.
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
