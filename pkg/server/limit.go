package server

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/openpai/paictl/pkg/httpserver/clientaddr"
	"github.com/openpai/paictl/pkg/people/rules"
)

// Limits limits the requests of clients. A limit of 0 means the default.
type Limits struct {
	// PerMinute limits the requests from an address without a token. PerTokenMinute limits the requests with a token. ChangesPerHour, SubmitPerHour
	// and TemplatesPerHour limit the requests of a person.
	PerMinute, PerTokenMinute, ChangesPerHour, SubmitPerHour, TemplatesPerHour int
	// Streams is the maximum number of open streams.
	Streams int
	// Unlimited disables the limits on requests.
	Unlimited bool
}

// personTokens limits the requests of a person, as a multiple of the limit of one token. So a person can't send many more requests with more tokens.
const personTokens = 2

func (l Limits) complete() Limits {
	if l.PerMinute == 0 {
		l.PerMinute = 600
	}
	if l.PerTokenMinute == 0 {
		l.PerTokenMinute = 3000
	}
	if l.ChangesPerHour == 0 {
		l.ChangesPerHour = 6000 // each leaves a record in the audit, which keeps two million
	}
	if l.SubmitPerHour == 0 {
		l.SubmitPerHour = 3600
	}
	if l.TemplatesPerHour == 0 {
		l.TemplatesPerHour = 60 // each writes up to 264 KiB to etcd, which keeps the earlier version for minutes
	}
	if l.Streams == 0 {
		l.Streams = 2000
	}
	return l
}

// retryStreams is the time after which a client should retry if too many streams are open.
const retryStreams = 10 * time.Second

// The maximum number of simultaneous streams of one token, and of one person.
const (
	tokenStreams  = 20
	personStreams = 100
)

// open counts the open streams, in total and by key.
type open struct {
	mu   sync.Mutex
	most int
	all  int
	each map[string]int
}

func newOpen(most int) *open { return &open{most: most, each: map[string]int{}} }

// of is a key with the maximum number of its open streams.
type of struct {
	key  string
	most int
}

// stream returns the keys that count a stream of a subject.
func stream(s *rules.Subject) []of {
	return []of{{"t" + s.Token.ID + "/" + s.Name, tokenStreams}, {"p" + s.Name, personStreams}}
}

// take counts a stream for all keys. ok is false if too many streams are open. give removes the stream from the count.
func (s *open) take(keys ...of) (give func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.most {
		return nil, false
	}
	for _, k := range keys {
		if s.each[k.key] >= k.most {
			return nil, false
		}
	}
	s.all++
	for _, k := range keys {
		s.each[k.key]++
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		for _, k := range keys {
			if s.each[k.key]--; s.each[k.key] == 0 {
				delete(s.each, k.key)
			}
		}
	}, true
}

const (
	// maxBuckets limits the number of buckets, because unknown clients could otherwise occupy all memory.
	maxBuckets = 100_000
	// idle is the time after which any bucket is full again.
	idle = time.Hour
)

// limiter counts requests. Requests with a token count toward the limits of the token and its person. So a class of students behind one address
// doesn't share a limit.
type limiter struct {
	limits  Limits
	now     func() time.Time
	mu      sync.Mutex
	buckets map[string]*bucket
	swept   time.Time
}

type bucket struct {
	*rate.Limiter
	used time.Time
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	return &limiter{limits: l.complete(), now: now, buckets: map[string]*bucket{}}
}

// take counts a request. It returns 0 if the request is allowed, otherwise the time until the next allowed request.
func (l *limiter) take(a netip.Addr, s *rules.Subject) time.Duration {
	if s.Guest() {
		return l.address(a)
	}
	if wait := l.spend("p"+s.Name, personTokens*l.limits.PerTokenMinute, time.Minute); wait > 0 {
		return wait
	}
	return l.spend("t"+s.Token.ID+"/"+s.Name, l.limits.PerTokenMinute, time.Minute)
}

// address counts a request without a valid token. For IPv6 it counts by network instead of address, because a client usually has a whole network.
func (l *limiter) address(a netip.Addr) time.Duration {
	return l.spend("a"+clientaddr.Network(a), l.limits.PerMinute, time.Minute)
}

// body counts the body of a request without a valid token. A tenth of the requests for a minute may be sent at once.
func (l *limiter) body(a netip.Addr) time.Duration {
	return l.spend("b"+clientaddr.Network(a), max(l.limits.PerMinute/10, 5), time.Minute/10)
}

// change counts a request that the audit log records.
func (l *limiter) change(s *rules.Subject) time.Duration {
	if s.Guest() {
		return 0
	}
	return l.spend("c"+s.Name, l.limits.ChangesPerHour, time.Hour)
}

func (l *limiter) submission(s *rules.Subject) time.Duration {
	return l.spend("s"+s.Name, l.limits.SubmitPerHour, time.Hour)
}

func (l *limiter) template(s *rules.Subject) time.Duration {
	return l.spend("m"+s.Name, l.limits.TemplatesPerHour, time.Hour)
}

func (l *limiter) spend(key string, n int, per time.Duration) time.Duration {
	if l.limits.Unlimited {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if now.Sub(l.swept) > time.Minute || len(l.buckets) >= maxBuckets {
		l.sweep(now)
	}
	b := l.buckets[key]
	if b == nil {
		b = &bucket{Limiter: rate.NewLimiter(rate.Limit(float64(n)/per.Seconds()), n)}
		l.buckets[key] = b
	}
	b.used = now
	r := b.ReserveN(now, 1)
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return wait
	}
	return 0
}

// sweep deletes the buckets of clients without recent requests. If too many buckets remain, it deletes all buckets.
func (l *limiter) sweep(now time.Time) {
	l.swept = now
	for key, b := range l.buckets {
		if now.Sub(b.used) > idle {
			delete(l.buckets, key)
		}
	}
	if len(l.buckets) >= maxBuckets {
		clear(l.buckets)
	}
}
