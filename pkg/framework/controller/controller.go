// Package controller runs jobs: it watches Frameworks and their pods, asks pkg/framework/machine
// what follows, writes that down, and does it.
// In: the API of a cluster, an archive. Out: pods, statuses, peers, events, metrics, history.
package controller

import (
	"context"
	"errors"
	"sync/atomic"
)

// Controller is one replica. Replicas elect one that works; the others keep their caches warm.
type Controller struct {
	o      Options
	leader atomic.Value // string
}

// New checks the options. Nothing is asked or started yet.
func New(o Options) (*Controller, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	return &Controller{o: o}, nil
}

// Run works until the context ends, or with an error when the lease is lost: then the program has
// to end, since another replica leads.
func (c *Controller) Run(ctx context.Context) error {
	<-ctx.Done()
	return errors.New("not running")
}

// Leader returns the identity of the replica that works, or "" where that isn't known yet.
func (c *Controller) Leader() string {
	id, _ := c.leader.Load().(string)
	return id
}
