package cluster

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

const (
	// readyAgain is how long a node may take to be Ready after its machine's start; scripts/remove.sh has the same limit.
	readyAgain = 5 * time.Minute
	// rebootLimit is how long a machine may take to start: servers with much memory test it for a quarter of an hour.
	rebootLimit = 30 * time.Minute
	rebootLook  = 3 * time.Second
	// needReboot is the start of the error that scripts/driver.sh reports if only a restart of the machine helps.
	needReboot = "a reboot is needed"
)

func needsReboot(err error) bool { return err != nil && strings.Contains(err.Error(), needReboot) }

// bootScript prints values that change with each start of a machine. A container has its host's boot_id, but a separate first process.
const bootScript = "cat /proc/sys/kernel/random/boot_id\nawk '{ print $22 }' /proc/1/stat\n"

// reboot restarts a machine, and waits until it answers again.
func (u *driverUpgrade) reboot(ctx context.Context, n *engine.Node) ([]engine.Change, error) {
	before, err := u.Read(ctx, n, phaseReboot, "look", bootScript)
	if err != nil {
		return nil, err
	}
	if _, err := u.Exec(ctx, n, ssh.Script{Name: phaseReboot + "/restart", Mutates: true, Timeout: time.Minute,
		// Later, so that the answer still arrives.
		Body: engine.ApplyProgram(u.Id, phaseReboot, "note reboot \"the driver's module can't be loaded otherwise\"\n(sleep 1; systemctl reboot || shutdown -r now) </dev/null >/dev/null 2>&1 &\n")}); err != nil {
		return nil, err
	}
	u.Mu.Lock()
	u.restarted[n.Hostname] = true
	u.Mu.Unlock()
	u.disconnect(n)
	limited, cancel := context.WithTimeoutCause(ctx, rebootLimit, hint.Errorf("check its console; when it is back, run the same command again", "%s hasn't answered for %s since its restart", n.Hostname, rebootLimit))
	defer cancel()
	for {
		select {
		case <-limited.Done():
			return nil, context.Cause(limited)
		case <-time.After(rebootLook):
		}
		switch back, err := u.isBack(limited, n, string(before.Stdout)); {
		case back:
			return []engine.Change{{Action: "restart", Target: "machine " + n.Hostname}}, nil
		case errors.Is(err, ssh.ErrHostKey): // waiting doesn't help
			return nil, err
		}
	}
}

// disconnect closes the connection to a machine that is about to restart.
func (u *driverUpgrade) disconnect(n *engine.Node) {
	u.Mu.Lock()
	defer u.Mu.Unlock()
	if h := u.Hosts[n.Hostname]; h != nil {
		_ = h.Close() // there is no one to tell
	}
	delete(u.Hosts, n.Hostname)
}

// isBack reports whether a machine answers, and has started since; if it doesn't, why.
func (u *driverUpgrade) isBack(ctx context.Context, n *engine.Node, before string) (bool, error) {
	h, err := u.Opts.Dialer.Dial(ctx, n.Target)
	if err != nil {
		return false, err
	}
	res, err := h.Run(ctx, ssh.Script{Name: phaseReboot + "/look", Timeout: 30 * time.Second, Body: engine.PreludeScript + bootScript})
	if err != nil || res.ExitCode != 0 || string(res.Stdout) == before {
		_ = h.Close() // the next attempt checks again
		return false, err
	}
	u.Mu.Lock()
	defer u.Mu.Unlock()
	u.Hosts[n.Hostname] = h
	return true, nil
}
