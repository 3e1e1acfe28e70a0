package signin

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/httpserver/clientaddr"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

const (
	// burst is the number of failed sign-ins from one address, or with one name, before the throttle delays further attempts.
	burst = 10
	// every is the interval between further attempts after burst failures, which allows five attempts a minute.
	every = 12 * time.Second
	// maxBuckets limits the number of stored addresses and names.
	maxBuckets = 100_000
)

// pause returns the time without attempts for a name after consecutive failures: from one second to five minutes.
func pause(failures int) time.Duration {
	if failures < burst {
		return 0
	}
	return min(time.Second<<min(failures-burst, 10), 5*time.Minute)
}

// key is the hash of an address, a name, or both. Nonexistent names are hashed too, because they may be passwords that were typed into the wrong
// field.
type key [sha256.Size]byte

func keyOf(kind, text string) key { return sha256.Sum256([]byte(kind + "\x00" + text)) }

// bucket is a token bucket. free is the number of allowed failures at the time as.
type bucket struct {
	free  float64
	as    time.Time
	fails int // consecutive failures
	until time.Time
}

// throttle slows down attempts to guess passwords. It counts only failures, so that successful sign-ins aren't delayed.
type throttle struct {
	now func() time.Time

	mu      sync.Mutex
	buckets map[key]*bucket
	trusted map[key]time.Time // pairs of an address and a name that have signed in
}

func newThrottle(now func() time.Time) *throttle {
	return &throttle{now: now, buckets: map[key]*bucket{}, trusted: map[key]time.Time{}}
}

// try is one attempt to sign in. It counts as a failure until its result is known, so that simultaneous attempts can't exceed the limit.
type try struct {
	t     *throttle
	from  string // network of the address
	taken []*bucket
	pair  key
	name  *bucket
	known bool
	// doubted means that at least one check has rejected the password, and no check has accepted it.
	doubted bool
}

// trustFor is how long the throttle trusts an address after a successful sign-in. Failures from other addresses don't delay attempts from a trusted
// address.
const trustFor = 30 * 24 * time.Hour

// begin counts an attempt against the name and the address. If the person has signed in from the address before, the attempt counts against a
// separate limit for both together. Otherwise an attacker could lock the person out by failed attempts with the name, or from the same address. All
// clients behind one proxy share an address.
func (t *throttle) begin(address, name string) (*try, error) {
	address, name = clientaddr.NetworkOf(address), v1.FoldName(name)
	try := &try{t: t, from: address, pair: keyOf("pair", address+"\x00"+name)}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	since, known := t.trusted[try.pair]
	try.known = known && now.Sub(since) < trustFor
	if try.known {
		return try.take(now, try.pair)
	}
	return try.take(now, keyOf("name", name), keyOf("address", address))
}

// guess counts an attempt to guess a value that isn't a name. Its limit is separate from the limits of names.
func (t *throttle) guess(what string) (*try, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return (&try{t: t}).take(t.now(), keyOf("guess", what))
}

// take counts an attempt against all keys, or returns a ThrottledError. The first key also counts consecutive failures.
func (t *try) take(now time.Time, places ...key) (*try, error) {
	var taken []*bucket
	for _, k := range places {
		b := t.t.bucket(k, now)
		if b == nil {
			return nil, &ThrottledError{After: every}
		}
		taken = append(taken, b)
	}
	for _, b := range taken {
		if b.free < 1 {
			return nil, &ThrottledError{After: time.Duration((1 - b.free) * float64(every))}
		}
	}
	of := taken[0]
	if wait := of.until.Sub(now); wait > 0 {
		return nil, &ThrottledError{After: wait}
	}
	for _, b := range taken {
		b.free--
	}
	t.taken, t.name = taken, of
	return t, nil
}

// bucket returns the bucket of a key with its current tokens, or nil if too many buckets exist.
func (t *throttle) bucket(k key, now time.Time) *bucket {
	b := t.buckets[k]
	if b == nil {
		if len(t.buckets) >= maxBuckets {
			t.prune(now)
		}
		if len(t.buckets) >= maxBuckets {
			return nil
		}
		b = &bucket{free: burst, as: now}
		t.buckets[k] = b
	}
	if d := now.Sub(b.as); d > 0 {
		b.free, b.as = min(burst, b.free+float64(d)/float64(every)), now
	}
	return b
}

// prune removes full buckets and outdated trusted addresses.
func (t *throttle) prune(now time.Time) {
	for k, b := range t.buckets {
		if b.free+float64(now.Sub(b.as))/float64(every) >= burst && now.After(b.until) {
			delete(t.buckets, k)
		}
	}
	for k, since := range t.trusted {
		if now.Sub(since) > trustFor || len(t.trusted) > maxBuckets {
			delete(t.trusted, k)
		}
	}
}

// trusted reports whether the person has signed in from the address before.
func (t *try) trusted() bool { return t.known }

// wrong leaves the attempt counted as a failure. After many consecutive failures it delays attempts with the name, even if the name doesn't exist.
func (t *try) wrong() {
	t.t.mu.Lock()
	defer t.t.mu.Unlock()
	t.name.fails++
	t.name.until = t.t.now().Add(pause(t.name.fails))
}

// right calls guessed, and marks the address as trusted for the person.
func (t *try) right() {
	t.guessed()
	t.t.mu.Lock()
	defer t.t.mu.Unlock()
	if len(t.t.trusted) >= maxBuckets {
		t.t.prune(t.t.now())
	}
	t.t.trusted[t.pair] = t.t.now()
}

// guessed returns the attempt's tokens, and resets the count of consecutive failures. Without the reset, single mistakes would add up over years.
func (t *try) guessed() {
	t.undo()
	t.t.mu.Lock()
	defer t.t.mu.Unlock()
	t.name.fails, t.name.until = 0, time.Time{}
}

// undo returns the attempt's tokens without a reset of the failures.
func (t *try) undo() {
	t.t.mu.Lock()
	defer t.t.mu.Unlock()
	for _, b := range t.taken {
		b.free = min(burst, b.free+1)
	}
}
