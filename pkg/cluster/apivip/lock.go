package apivip

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is the lease. It also holds the time since which this machine is certain to have the lease.
type lock struct {
	resourcelock.Interface
	mu      sync.Mutex
	renewed time.Time // when the last successful renewal began; zero if the lease was given up, or another machine has it
	mine    bool      // according to the last record that was read or written, this machine has the lease
}

// errOthers is the error of an attempt to release a lease that another machine holds.
var errOthers = errors.New("another one has the lease")

// Get reads the lease. If another machine holds the lease now, Get also clears the time of this machine's last renewal.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	if err != nil {
		return r, raw, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mine = r.HolderIdentity == l.Identity(); !l.mine {
		l.renewed = time.Time{}
	}
	return r, raw, nil
}

func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.wrote(r, func() error { return l.Interface.Create(ctx, r) })
}

// Update writes the lease. It rejects a release if another machine holds the lease, because client-go may decide on a release from an outdated state.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == "" && !l.isMine() {
		return errOthers
	}
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
	l.renewed, l.mine = begun, r.HolderIdentity == l.Identity()
	return nil
}

func (l *lock) isMine() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mine
}

// holds reports whether this machine renewed the lease within the given time. No other machine can have acquired the lease since that renewal.
func (l *lock) holds(within time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero() && time.Since(l.renewed) < within
}
