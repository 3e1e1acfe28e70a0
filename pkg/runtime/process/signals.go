package process

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrStopped is the cancellation cause of Signals' context.
var ErrStopped = errors.New("the task was stopped")

// Signals receives the runtime's signals. SIGTERM and SIGINT stop the task: they cancel the context, and are forwarded to the
// running program. Other signals are only forwarded.
type Signals struct {
	ctx    context.Context //nolint:containedctx // the type exists to hold it
	cancel context.CancelCauseFunc
	c      chan os.Signal
	closed chan struct{}
	tell   func(format string, args ...any)

	mu      sync.Mutex
	current *Process
	first   unix.Signal // the signal that stopped the task, or 0
}

// Listen starts to receive signals. It calls tell with log messages.
func Listen(ctx context.Context, tell func(format string, args ...any)) *Signals {
	s := &Signals{c: make(chan os.Signal, 16), closed: make(chan struct{}), tell: tell}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	signal.Notify(s.c, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGCONT)
	// The reader of the log may exit. Without this handler, the next write would then kill the runtime.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	go s.run()
	return s
}

// Context returns a context that is canceled with the cause ErrStopped when the task is stopped.
func (s *Signals) Context() context.Context { return s.ctx }

// Close stops receiving signals.
func (s *Signals) Close() {
	signal.Stop(s.c)
	close(s.closed)
	s.cancel(nil)
}

func (s *Signals) run() {
	for {
		select {
		case <-s.closed:
			return
		case got := <-s.c:
			s.handle(got)
		}
	}
}

// handle forwards the signal before it logs, because the log may block.
func (s *Signals) handle(got os.Signal) {
	n, ok := got.(unix.Signal)
	if !ok {
		return
	}
	s.mu.Lock()
	again := s.first != 0
	stops := n == unix.SIGTERM || n == unix.SIGINT
	var err error
	switch {
	case s.current == nil || stops && again:
	case stops:
		err = s.current.stop(n)
	default:
		err = s.current.Signal(n)
	}
	if stops && !again {
		s.first = n
		s.cancel(ErrStopped) // before the lock is released: Supervise may already have noticed the end
	}
	running := s.current != nil
	s.mu.Unlock()
	switch {
	case stops && again:
		s.tell("%s again: the program still has its grace period", unix.SignalName(n))
		return
	case stops && running:
		s.tell("%s received, passed on to the program", unix.SignalName(n))
	case stops:
		s.tell("%s received", unix.SignalName(n))
	}
	if err != nil {
		s.tell("%v", err)
	}
}

// attach forwards future signals to p. If the task has already been stopped, p receives that signal now.
func (s *Signals) attach(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = p
	if p != nil && s.first != 0 {
		_ = p.stop(s.first) // its process group exists until it is reaped
	}
}

// stopped reports whether the task was asked to stop. It returns true even while the signal is still being handled.
func (s *Signals) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first != 0
}

// groupPoll is how often the runtime checks whether all processes of a program have exited. It checks only if the task is being
// stopped.
const groupPoll = 20 * time.Millisecond

// Outcome describes how a program ended.
type Outcome struct {
	Code    int
	Stopped bool // it was asked to end
	Killed  bool // it didn't end in time
}

// Supervise waits for a program, and forwards signals to the program. After a stop, the grace period applies to the whole
// process group. The program is often a shell that exits at once while its child still saves its state.
func (s *Signals) Supervise(p *Process, grace time.Duration) Outcome {
	s.attach(p)
	defer s.attach(nil)
	var o Outcome
	select {
	case status := <-p.done:
		o.Code = Code(status)
		if !s.stopped() {
			return o
		}
		p.done <- status
	case <-s.ctx.Done():
	}
	o.Stopped = true
	timer := time.NewTimer(grace)
	defer timer.Stop()
	if status, ok := p.ended(timer.C); ok {
		o.Code = Code(status)
		return o
	}
	o.Killed = true
	err := p.Signal(unix.SIGKILL)
	s.tell("the program didn't exit within %s: SIGKILL", grace)
	if err != nil {
		s.tell("%v", err)
	}
	o.Code = Code(<-p.done)
	return o
}

// ended waits until the whole process group has exited, and returns the status of the leader. It returns false if over fires
// first.
func (p *Process) ended(over <-chan time.Time) (unix.WaitStatus, bool) {
	var status unix.WaitStatus
	tick := time.NewTicker(groupPoll)
	defer tick.Stop()
	for leader := true; leader; {
		select {
		case status = <-p.done:
			leader = false
		case <-tick.C:
			p.resend()
		case <-over:
			return 0, false
		}
	}
	for p.Alive() {
		select {
		case <-tick.C:
		case <-over:
			p.done <- status
			return 0, false
		}
	}
	return status, true
}
