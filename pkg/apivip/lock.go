package apivip

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is the lease, and since when this machine has it for certain.
type lock struct {
	resourcelock.Interface
	mu      sync.Mutex
	renewed time.Time // when the last renewal that succeeded was begun; zero where the lease was given up
}

func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.wrote(r, func() error { return l.Interface.Create(ctx, r) })
}

func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.wrote(r, func() error { return l.Interface.Update(ctx, r) })
}

func (l *lock) wrote(r resourcelock.LeaderElectionRecord, write func() error) error {
	begun := time.Now()
	err := write()
	if err != nil {
		return err
	}
	if r.HolderIdentity != l.Identity() {
		begun = time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = begun
	return nil
}

// holds reports whether a renewal within the time says that the lease is this machine's: no other one can have taken it since.
func (l *lock) holds(within time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero() && time.Since(l.renewed) < within
}
