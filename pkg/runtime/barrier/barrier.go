// Package barrier waits until every task of a job has an address, and returns those addresses. In: the job controller or, for
// jobs that an earlier paictl submitted, the attempt's ConfigMap, watched at the API server. Out: the peers, or an error.
//
// The peers are published once, when the last pod has an address. Each waiting task then receives one message.
package barrier

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"

	"github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/pkg/runtime/process"
)

// Durations of the barrier.
const (
	// DefaultTimeout is how long a task waits for the other tasks.
	DefaultTimeout = 600 * time.Second
	// watchPeriod is the duration of one watch. jitter adds a random delay, so that tasks don't start their next watch at the
	// same time.
	watchPeriod = 60 * time.Second
	minBackoff  = 200 * time.Millisecond
	maxBackoff  = 10 * time.Second
	// refusedFor is how long rejected requests are retried, because the task's Role may not exist yet.
	refusedFor = time.Minute
	tellEvery  = time.Minute
)

// Key is the key of the peers in the ConfigMap's binaryData. It equals v1.PeersKey, which this package doesn't import.
const Key = "peers"

// Source is a source of the peers: a Client or a Controller.
type Source interface {
	// watch calls opened when the response begins, and found for each version of the peers. It returns when found returns true,
	// the response ends, or an error occurs. period is the maximum duration of the response.
	watch(ctx context.Context, period time.Duration, opened func(), found func([]byte) bool) (bool, error)
	close()
	name() string
}

// Wait waits for the peers of a task.
type Wait struct {
	Source  Source
	Attempt int    // the attempt of the Framework; peers of other attempts are ignored
	Role    string // the name in the Framework
	Index   int
	PodIP   string
	Timeout time.Duration
	Log     func(format string, args ...any)

	refusedFor time.Duration // tests shorten it
	waited     time.Time
}

// For waits for the peers. Its errors contain an exit code: 251 if other tasks have no address yet, 250 if the source is
// unreachable, and 252 if the source rejects the request.
func (w *Wait) For(ctx context.Context) (*peers.Peers, error) {
	if w.Timeout <= 0 {
		w.Timeout = DefaultTimeout
	}
	if w.refusedFor == 0 {
		w.refusedFor = refusedFor
	}
	defer w.Source.close()
	w.waited = time.Now()
	limited, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	go w.tell(limited)
	p, err := w.loop(limited)
	if err == nil {
		return p, nil
	}
	if ctx.Err() != nil { // stopped, not timed out
		return nil, exit.OfProgram(exit.Stopped, fmt.Errorf("%w while it waited for the job's other tasks", process.ErrStopped))
	}
	return nil, err
}

// tell periodically logs that the task waits.
func (w *Wait) tell(ctx context.Context) {
	t := time.NewTicker(tellEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			w.Log("waiting for the addresses of the job's other tasks, %s so far", time.Since(w.waited).Round(time.Second))
		}
	}
}

type try struct {
	opened bool // the server answered
	err    error
}

func (t try) refused() bool {
	return !t.opened && (refusal(t.err) || errors.Is(t.err, fs.ErrNotExist)) // also if no token is mounted
}

func (w *Wait) loop(ctx context.Context) (*peers.Peers, error) {
	var got *peers.Peers
	var refused time.Time // when the API began to refuse
	var before try
	backoff := minBackoff
	for {
		var t try
		done, err := w.Source.watch(ctx, jitter(watchPeriod), func() { t.opened = true }, func(data []byte) bool {
			p, err := w.accept(data)
			if err != nil {
				w.Log("%v", err)
			}
			got = p
			return p != nil
		})
		t.err = err
		if done {
			return got, nil
		}
		if ctx.Err() != nil {
			if !t.opened && (before.opened || before.err != nil) {
				t = before // the time ran out during this try, so the previous one shows the cause
			}
			return nil, w.timeout(t)
		}
		before = t
		if t.opened {
			backoff = minBackoff
		}
		if !t.refused() {
			refused = time.Time{}
		} else if refused.IsZero() {
			refused = time.Now()
		} else if time.Since(refused) > w.refusedFor {
			return nil, exit.With(exit.BarrierPermanent, fmt.Errorf("the job's peers can't be read: %w", err))
		}
		if err != nil {
			w.Log("waiting for the job's other tasks: %v; retrying", err)
		}
		if sleep(ctx, jitter(backoff)) != nil {
			return nil, w.timeout(t)
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// timeout returns the error after the time limit. The error says whether the peers weren't published, the source was
// unreachable, or the source rejected the request.
func (w *Wait) timeout(last try) error {
	switch {
	case last.opened:
		return exit.With(exit.GangTimeout, fmt.Errorf("after %s not all tasks of the job have a machine", w.Timeout))
	case last.refused():
		return exit.With(exit.BarrierPermanent, fmt.Errorf("the job's peers can't be read: %w", last.err))
	}
	return exit.With(exit.BarrierTransient, fmt.Errorf("%s can't be reached, tried for %s: %w", w.Source.name(), w.Timeout, last.err))
}

// accept decodes peers. It returns nil if the peers belong to a different attempt. It returns an error if the peers don't match
// this task.
func (w *Wait) accept(data []byte) (*peers.Peers, error) {
	p, err := peers.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("the published peers can't be read: %w", err)
	}
	if int(p.Attempt) != w.Attempt {
		return nil, nil //nolint:nilnil // of an earlier attempt; this attempt's peers aren't published yet
	}
	role := p.Role(w.Role)
	if role == nil {
		return nil, fmt.Errorf("the published peers have no role %s", w.Role)
	}
	if w.Index >= len(role.PodIPs) {
		return p, nil // this task was added to a running job
	}
	if w.PodIP != "" && role.PodIPs[w.Index] != w.PodIP {
		return nil, fmt.Errorf("the published peers have this task at %s, but it is at %s", role.PodIPs[w.Index], w.PodIP)
	}
	return p, nil
}

// jitter adds a random duration of up to a quarter of d.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(d/4+1) //nolint:gosec // only to spread requests
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
