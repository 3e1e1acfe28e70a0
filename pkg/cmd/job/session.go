package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/stream"
)

// holder is the program that runs in the task of a session. It exits if paictl hasn't written into the file for 2 minutes. Otherwise, programs
// that were started over a broken connection would continue to run. If paictl is killed before holder has started, the job waits until holder
// starts, and ends 2 minutes later.
const holder = `
# Waits for "paictl job run", which writes into this file every 10 seconds, and ends 2 minutes after the last time.
beat=/dev/shm/.paictl-session
: >"$beat"
last= left=12
while [ "$left" -gt 0 ]; do
  sleep 10
  now=$(cat "$beat" || true)
  if [ "$now" = "$last" ]; then left=$((left - 1)); else last=$now left=12; fi
done
echo "paictl has not been there for 2 minutes: the session ends"
exit 1
`

// keeper waits until holder runs, reports that it runs, and writes the lines that it receives from paictl into the file.
const keeper = `until test -e /dev/shm/.paictl-session; do sleep 1; done
echo ready
while read -r beat; do echo "$beat" >/dev/shm/.paictl-session; done`

const (
	beatEvery = 10 * time.Second
	// stopWithin limits the time to stop the job of an interrupted session.
	stopWithin = 30 * time.Second
)

// attach submits the job of a session, runs the command in its task, and stops the job.
func (opts *RunOptions) attach(ctx context.Context, c *client.Jobs, all []submission) (err error) {
	// Closing the terminal must stop the job, so SIGHUP ends ctx.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	opts.whole = true
	if err := opts.submit(ctx, c, all); err != nil {
		return err
	}
	owner, err := opts.Flags.maker(ctx, opts.Factory, c)
	if err != nil {
		return err
	}
	name := all[0].job.Name
	if all[0].outcome != job.Submitted {
		return hint.Errorf("open a shell in it: paictl job shell "+name, "%s/%s already exists", owner, name)
	}
	defer func() { err = opts.end(ctx, c, owner, name, err) }()
	j, err := c.Resolve(ctx, owner, name)
	if err != nil {
		return err
	}
	d, err := follow(ctx, opts.Factory, c, j, followOptions{mine: true, until: func(p job.Phase) bool { return p == job.Running }})
	if err != nil {
		return err
	}
	if job.Phase(d.State) != job.Running {
		return tellEnd(ctx, opts.Factory, c, j, d, false)
	}
	return opts.enter(ctx, c, j)
}

// enter runs the command in the task, and keeps the session alive until the command exits.
func (opts *RunOptions) enter(ctx context.Context, c *client.Jobs, j *job.Job) error {
	j, err := c.Get(ctx, j)
	if err != nil {
		return err
	}
	target, err := pick(ctx, c, j, "", -1)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, failed := make(chan struct{}), make(chan error, 1)
	go func() { failed <- keep(ctx, c, target, sync.OnceFunc(func() { close(ready) })) }()
	select {
	case <-ready:
	case err := <-failed:
		return ended(c, j, target, err)
	case <-ctx.Done():
		return ctx.Err()
	}
	opts.Factory.IO.Say("in %s on %s; the job ends with this session", target.Task, target.Node)
	command := opts.Command
	if len(command) == 0 {
		command = shellCommand(opts.Factory.Getenv("TERM"))
	}
	if len(opts.Env) > 0 {
		command = append(append([]string{"env"}, opts.Env...), command...)
	}
	e := &ExecOptions{Factory: opts.Factory, Command: command, Stdin: opts.Stdin, TTY: opts.TTY}
	return e.run(ctx, c, j, target)
}

// keep writes to the file of the session repeatedly until ctx ends. When the connection is lost, it connects again. It returns an error if the
// first connection fails.
func keep(ctx context.Context, c *client.Jobs, target *job.Target, ready func()) error {
	there := false
	for {
		in, out := io.Pipe()
		stop := context.AfterFunc(ctx, func() { _ = out.Close() })
		go beat(ctx, out)
		err := c.Exec(ctx, target, stream.Command{Args: []string{"sh", "-c", keeper}, Stdin: in, Stdout: writerFunc(func(p []byte) {
			if strings.Contains(string(p), "ready") {
				there = true
				ready()
			}
		})})
		stop()
		_ = in.Close()
		if !there {
			if err == nil {
				err = errors.New("the task finished before the session started")
			}
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(beatEvery):
		}
	}
}

// beat writes the current time to w every 10 seconds, until ctx ends or a write fails.
func beat(ctx context.Context, w io.Writer) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		if _, err := fmt.Fprintln(w, time.Now().UnixNano()); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// writerFunc is a function that implements io.Writer.
type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

// end stops the job of a session, even if the command was interrupted.
func (opts *RunOptions) end(ctx context.Context, c *client.Jobs, owner, name string, why error) error {
	interrupted := ctx.Err() != nil
	if opts.TTY && !interrupted {
		// The terminal is closed before the signal about this arrives.
		_, gone := terminalOf(opts.Factory.IO)
		interrupted = gone != nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	j, err := c.Resolve(ctx, owner, name)
	var before job.Phase
	if err == nil {
		before, err = c.Stop(ctx, j)
	}
	switch {
	case err != nil:
		opts.Factory.IO.Say("warning: %s/%s could not be stopped; it ends 2 minutes from now, or 2 minutes after it has started: %v", owner, name, err)
	case !before.Done():
		opts.Factory.IO.Say("%s/%s is stopping", owner, name)
	}
	if interrupted {
		return &cmdutil.CodeError{Err: context.Canceled, Code: cmdutil.ExitCancelled, Silent: true}
	}
	return why
}
