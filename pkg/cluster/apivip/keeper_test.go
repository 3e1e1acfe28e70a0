package apivip

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is the lease in the cluster. Like the API server, it rejects a write by a client that hasn't read its last version.
type lease struct {
	mu      sync.Mutex
	record  resourcelock.LeaderElectionRecord
	version int
}

// access is one machine's access to the lease. down means that the machine's API server doesn't respond.
type access struct {
	*lease
	node string
	seen int
	down atomic.Bool
}

var errDown = errors.New("connection refused")

func (a *access) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down.Load() {
		return nil, nil, errDown
	}
	a.seen = a.version
	r := a.record
	raw, err := json.Marshal(r)
	return &r, raw, err
}

func (a *access) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return a.Update(ctx, r)
}

func (a *access) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.down.Load():
		return errDown
	case a.seen != a.version:
		return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, Name, errors.New("the object has been modified"))
	}
	a.record = r
	a.version++
	a.seen = a.version
	return nil
}

func (a *access) RecordEvent(string)              {}
func (a *access) Identity() string                { return a.node }
func (a *access) Describe() string                { return a.node }
func (a *access) SetEventRecorder(runtime.Object) {}
func (a *access) check(context.Context) error {
	if a.down.Load() {
		return errDown
	}
	return nil
}

// segment is a network segment that records whether two machines had the address at the same time.
type segment struct {
	mu      sync.Mutex
	holders map[string]bool
	foreign string
	twice   bool
	told    map[string]int // announcements by machine
}

func newSegment() *segment { return &segment{holders: map[string]bool{}, told: map[string]int{}} }

func (s *segment) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for h := range s.holders {
		out = append(out, h)
	}
	return strings.Join(out, ",")
}

type port struct {
	*segment
	node  string
	stuck atomic.Bool // the kernel doesn't remove the address
	cut   atomic.Bool // the interface has no link
}

var errNoLink = errors.New("eth0 has no link")

func (p *port) put() error {
	if p.cut.Load() {
		return errNoLink
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holders[p.node] = true
	p.twice = p.twice || len(p.holders) > 1
	return nil
}

func (p *port) remove() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stuck.Load() {
		return errors.New("device is busy")
	}
	delete(p.holders, p.node)
	return nil
}

func (p *port) announce() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told[p.node]++
	return nil
}

func (p *port) other(context.Context) (string, error) {
	if p.cut.Load() {
		return "", errNoLink
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for h := range p.holders {
		if h != p.node {
			return h, nil
		}
	}
	return p.foreign, nil
}

// quick holds a fortieth of the usual times. The lease times are longer, because the lease's record has whole seconds.
var quick = timing{
	lease: time.Second, renew: 600 * time.Millisecond, retry: 50 * time.Millisecond,
	tick: 10 * time.Millisecond, lifetime: 200 * time.Millisecond, check: 20 * time.Millisecond, failures: 3,
}

// wasTwice reports whether two machines ever had the address at the same time.
func (s *segment) wasTwice() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.twice
}

type machine struct {
	*access
	*port
	stop func()
}

func start(t *testing.T, l *lease, s *segment, node string) *machine {
	t.Helper()
	m := &machine{access: &access{lease: l, node: node}, port: &port{segment: s, node: node}}
	k := &keeper{link: m.port, lock: &lock{Interface: m.access}, ready: m.check, timing: quick, log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.run(ctx) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(m.stop)
	return m
}

func has(t *testing.T, s *segment, node string, within time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool { return s.holder() == node }, within, 5*time.Millisecond, "%q has the address", node)
}

// keeps fails the test unless a node has the address without interruption for the given time.
func keeps(t *testing.T, s *segment, node string, during time.Duration, why string) {
	t.Helper()
	assert.Never(t, func() bool { return s.holder() != node }, during, 5*time.Millisecond, why)
}

func TestOneMachineHasTheAddress(t *testing.T) {
	l, s := &lease{}, newSegment()
	a := start(t, l, s, "a")
	has(t, s, "a", 5*time.Second)
	b := start(t, l, s, "b")
	keeps(t, s, "a", 3*quick.lease/2, "who has it keeps it")
	s.mu.Lock()
	assert.GreaterOrEqual(t, s.told["a"], announceOften)
	assert.Zero(t, s.told["b"])
	s.mu.Unlock()

	a.stop()
	has(t, s, "b", quick.lease)
	b.stop()
	assert.Empty(t, s.holder())
	l.mu.Lock()
	assert.Empty(t, l.record.HolderIdentity, "the next one has not to wait for the lease")
	l.mu.Unlock()
	assert.False(t, s.wasTwice())
}

func TestAMachineWhoseAPIServerStopsLosesTheAddressBeforeAnotherTakesIt(t *testing.T) {
	l, s := &lease{}, newSegment()
	a := start(t, l, s, "a")
	has(t, s, "a", 5*time.Second)
	start(t, l, s, "b")
	a.down.Store(true)
	has(t, s, "", quick.renew)
	has(t, s, "b", 4*quick.lease)
	a.down.Store(false)
	keeps(t, s, "b", 3*quick.lease/2, "back again, it takes nothing away")
	assert.False(t, s.wasTwice())
}

