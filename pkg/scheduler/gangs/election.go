package gangs

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Election wraps the lock of kube-scheduler's leader election. It records the lock's holder, and the time until which this
// process may act as the leader.
type Election struct {
	resourcelock.Interface
	// deadline is how long a renewal is valid. It is kube-scheduler's renewDeadline, after which kube-scheduler exits. Other
	// replicas take over only after the longer leaseDuration.
	deadline time.Duration
	now      func() time.Time

	mu      sync.Mutex
	holder  string
	renewed time.Time // when the last request that renewed the lock started; zero if this process doesn't hold the lock
	// under counts the current requests that only a leader may send.
	under sync.WaitGroup
}

// NewElection returns an election without a lock. This process counts as the leader until Follow sets a lock.
func NewElection(now func() time.Time) *Election { return &Election{now: now} }

// Follow sets the lock. Each renewal of the lock is valid for deadline. Follow must be called before any other method.
func (l *Election) Follow(lock resourcelock.Interface, deadline time.Duration) {
	l.Interface, l.deadline = lock, deadline
}

// Get implements resourcelock.Interface.
func (l *Election) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.mu.Lock()
		l.holder = record.HolderIdentity
		l.mu.Unlock()
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *Election) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	start := l.now()
	return l.wrote(start, record, l.Interface.Create(ctx, record))
}

// Update implements resourcelock.Interface. Before it releases the lock, it waits for all requests that only a leader may send.
func (l *Election) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	start := l.now()
	if record.HolderIdentity == "" {
		l.mu.Lock()
		l.renewed = time.Time{}
		l.mu.Unlock()
		l.under.Wait()
	}
	return l.wrote(start, record, l.Interface.Update(ctx, record))
}

func (l *Election) wrote(start time.Time, record resourcelock.LeaderElectionRecord, err error) error {
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder = record.HolderIdentity
	l.renewed = time.Time{}
	if l.holder == l.Identity() {
		l.renewed = start
	}
	return nil
}

// Leads reports whether this process is the leader for at least margin. Without a lock, the process is always the leader.
func (l *Election) Leads(margin time.Duration) bool {
	if l == nil || l.Interface == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leads(margin)
}

func (l *Election) leads(margin time.Duration) bool {
	return !l.renewed.IsZero() && l.now().Add(margin).Before(l.renewed.Add(l.deadline))
}

// Begin starts a request that only a leader may send, and that ends within limit. If ok is false, the request must not be sent.
// Otherwise the caller must call done at the end of the request. The lock isn't released before done is called.
func (l *Election) Begin(limit time.Duration) (done func(), ok bool) {
	if l == nil || l.Interface == nil {
		return func() {}, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.leads(limit) {
		return nil, false
	}
	l.under.Add(1)
	return l.under.Done, true
}

// Leader returns the identity of the lock's holder, HOSTNAME_UUID, or "" if the holder is unknown.
func (l *Election) Leader() string {
	if l == nil || l.Interface == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holder
}
