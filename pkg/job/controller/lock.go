package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock returns the lease of the replicas. By watching the lease, each replica also learns which replica leads.
func (c *Controller) lock() (resourcelock.Interface, error) {
	// The lease has a separate connection, so that its requests don't wait behind requests for thousands of pods.
	config := rest.CopyConfig(c.o.Config)
	config.UserAgent = name + "-lease"
	inner, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, c.o.SystemNamespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: c.o.Identity}, config, renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("set the lease up: %w", err)
	}
	return &watchedLock{Interface: inner, saw: func(holder string) { c.leader.Store(holder) }, log: c.o.Log}, nil
}

// watchedLock records the holder of the lease each time the lease is read or written. It logs when the lease can't be read.
type watchedLock struct {
	resourcelock.Interface
	saw  func(holder string)
	log  logr.Logger
	away bool // the election sends one request at a time
}

// answered logs when the API server stops responding, and when it responds again.
func (l *watchedLock) answered(ctx context.Context, err error) {
	away := err != nil && !apierrors.IsNotFound(err)
	if away == l.away || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	if l.away = away; away {
		l.log.Info("waiting for the API server: the lease can't be read", "error", err.Error())
	} else {
		l.log.Info("the API server answers")
	}
}

// Get reads the lease.
func (l *watchedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	l.answered(ctx, err)
	if err == nil {
		l.saw(record.HolderIdentity)
	}
	return record, raw, err
}

// Create creates the lease.
func (l *watchedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	if err == nil {
		l.saw(record.HolderIdentity)
	}
	return err
}

// Update takes, renews or releases the lease.
func (l *watchedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, record)
	if err == nil {
		l.answered(ctx, nil)
		l.saw(record.HolderIdentity)
	}
	return err
}
