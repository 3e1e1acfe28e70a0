// Package process is the part of the runtime that is PID 1: it starts programs, waits for them and for orphans,
// forwards signals, and passes on output. In: programs, signals, pipes. Out: exit codes, the container's log, the end
// of the output.
package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/runtime/exit"
)

// Reaper waits for all children of the runtime, including orphans. While a Reaper runs, other code must not wait for children.
// For example, os/exec's Wait would fail, because the Reaper has already waited for the child.
type Reaper struct {
	mu      sync.Mutex
	waiting map[int]chan unix.WaitStatus
	signals chan os.Signal
	stop    chan struct{}
	done    chan struct{}
}

// NewReaper starts to reap children. As PID 1, the runtime inherits orphans. In tests and in pods with a shared process
// namespace, the runtime isn't PID 1, so it becomes a subreaper.
func NewReaper() (*Reaper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the reaper of orphans: %w", err)
	}
	r := &Reaper{
		waiting: map[int]chan unix.WaitStatus{}, signals: make(chan os.Signal, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	signal.Notify(r.signals, unix.SIGCHLD)
	go r.run()
	return r, nil
}

// Stop stops reaping. After Stop, os/exec works again.
func (r *Reaper) Stop() {
	signal.Stop(r.signals)
	close(r.stop)
	<-r.done
}

func (r *Reaper) run() {
	defer close(r.done)
	for {
		select {
		case <-r.stop:
			return
		case <-r.signals:
			r.reap()
		}
	}
}

// reap waits for all children that have exited. The kernel merges pending signals, so one SIGCHLD may represent several
// children.
func (r *Reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if !status.Exited() && !status.Signaled() {
			continue
		}
		if c, ok := r.waiting[pid]; ok {
			delete(r.waiting, pid)
			c <- status
		}
	}
}

// Command describes a program to start. It runs in a separate session.
type Command struct {
	Args   []string // the first is looked up in PATH
	Dir    string   // "" is the current one
	Env    []string
	Stdin  *os.File // nil: no input
	Stdout *os.File
	Stderr *os.File
	Extra  []*os.File // from file descriptor 3 on
}

// Process is a started program that leads a session. The program and its children form one process group. Children may leave
// the group.
type Process struct {
	PID  int
	done chan unix.WaitStatus

	// These fields are set when the process is stopped. After that, they are only read.
	asked    unix.Signal
	program  string // the program of the group's leader
	children []child
}

// Start starts a program. Its errors contain the exit codes of shells: 127 if the program doesn't exist, and 126 if it can't be
// executed.
func (r *Reaper) Start(c Command) (*Process, error) {
	path, err := exec.LookPath(c.Args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, startError(c.Args[0], err)
	}
	if c.Dir != "" {
		if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
			return nil, exit.OfProgram(exit.CannotExecute, fmt.Errorf("%s can't be run in %s: there is no such folder", c.Args[0], c.Dir))
		}
	}
	stdin := c.Stdin
	if stdin == nil {
		if stdin, err = os.Open(os.DevNull); err != nil {
			return nil, err
		}
		defer stdin.Close()
	}
	// Hold the lock during fork and exec, because Go itself waits for the child if exec fails.
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := os.StartProcess(path, c.Args, &os.ProcAttr{
		Dir: c.Dir, Env: c.Env, Files: append([]*os.File{stdin, c.Stdout, c.Stderr}, c.Extra...),
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, startError(c.Args[0], err)
	}
	pid := p.Pid
	done := make(chan unix.WaitStatus, 1)
	r.waiting[pid] = done
	return &Process{PID: pid, done: done}, p.Release()
}

func startError(name string, err error) error {
	code := exit.CannotExecute
	cause := err
	var lookup *exec.Error
	if errors.As(err, &lookup) {
		cause = lookup.Err
	}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return exit.OfProgram(exit.NotFound, fmt.Errorf("%s: command not found (%w)", name, cause))
	case errors.Is(err, fs.ErrNotExist):
		// Linux returns the same error if the program's loader or interpreter is missing.
		return exit.OfProgram(exit.NotFound, fmt.Errorf("%s: command not found, or its loader or interpreter is missing (%w)", name, cause))
	case errors.Is(err, unix.E2BIG):
		cause = fmt.Errorf("%w: its arguments and the environment are larger than Linux allows", err)
	case errors.Is(err, unix.ENOEXEC):
		cause = fmt.Errorf("%w: it is not a program for this architecture, or a script whose first line names no interpreter", err)
	}
	return exit.OfProgram(code, fmt.Errorf("%s can't be run: %w", name, cause))
}

// Signal sends a signal to the process group.
func (p *Process) Signal(s unix.Signal) error {
	if err := unix.Kill(-p.PID, s); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %s to process group %d: %w", unix.SignalName(s), p.PID, err)
	}
	return nil
}

// Alive reports whether the process group has members other than a reaped leader.
func (p *Process) Alive() bool { return !errors.Is(unix.Kill(-p.PID, 0), unix.ESRCH) }

// Code returns the exit code that a shell would report.
func Code(s unix.WaitStatus) int {
	if s.Signaled() {
		return exit.Signal(int(s.Signal()))
	}
	return s.ExitStatus()
}
