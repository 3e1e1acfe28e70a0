package status

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/status"
)

// signedInRun shows the parts of the cluster's state that a signed-in user may see.
func signedInRun(ctx context.Context, opts *StatusOptions, w *connection.Connection) error {
	ask := func(ctx context.Context) (*status.Cluster, error) {
		c, err := w.Server.Status(ctx)
		if err == nil {
			c.Server = "https://" + w.Server.Host()
		}
		return c, err
	}
	c, err := ask(ctx)
	if err != nil {
		return err
	}
	polls := newPolls(ask, c, pollEvery)
	switch {
	case opts.Watch:
		return watchRun(ctx, opts, polls)
	case opts.viewed():
		return opts.View(ctx, opts.Factory, polls)
	}
	if err := Write(opts.Factory.IO.Out, &opts.Output, c, opts.All); err != nil {
		return err
	}
	return verdict(c)
}

// pollEvery is the time between two queries of the server.
const pollEvery = 5 * time.Second

// polls queries a server repeatedly, and holds the latest state of the cluster.
type polls struct {
	ask     func(context.Context) (*status.Cluster, error)
	every   time.Duration
	current atomic.Pointer[status.Cluster]
	changed chan struct{}
}

func newPolls(ask func(context.Context) (*status.Cluster, error), first *status.Cluster, every time.Duration) *polls {
	p := &polls{ask: ask, every: every, changed: make(chan struct{}, 1)}
	p.current.Store(first)
	p.changed <- struct{}{}
	return p
}

// Current implements Following.
func (p *polls) Current() *status.Cluster { return p.current.Load() }

// Changed implements Following.
func (p *polls) Changed() <-chan struct{} { return p.changed }

// Run implements Following.
func (p *polls) Run(ctx context.Context) error {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		c, err := p.ask(ctx)
		if ctx.Err() != nil {
			continue
		}
		if err != nil {
			c = stale(p.Current(), err)
		}
		p.current.Store(c)
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

// stale returns the last known state of a cluster whose server no longer responds. It marks the data as stale.
func stale(last *status.Cluster, err error) *status.Cluster {
	c := *last
	c.Sources = slices.Clone(last.Sources)
	for i := range c.Sources {
		if s := &c.Sources[i]; s.State == status.StateCurrent {
			s.State, s.Since, s.Message, s.Hint = status.StateStale, last.At, err.Error(), hint.Of(err)
		}
	}
	status.Complete(&c)
	return &c
}
