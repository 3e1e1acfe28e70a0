package status

import (
	"cmp"
	"context"
	"sync"
	"time"
)

const (
	// linger is how long a Shared follows a cluster after its last reader has left.
	linger = time.Minute
	// early is how long Follow waits for the sources other than Kubernetes before it passes the first model.
	early = 500 * time.Millisecond
)

// Limits of the pause between two models of one reader. A reader uses at most a tenth of a processor, except if a model
// costs more than 100 ms.
const (
	pausePerCost = 9
	longestPause = time.Second
)

// Shared lets many readers share one follower. The follower stops one minute after the last reader has left.
type Shared struct {
	// Open creates a follower.
	Open func() (*Follower, error)

	wait   time.Duration // in place of linger, for tests
	mu     sync.Mutex
	lead   *leader
	closed bool
}

// leader is a running follower with its readers.
type leader struct {
	*Follower
	readers int
	end     *time.Timer // set while there are no readers
	stop    func()
	done    chan struct{}
	news    chan struct{} // closed when there is a newer model; the lock of Shared guards it
}

// Run stops the follower when ctx ends. After that, reads fail.
func (s *Shared) Run(ctx context.Context) error {
	<-ctx.Done()
	s.mu.Lock()
	s.closed = true
	l := s.lead
	s.lead = nil
	s.mu.Unlock()
	if l != nil {
		l.stop()
		<-l.done
	}
	return nil
}

// join returns the running follower. If no follower runs, it starts one. The caller must call leave afterwards.
func (s *Shared) join() (*leader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, context.Canceled
	}
	if s.lead == nil {
		f, err := s.Open()
		if err != nil {
			return nil, err
		}
		ctx, stop := context.WithCancel(context.Background())
		l := &leader{Follower: f, stop: stop, done: make(chan struct{}), news: make(chan struct{})}
		s.lead = l
		go func() {
			defer close(l.done)
			_ = f.Run(ctx) // it ends with ctx alone
		}()
		go s.announce(l)
	}
	l := s.lead
	l.readers++
	if l.end != nil {
		l.end.Stop()
		l.end = nil
	}
	return l, nil
}

// announce notifies all readers when a newer model exists.
func (s *Shared) announce(l *leader) {
	for {
		select {
		case <-l.done:
			return
		case <-l.Changed():
		}
		s.mu.Lock()
		close(l.news)
		l.news = make(chan struct{})
		s.mu.Unlock()
	}
}

func (s *Shared) leave(l *leader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.readers--; l.readers > 0 {
		return
	}
	l.end = time.AfterFunc(cmp.Or(s.wait, linger), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.readers > 0 || s.lead != l {
			return
		}
		s.lead = nil
		l.stop()
	})
}

// next returns the newest model, and a channel that is closed when a newer model exists.
func (s *Shared) next(l *leader) (*Cluster, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.Current(), l.news
}

// Read returns the model when each source has responded or is unavailable. The error explains why requests to
// Kubernetes fail.
func (s *Shared) Read(ctx context.Context) (*Cluster, error) {
	l, err := s.join()
	if err != nil {
		return nil, err
	}
	defer s.leave(l)
	c, _, err := s.loaded(ctx, l, l.o.Patience)
	return c, err
}

// loaded returns the first model without loading sources, or the model after Options.Patience. After wait, it returns a
// model with loading sources if it contains the data of Kubernetes.
func (s *Shared) loaded(ctx context.Context, l *leader, wait time.Duration) (*Cluster, <-chan struct{}, error) {
	late, enough, waited := time.NewTimer(l.o.Patience), after(wait), false
	defer late.Stop()
	for {
		c, news := s.next(l)
		if !c.Loading() || waited && c.Knows(SourceAPI) {
			return c, news, l.unreachable(c)
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-l.done:
			return nil, nil, context.Canceled
		case <-late.C:
			return unanswered(c, l.o.Patience), news, l.unreachable(c)
		case <-enough:
			waited, enough = true, nil
		case <-news:
		}
	}
}

// Follow passes the current model to give. Then it passes the newest model after each change, at most once per pause.
// The pause is longer if give takes long. Some sources of the first models may be loading, but never Kubernetes. Follow
// returns when ctx ends or give returns an error.
func (s *Shared) Follow(ctx context.Context, pause time.Duration, give func(*Cluster) error) error {
	l, err := s.join()
	if err != nil {
		return err
	}
	defer s.leave(l)
	c, news, err := s.loaded(ctx, l, early)
	if err != nil {
		return err
	}
	for {
		begun := time.Now()
		if err := give(c); err != nil {
			return err
		}
		for _, wait := range []<-chan struct{}{news, after(pauseAfter(time.Since(begun), pause))} {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-l.done:
				return context.Canceled
			case <-wait:
			}
		}
		c, news = s.next(l)
	}
}

// pauseAfter returns how long a reader pauses after a model that took cost. It is at least pause.
func pauseAfter(cost, pause time.Duration) time.Duration {
	return max(pause, min(pausePerCost*cost, longestPause))
}

func after(d time.Duration) <-chan struct{} {
	out := make(chan struct{})
	time.AfterFunc(d, func() { close(out) })
	return out
}
