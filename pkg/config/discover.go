package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
)

// discoverParallel limits the number of simultaneous queries of machines, because each connection is an open file on the operator's machine.
const discoverParallel = 128

// HostFailure is a machine that could not be queried.
type HostFailure struct {
	Host string
	Err  error
}

// DiscoveryError lists the machines that could not be queried, each with the cause.
type DiscoveryError struct {
	Failed []HostFailure
	Asked  int
}

// Error returns the cause for each machine.
func (e *DiscoveryError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d machines did not answer", len(e.Failed), e.Asked)
	for _, f := range e.Failed {
		text := f.Err.Error()
		if !strings.HasPrefix(text, f.Host) {
			text = f.Host + ": " + text
		}
		b.WriteString("\n  " + strings.ReplaceAll(text, "\n", "\n    "))
		if h := hint.Of(f.Err); h != "" {
			b.WriteString("\n    -> " + h)
		}
	}
	return b.String()
}

// Unwrap returns the causes for all machines.
func (e *DiscoveryError) Unwrap() []error {
	out := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		out[i] = f.Err
	}
	return out
}

// ExitCode returns 1, even if a cause has another exit code.
func (e *DiscoveryError) ExitCode() int { return 1 }

// Discover collects the facts of machines in parallel, with one round trip per machine. It returns the facts by the address of the target. It
// continues after failures and then returns a *DiscoveryError. If ctx ends, it returns the error of ctx. The argument timeout limits only the
// script; zero means 60 s. The dialer limits the time for connecting, because only the dialer can detect a wait for another connection or for the
// user. The function progress is called after each machine, and never concurrently. It may be nil.
func Discover(ctx context.Context, d ssh.Dialer, targets []ssh.Target, timeout time.Duration, progress func(done, total int, host string, err error)) (map[string]layout.Facts, error) {
	if timeout <= 0 {
		timeout = time.Minute
	}
	type answer struct {
		facts layout.Facts
		err   error
	}
	answers, finished := make([]answer, len(targets)), make(chan int)
	var g errgroup.Group
	g.SetLimit(discoverParallel)
	go func() {
		for i, t := range targets {
			g.Go(func() error {
				answers[i].facts, answers[i].err = ask(ctx, d, t, timeout)
				finished <- i
				return nil
			})
		}
		_ = g.Wait()
		close(finished)
	}()
	done := 0
	for i := range finished {
		done++
		if progress != nil {
			progress(done, len(targets), targets[i].String(), answers[i].err)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out, failed := make(map[string]layout.Facts, len(targets)), []HostFailure(nil)
	for i, t := range targets {
		if answers[i].err != nil {
			failed = append(failed, HostFailure{Host: t.String(), Err: answers[i].err})
			continue
		}
		out[t.Address] = answers[i].facts
	}
	if len(failed) > 0 {
		return nil, &DiscoveryError{Failed: failed, Asked: len(targets)}
	}
	return out, nil
}

func ask(ctx context.Context, d ssh.Dialer, t ssh.Target, timeout time.Duration) (layout.Facts, error) {
	h, err := d.Dial(ctx, t)
	if err != nil {
		return layout.Facts{}, err
	}
	defer func() { _ = h.Close() }()
	res, err := h.Run(ctx, ssh.Script{Name: "discover", Body: layout.DiscoverScript(), User: true, Timeout: timeout})
	if err != nil {
		return layout.Facts{}, err
	}
	if res.ExitCode != 0 {
		return layout.Facts{}, fmt.Errorf("the discovery script ended with exit code %d: %s", res.ExitCode, lastLine(res.Stderr))
	}
	f, err := layout.ParseFacts(res.Stdout)
	if err != nil || f.Sudo != "password" && f.Sudo != "refused" {
		return f, err
	}
	// sudo -n fails in the same way if the user needs a password and if the user has no permission. Only an attempt with a password distinguishes
	// these cases.
	_, err = h.Run(ctx, ssh.Script{Name: "discover/sudo", Body: "true", Timeout: timeout})
	switch {
	case errors.Is(err, ssh.ErrSudo):
		f.Sudo, f.SudoError = "refused", err
	case err != nil:
		return layout.Facts{}, err
	default:
		f.Sudo = "password"
	}
	return f, nil
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b[max(0, len(b)-500):])), "\n")
	return strings.ToValidUTF8(lines[len(lines)-1], "")
}

// Targets returns the SSH targets of the machines in a quick-start file.
func (q *QuickStart) Targets() []ssh.Target {
	c := &Cluster{Dir: q.dir, Layout: layout.Layout{SSH: layout.SSH{
		Username: q.SSHUsername, Password: q.SSHPassword, KeyFile: q.SSHKeyFile,
		Port: q.SSHPort, JumpHost: q.SSHJumpHost, KnownHosts: q.SSHKnownHosts,
	}}}
	same := func(p string) string { return p }
	out := make([]ssh.Target, 0, len(q.Machines))
	for _, m := range q.Machines {
		t := c.Target(layout.Machine{Hostname: m.Hostname, HostIP: m.HostIP, SSH: m.sshOf(same)})
		if m.Hostname != "" {
			t.Name = m.Hostname + " (" + m.HostIP + ")"
		}
		out = append(out, t)
	}
	return slices.Clip(out)
}
