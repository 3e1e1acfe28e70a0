package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// ClusterLock is the file that a run locks on each control plane machine that responds. Two concurrent runs therefore try to lock at least one common
// file.
const ClusterLock = "/run/paictl.lock"

// ErrLockLost is the error of a run whose sessions with the cluster's lock were lost. The run stops, because another run may begin.
var ErrLockLost = errors.New("the session that held the cluster's lock was lost")

// LockedError means that another run is working on the cluster.
type LockedError struct {
	Host  string
	Owner string // user@host, pid
	Since string // RFC 3339, by the owner's clock
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("another run holds the cluster's lock on %s: %s, since %s", e.Host, e.Owner, e.Since)
}

// ExitCode returns 5.
func (e *LockedError) ExitCode() int { return 5 }

// lockScript returns a script that holds a lock on the file until its standard input is closed. With flock, the lock ends with the session and can't
// become stale.
func lockScript(owner string, since time.Time) string {
	return PreludeScript + fmt.Sprintf(`
owner=%s
f=$R%s
mkdir -p "$R/run"
while :; do
	exec 8>>"$f"
	if ! flock -n 8; then
		printf 'locked\t%%s\n' "$(head -n 1 "$f")"
		exit 0
	fi
	# The holder before us removes the file when it lets go. A lock on a removed file keeps
	# no one out, so it must be the one that the name stands for. $$ is not us: paictl runs
	# this in a subshell.
	[ "$(stat -c %%i "$f" 2>/dev/null)" != "$(stat -L -c %%i /proc/self/fd/8)" ] || break
done
printf '%%s\n' "$owner" >"$f"
echo held
cat >/dev/null
rm -f "$f"
`, shell.Quote(owner+"\t"+since.UTC().Format(time.RFC3339)), ClusterLock)
}

// Lock takes the cluster's lock on all control plane machines that respond, in the order of their addresses. The returned context ends when too few
// locked machines remain to block another run. A dry run takes no lock.
func (r *Run) Lock(ctx context.Context) (context.Context, func(), error) {
	if r.Opts.DryRun {
		return ctx, func() {}, nil
	}
	var held []ssh.Session
	release := func() {
		for _, s := range held {
			_ = s.Close() // the lock ends with the session in any case
		}
	}
	machines := r.Working(r.Spec.ControlPlane())
	for _, n := range machines {
		s, err := r.lockOn(ctx, n)
		if err != nil {
			release()
			return ctx, nil, err
		}
		held = append(held, s)
	}
	if len(held) == 0 {
		return ctx, nil, hint.Errorf("check that one of them answers: paictl cluster status",
			"get the cluster's lock: no machine of the control plane answers")
	}
	watched, cancel := context.WithCancelCause(ctx)
	released := make(chan struct{})
	go func() {
		// A single locked machine among the machines that it reaches blocks another run. It can't miss a locked majority of the masters.
		need := min(len(held), len(r.Spec.ControlPlane())/2+1)
		lost := make(chan string, len(held))
		for i, s := range held {
			go func() {
				select {
				case <-s.Done():
					lost <- machines[i].Hostname
				case <-released:
				}
			}()
		}
		for left := len(held); ; {
			select {
			case host := <-lost:
				if left--; left < need {
					cancel(fmt.Errorf("%w on %s", ErrLockLost, host))
					return
				}
			case <-released:
				return
			}
		}
	}()
	return watched, func() {
		close(released)
		release()
		cancel(nil)
	}, nil
}

// lockOn takes the lock on one machine. It returns the session that holds the lock.
func (r *Run) lockOn(ctx context.Context, n *Node) (ssh.Session, error) {
	s, err := r.Host(n).Hold(ctx, ssh.Script{Name: "lock", Mutates: true, Body: lockScript(r.Opts.Owner, r.Opts.Clock())})
	if err != nil {
		return nil, fmt.Errorf("get the cluster's lock on %s: %w", n.Hostname, err)
	}
	if rest, locked := strings.CutPrefix(s.FirstLine(), "locked\t"); locked {
		_ = s.Close()
		owner, since, _ := strings.Cut(rest, "\t")
		return nil, hint.Wrap(&LockedError{Host: n.Hostname, Owner: owner, Since: since},
			"wait for it to end, or end that process; this releases the lock")
	}
	if s.FirstLine() != "held" {
		_ = s.Close()
		return nil, fmt.Errorf("get the cluster's lock on %s: unexpected answer %q", n.Hostname, s.FirstLine())
	}
	return s, nil
}
