package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	// askAgain is the pause after a failed request to the API server. sayAgain is the time until the same failure is
	// logged again.
	askAgain = 2 * time.Second
	sayAgain = time.Minute
	// askTime is the timeout of one request, because a failed server may never respond.
	askTime = 10 * time.Second
)

// readTokens reads the tokens. It waits while the API server is unavailable or rejects requests. If the program exited
// instead, the kubelet would restart it with increasing delays. Then the program could start minutes after the API
// server has returned.
func readTokens(ctx context.Context, log *slog.Logger, tokens []*token) {
	for _, t := range tokens {
		untilDone(ctx, log, t.read)
	}
}

// untilDone repeats a request until the request succeeds, or ctx ends.
func untilDone(ctx context.Context, log *slog.Logger, ask func(context.Context) error) {
	said, at := "", time.Time{}
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		one, cancel := context.WithTimeout(ctx, askTime)
		err := ask(one)
		cancel()
		if err == nil {
			if said != "" {
				log.InfoContext(ctx, "the API server answers")
			}
			return
		}
		if ctx.Err() == nil && (err.Error() != said || time.Since(at) >= sayAgain) {
			said, at = err.Error(), time.Now()
			log.WarnContext(ctx, "waiting for the API server", "error", said)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ready returns a check that succeeds if this replica can lead and serve requests. The replica must have read the
// tokens and all jobs, and the archive must respond.
func ready(tokens []*token, filled func() bool, archived func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, t := range tokens {
			if t.Value() == "" {
				return fmt.Errorf("waiting for the API server, which has the Secret %s", t.name)
			}
		}
		if !filled() {
			return errors.New("waiting for the API server: the jobs have not been read yet")
		}
		return archived(ctx)
	}
}
