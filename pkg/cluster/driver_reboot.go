package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

const (
	// readyAgain limits how long a node may take to become Ready after its machine has started. The limit in scripts/remove.sh must be the same.
	readyAgain = 5 * time.Minute
	// rebootLimit limits how long a machine may take to start. Servers with a lot of memory test it for a quarter of an hour.
	rebootLimit = 30 * time.Minute
	rebootLook  = 3 * time.Second
	// rebootAgain is the time after which the reboot command is repeated if the machine hasn't restarted. It is long because a service may take 90 s to
	// stop.
	rebootAgain = 3 * time.Minute
	// needReboot is the prefix of the error that scripts/driver.sh prints if only a restart of the machine helps.
	needReboot = "a reboot is needed"
)

func needsReboot(err error) bool { return err != nil && strings.Contains(err.Error(), needReboot) }

// bootScript prints values that change each time a machine starts. It prints the start time of the first process in addition to the boot_id,
// because a container has the boot_id of its host.
const bootScript = "cat /proc/sys/kernel/random/boot_id\nawk '{ print $22 }' /proc/1/stat\n"

func (u *driverUpgrade) reboot(ctx context.Context, n *engine.Node) ([]engine.Change, error) {
	before, err := u.Read(ctx, n, phaseReboot, "look", bootScript)
	if err != nil {
		return nil, err
	}
	if err := u.restart(ctx, n); err != nil {
		return nil, err
	}
	ordered := time.Now()
	u.Mu.Lock()
	u.restarted[n.Hostname] = true
	u.Mu.Unlock()
	u.disconnect(n)
	limited, cancel := context.WithTimeout(ctx, rebootLimit)
	defer cancel()
	last := errors.New("no connection was made")
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-limited.Done():
			return nil, hint.Errorf("check its console; when it is back, run the same command again", "%s hasn't answered for %s since its restart: %w", n.Hostname, rebootLimit, last)
		case <-time.After(rebootLook):
		}
		back, err := u.isBack(limited, n, string(before.Stdout))
		switch {
		case back:
			return []engine.Change{{Action: "restart", Target: "machine " + n.Hostname}}, nil
		case errors.Is(err, ssh.ErrHostKey): // waiting doesn't help
			return nil, err
		case errors.Is(err, errNotRestarted) && time.Since(ordered) >= rebootAgain:
			err, ordered = errors.Join(err, u.restart(limited, n)), time.Now()
		}
		if limited.Err() == nil {
			last = err // afterwards, it is only the time-out
		}
		u.disconnect(n)
	}
}

func (u *driverUpgrade) restart(ctx context.Context, n *engine.Node) error {
	_, err := u.Exec(ctx, n, ssh.Script{Name: phaseReboot + "/restart", Mutates: true, Timeout: time.Minute,
		// The script delays the restart by a second, so that its output still arrives.
		Body: engine.ApplyProgram(u.Id, phaseReboot, "note reboot \"the driver's module can't be loaded otherwise\"\n(sleep 1; systemctl reboot || shutdown -r now) </dev/null >/dev/null 2>&1 &\n")})
	return err
}

func (u *driverUpgrade) disconnect(n *engine.Node) {
	u.Mu.Lock()
	defer u.Mu.Unlock()
	if h := u.Hosts[n.Hostname]; h != nil {
		_ = h.Close() // there is no one to tell
	}
	delete(u.Hosts, n.Hostname)
}

// errNotRestarted means that a machine responds but hasn't restarted yet.
var errNotRestarted = errors.New("it answers, but has not restarted")

// isBack reports whether a machine responds and has restarted. If it returns false, the error contains the reason.
func (u *driverUpgrade) isBack(ctx context.Context, n *engine.Node, before string) (bool, error) {
	h, err := u.Opts.Dialer.Dial(ctx, n.Target)
	if err != nil {
		return false, err
	}
	res, err := h.Run(ctx, ssh.Script{Name: phaseReboot + "/look", Timeout: 30 * time.Second, Body: engine.PreludeScript + bootScript})
	if err != nil {
		_ = h.Close() // the next attempt checks again
		return false, err
	}
	u.Mu.Lock()
	u.Hosts[n.Hostname] = h
	u.Mu.Unlock()
	switch {
	case res.ExitCode != 0:
		return false, fmt.Errorf("the command that reads its boot ID failed with exit status %d", res.ExitCode)
	case string(res.Stdout) == before:
		return false, errNotRestarted
	}
	return true, nil
}
