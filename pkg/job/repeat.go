package job

import (
	"context"
	"time"
)

// Repeat calls show immediately and after each interval, until the context ends. If the interval is 0, Repeat calls show only once.
func Repeat(ctx context.Context, every time.Duration, show func(first bool) error) error {
	for first := true; ; first = false {
		err := show(first)
		if ctx.Err() != nil && every > 0 {
			return nil // Ctrl-C is the usual way to stop it
		}
		if err != nil || every == 0 {
			return err
		}
		timer := time.NewTimer(every)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}
