package status

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/status"
)

// signedInRun shows a user who signed in the cluster, as far as they may see it.
func signedInRun(ctx context.Context, opts *StatusOptions, w *connection.Connection) error {
	ask := func(ctx context.Context) (*status.Cluster, error) {
		c, err := w.Server.Status(ctx)
		if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusForbidden {
			c, err = own(ctx, &client.Jobs{Server: w.Server, Name: w.User})
		}
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

// pollEvery is how often the server is asked.
const pollEvery = 5 * time.Second

// polls is a model that a server is asked for again and again.
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

// stale is a model whose server doesn't answer any longer.
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

// onlyAdministrators is the message of parts that only administrators see.
const onlyAdministrators = "only administrators see machines, GPUs, services and alerts"

// own returns the jobs of a person who isn't an administrator, and the virtual clusters that they may use.
func own(ctx context.Context, jobs *client.Jobs) (*status.Cluster, error) {
	page, err := jobs.List(ctx, job.Filter{})
	if err != nil {
		return nil, err
	}
	owners, err := jobs.VirtualClusters(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	c := &status.Cluster{Name: "your part of the cluster", At: now, Machines: []status.Machine{}, VirtualClusters: []status.VirtualCluster{}, Services: []status.Service{}, Alerts: []status.Alert{}, Jobs: []*status.Job{}}
	for i := range page.Items {
		c.Jobs = append(c.Jobs, &status.Job{Row: page.Items[i]})
	}
	for i := range owners.Items {
		c.VirtualClusters = append(c.VirtualClusters, status.VirtualCluster{VirtualCluster: owners.Items[i]})
	}
	for _, name := range status.SourceNames() {
		s := status.Source{Name: name, State: status.StateAbsent, Since: now, Message: onlyAdministrators, Hint: "ask an administrator to run: paictl status"}
		switch {
		case name == status.SourceJobs, name == status.SourceScheduler && owners.Note == "":
			s = status.Source{Name: name, State: status.StateCurrent, Since: now, Updated: now}
		case name == status.SourceScheduler:
			s = status.Source{Name: name, State: status.StateFailed, Since: now, Message: owners.Note}
		}
		c.Sources = append(c.Sources, s)
	}
	status.Complete(c)
	return c, nil
}