func TestWithoutAMajorityNoMachineHasTheAddressAndItComesBack(t *testing.T) {
	l, s := &lease{}, newSegment()
	a, b := start(t, l, s, "a"), start(t, l, s, "b")
	require.Eventually(t, func() bool { return s.holder() != "" }, time.Minute, 5*time.Millisecond)
	a.down.Store(true)
	b.down.Store(true)
	has(t, s, "", quick.lease)
	keeps(t, s, "", 2*quick.lease, "no one can have the lease")
	a.down.Store(false)
	b.down.Store(false)
	require.Eventually(t, func() bool { return s.holder() != "" }, 4*quick.lease, 5*time.Millisecond)
	assert.False(t, s.wasTwice())
}

func TestAnAddressThatAnotherMachineHasIsNotTaken(t *testing.T) {
	l, s := &lease{}, newSegment()
	s.foreign = "02:00:00:00:00:99"
	start(t, l, s, "a")
	keeps(t, s, "", 2*quick.lease, "another machine has it")
	s.mu.Lock()
	s.foreign = ""
	s.mu.Unlock()
	has(t, s, "a", 4*quick.lease) // it may stay out of the election just now
}

func (l *lease) holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record.HolderIdentity
}

func TestAHolderThatCannotHaveTheAddressLeavesItToAnother(t *testing.T) {
	l, s := &lease{}, newSegment()
	a := start(t, l, s, "a")
	has(t, s, "a", 5*time.Second)
	b := start(t, l, s, "b")
	a.cut.Store(true)
	has(t, s, "b", 2*quick.lease)
	a.cut.Store(false)
	keeps(t, s, "b", 3*quick.lease, "back in the election, it takes nothing away")
	assert.Equal(t, "b", l.holder())
	assert.False(t, s.wasTwice())

	a.cut.Store(true)
	b.cut.Store(true)
	has(t, s, "", 2*quick.lease)
	require.Eventually(t, func() bool { return l.holder() == "" }, 5*quick.lease, 5*time.Millisecond, "a lease without the address is given up")
	a.cut.Store(false)
	has(t, s, "a", 5*quick.lease)
}

// A hanging master still has the address until its kernel removes it at the end of the lifetime.
func TestAnAddressThatEndsSoonIsWaitedFor(t *testing.T) {
	l, s := &lease{}, newSegment()
	s.foreign = "02:00:00:00:00:99"
	start(t, l, s, "a")
	require.Eventually(t, func() bool { return l.holder() == "a" }, time.Minute, 5*time.Millisecond)
	time.AfterFunc(quick.lifetime/2, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.foreign = ""
	})
	has(t, s, "a", quick.lease)
}

func TestAnotherClaimTakesNoAddressAway(t *testing.T) {
	l, s := &lease{}, newSegment()
	start(t, l, s, "a")
	has(t, s, "a", 5*time.Second)
	s.mu.Lock()
	s.foreign = "02:00:00:00:00:99"
	before := s.told["a"]
	s.mu.Unlock()
	keeps(t, s, "a", (lookEvery+announceEvery)*quick.tick*2, "it was here first")
	s.mu.Lock()
	assert.Greater(t, s.told["a"], before, "it goes on telling that the address is here")
	s.mu.Unlock()
}

func TestAnAddressThatCouldNotBeRemovedIsNotTakenByAnother(t *testing.T) {
	l, s := &lease{}, newSegment()
	a := start(t, l, s, "a")
	has(t, s, "a", 5*time.Second)
	start(t, l, s, "b")
	a.stuck.Store(true)
	a.down.Store(true)
	keeps(t, s, "a", 2*quick.lease, "the kernel still answers for it")
	a.stuck.Store(false)
	_ = a.remove()                // as the kernel does at the end of the lifetime
	has(t, s, "b", 4*quick.lease) // it may stay out of the election just now
	assert.False(t, s.wasTwice())
}

// A paused machine, such as a virtual machine that moves to another host, reads afterwards that another machine has the lease.
func TestALeaseOfAnotherIsNeitherHeldNorGivenUp(t *testing.T) {
	l := &lease{}
	of := func(node string) *lock { return &lock{Interface: &access{lease: l, node: node}} }
	record := func(node string) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: node}
	}
	a, b := of("a"), of("b")
	require.NoError(t, a.Create(t.Context(), record("a")))
	assert.True(t, a.holds(time.Hour))
	_, _, err := b.Get(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.Update(t.Context(), record("b")))

	require.Error(t, a.Update(t.Context(), record("a")))
	_, _, err = a.Get(t.Context())
	require.NoError(t, err)
	assert.False(t, a.holds(time.Hour))
	require.ErrorIs(t, a.Update(t.Context(), record("")), errOthers)
	assert.Equal(t, "b", l.record.HolderIdentity)
	require.NoError(t, b.Update(t.Context(), record("")), "its own it gives up")
}
