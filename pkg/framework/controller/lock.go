package controller

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is the lease of the replicas, which also tells this one who leads.
func (c *Controller) lock() (resourcelock.Interface, error) {
	// Its own connection: the lease must not wait behind thousands of pods.
	config := rest.CopyConfig(c.o.Config)
	config.UserAgent = name + "-lease"
	inner, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, c.o.SystemNamespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: c.o.Identity}, config, renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("set the lease up: %w", err)
	}
	return &watchedLock{Interface: inner, saw: func(holder string) { c.leader.Store(holder) }}, nil
}

// watchedLock notes the holder of the lease whenever it is read or taken.
type watchedLock struct {
	resourcelock.Interface
	saw func(holder string)
}

// Get reads the lease.
func (l *watchedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.saw(record.HolderIdentity)
	}
	return record, raw, err
}

// Create takes a lease that isn't there.
func (l *watchedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	if err == nil {
		l.saw(record.HolderIdentity)
	}
	return err
}

// Update takes, renews or releases it.
func (l *watchedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, record)
	if err == nil {
		l.saw(record.HolderIdentity)
	}
	return err
}
