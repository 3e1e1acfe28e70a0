package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/plural"
)

const (
	bootLimit     = 60 * time.Second // the time for sshd to answer, on a busy machine
	shutdownLimit = 15 * time.Second // the time for an orderly shutdown before the power is cut
)

// Start powers hosts on and waits until their sshd responds. It doesn't affect running hosts.
func (s *Sandbox) Start(ctx context.Context, names ...string) error {
	unlock, err := s.lockFor(names)
	if err != nil {
		return err
	}
	defer unlock()
	return s.start(ctx, names)
}

// Replace gives an empty disk to hosts that are off. At the next start, such a host is in its original state, with the same name, address and host
// key.
func (s *Sandbox) Replace(names ...string) error {
	unlock, err := s.lockFor(names)
	if err != nil {
		return err
	}
	defer unlock()
	for _, name := range names {
		if off, err := s.isGone(name); err != nil || !off {
			return errors.Join(err, hint.Errorf("paictl sandbox stop "+name, "replace the disk of %s: the host runs", name))
		}
		if err := s.replaceDisk(name); err != nil {
			return fmt.Errorf("replace the disk of %s: %w", name, err)
		}
	}
	return nil
}

// replaceDisk first removes the file that records the provisioning, so that the next start completes an interrupted replacement.
func (s *Sandbox) replaceDisk(name string) error {
	dir := s.hostDir(name)
	key := filepath.Join(dir, "upper", hostKeyPath)
	b, err := os.ReadFile(key)
	if err != nil {
		return err
	}
	for _, part := range []string{"provisioned", "var", "work", "upper"} {
		if err := removeTree(filepath.Join(dir, part)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(key), 0o755); err != nil {
		return err
	}
	return writeFile(key, b, 0o600)
}

// Stop shuts hosts down properly.
func (s *Sandbox) Stop(ctx context.Context, names ...string) error {
	return s.stopAll(ctx, names, false)
}

// Unplug cuts the power of hosts, so that their programs can't shut down properly.
func (s *Sandbox) Unplug(ctx context.Context, names ...string) error {
	return s.stopAll(ctx, names, true)
}

// Reboot reboots a full host, and waits until its sshd responds again.
func (s *Sandbox) Reboot(ctx context.Context, name string) error {
	h, err := s.Host(name)
	if err != nil {
		return err
	}
	before := s.guestInit(name)
	if h.Kind != Full || len(before) == 0 {
		return fmt.Errorf("reboot %s: it isn't a running full host", name)
	}
	// SIGRTMIN+5 makes systemd start reboot.target, see systemd(1). SIGRTMIN of the C library is 34.
	if err := syscall.Kill(before[0], syscall.Signal(34+5)); err != nil {
		return fmt.Errorf("reboot %s: %w", name, err)
	}
	ok, err := pollFor(ctx, bootLimit, func() (bool, error) {
		now := s.guestInit(name)
		return len(now) > 0 && now[0] != before[0], nil
	})
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("reboot %s: it didn't restart within %s; see %s", name, bootLimit, s.console(name))
	}
	return s.waitSSH(ctx, h, nil)
}

func (s *Sandbox) lockFor(names []string) (func(), error) {
	if s.APIOnly() {
		return nil, fmt.Errorf("the nodes of the sandbox in %s are simulated: they can't be powered on or off", s.dir)
	}
	for _, n := range names {
		if _, err := s.Host(n); err != nil {
			return nil, err
		}
	}
	return lock(s.dir)
}

func (s *Sandbox) stopAll(ctx context.Context, names []string, unplug bool) error {
	unlock, err := s.lockFor(names)
	if err != nil {
		return err
	}
	defer unlock()
	g, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		g.Go(func() error { return s.stopOne(ctx, name, unplug) })
	}
	return g.Wait()
}

// start powers on the given hosts that are off, and waits for all given hosts.
func (s *Sandbox) start(ctx context.Context, names []string) error {
	running, err := findProcesses(s.dir)
	if err != nil {
		return err
	}
	var off, all []Host
	for _, h := range s.state.Hosts {
		for _, n := range names {
			if n == h.Name {
				all = append(all, h)
				if len(running[n]) == 0 {
					off = append(off, h)
				}
			}
		}
	}
	if len(off) > 0 {
		s.progress("starting " + plural.Of(len(off), "host"))
	}
	if err := s.provision(ctx, off); err != nil {
		return err
	}
	ended, err := s.launch(ctx, off)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, h := range all {
		g.Go(func() error { return s.waitSSH(ctx, h, ended[h.Name]) })
	}
	return g.Wait()
}

// guestInit returns the process id of a full host's first process, or nil if the host isn't running.
func (s *Sandbox) guestInit(name string) []int {
	running, _ := findProcesses(s.dir)
	var out []int
	for _, pid := range running[name] {
		if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.TrimSpace(string(comm)) == "systemd-nspawn" {
			out = append(out, children(pid)...)
		}
	}
	return out
}

// stopOne stops a host and releases its resources on this machine. The host's files stay.
func (s *Sandbox) stopOne(ctx context.Context, name string, unplug bool) error {
	if !unplug {
		if err := s.signal(name, syscall.SIGTERM); err != nil {
			return err
		}
		gone, err := pollFor(ctx, shutdownLimit, func() (bool, error) { return s.isGone(name) })
		if err != nil {
			return err
		}
		if !gone {
			s.progress(name + " doesn't shut down; cutting its power")
		}
	}
	// Find the guest's first process. When that process ends, the kernel ends all other processes of the host.
	guest := s.guestInit(name)
	running, err := findProcesses(s.dir)
	if err != nil {
		return err
	}
	if err := s.signal(name, syscall.SIGKILL); err != nil {
		return err
	}
	for _, pid := range guest {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end process %d of %s: %w", pid, name, err)
		}
	}
	if err := poll(ctx, func() (bool, error) { return s.isGone(name) }); err != nil {
		return err
	}
	// An exiting process may already have lost its mark. The time limit is necessary because another program may already have the same process id.
	ending := slices.Concat(guest, running[name])
	if _, err := pollFor(ctx, 5*time.Second, func() (bool, error) { return !slices.ContainsFunc(ending, alive), nil }); err != nil {
		return err
	}
	return s.cleanUp(ctx, name)
}

// cleanUp removes the remains of a stopped host from this machine, except the host's files.
func (s *Sandbox) cleanUp(ctx context.Context, name string) error {
	cg, err := machineCgroups()
	if err != nil {
		return err
	}
	if !cg.systemd {
		if err := cg.remove(ctx, groupName(name)); err != nil {
			return err
		}
	}
	// The kernel also removes the interface, but at an unpredictable time.
	if _, err := net.InterfaceByName("vb-" + name); err == nil {
		if _, err := run(ctx, nil, "ip", "link", "delete", "dev", "vb-"+name); err != nil && exists("/sys/class/net/vb-"+name) {
			return fmt.Errorf("remove the network interface of %s: %w", name, err)
		}
	}
	return nil
}

func (s *Sandbox) isGone(name string) (bool, error) {
	running, err := findProcesses(s.dir)
	return len(running[name]) == 0, err
}

func (s *Sandbox) signal(name string, sig syscall.Signal) error {
	running, err := findProcesses(s.dir)
	if err != nil {
		return err
	}
	for _, pid := range running[name] {
		if err := signalMarked(pid, s.dir, name, sig); err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
	}
	return nil
}
