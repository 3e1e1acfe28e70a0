package apivip

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is the lease, and since when this machine has it for certain.
type lock struct {
	resourcelock.Interface
	mu      sync.Mutex
	renewed time.Time // when the last renewal that succeeded was begun; zero where the lease was given up, or is another one's
	mine    bool      // what was read or written last says that this machine has it
}

// errOthers says that a lease isn't given up, since another one has it.
var errOthers = errors.New("another one has the lease")

// Get reads the lease. A machine that stood still may read that another one has it by now.
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

// Update writes the lease. client-go gives one up by what it knew before, though it has read the record of another one since.
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

// holds reports whether a renewal within the time says that the lease is this machine's: no other one can have taken it since.
func (l *lock) holds(within time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero() && time.Since(l.renewed) < within
}
