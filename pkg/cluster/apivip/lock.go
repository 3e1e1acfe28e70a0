package apivip

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is the lease, with the time since which this machine has certainly held it.
type lock struct {
	resourcelock.Interface
	mu      sync.Mutex
	renewed time.Time // when the last successful renewal began; zero if the lease was given up, or another machine has it
	mine    bool      // according to the last record that was read or written, this machine has the lease
}

// errOthers is the error of an attempt to release a lease that another machine has.
var errOthers = errors.New("another one has the lease")

// Get reads the lease, and forgets this machine's last renewal if another machine now has the lease, for example after a pause.
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

// Update writes the lease. client-go may release a lease based on its old state although it has since read that another machine has the lease, so
// Update rejects such a release.
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

// holds reports whether this machine renewed the lease within the given time. No other machine can then have acquired the lease since.
func (l *lock) holds(within time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero() && time.Since(l.renewed) < within
}
