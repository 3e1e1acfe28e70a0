package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/hint"
)

const (
	bootLimit     = 60 * time.Second // for sshd to answer, on a busy machine
	shutdownLimit = 15 * time.Second // for an orderly shutdown, before the plug is pulled
)

// Start powers hosts on and waits until their sshd answers. Running ones stay as they are.
func (s *Sandbox) Start(ctx context.Context, names ...string) error {
	unlock, err := s.lockFor(names)
	if err != nil {
		return err
	}
	defer unlock()
	return s.start(ctx, names)
}

// Stop shuts hosts down in order.
func (s *Sandbox) Stop(ctx context.Context, names ...string) error {
	return s.stopAll(ctx, names, false)
}

// Unplug cuts the power of hosts: nothing on them has a chance to end well.
func (s *Sandbox) Unplug(ctx context.Context, names ...string) error {
	return s.stopAll(ctx, names, true)
}

// Reboot restarts a full host from inside and waits until its sshd answers again.
func (s *Sandbox) Reboot(ctx context.Context, name string) error {
	h, err := s.Host(name)
	if err != nil {
		return err
	}
	before := s.guestInit(name)
	if h.Kind != Full || len(before) == 0 {
		return fmt.Errorf("reboot %s: it isn't a running full host", name)
	}
	// systemd(1): SIGRTMIN+5 starts reboot.target; the C library's SIGRTMIN is 34.
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
		return nil, fmt.Errorf("the nodes of the sandbox in %s are simulated: they have no power switch", s.dir)
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

// start powers on those of the hosts that are off.
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
		s.progress(fmt.Sprintf("starting %d host(s)", len(off)))
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

// launch starts the processes of hosts. The channels tell when one has ended.
func (s *Sandbox) launch(ctx context.Context, hosts []Host) (map[string]chan struct{}, error) {
	ended := map[string]chan struct{}{}
	for _, name := range []string{"full.sh", "light.sh"} {
		b, err := script(name)
		if err != nil {
			return nil, err
		}
		if err := writeFile(filepath.Join(s.dir, name), b, 0o700); err != nil {
			return nil, err
		}
	}
	var light []Host
	for _, h := range hosts {
		if h.Kind == Light {
			light = append(light, h)
			continue
		}
		done, err := s.launchFull(h)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", h.Name, err)
		}
		ended[h.Name] = done
	}
	if len(light) == 0 {
		return ended, nil
	}
	return s.launchLight(ctx, light)
}

// spawn starts a script that outlives this process, in namespaces of its own.
func (s *Sandbox) spawn(h Host, flags uintptr, env []string, scriptName string, args ...string) (*exec.Cmd, chan struct{}, *os.File, error) {
	console, err := os.OpenFile(s.console(h.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() { _ = console.Close() }()
	stdin, feed, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() { _ = stdin.Close() }()
	cmd := exec.Command("/bin/sh", append([]string{filepath.Join(s.dir, scriptName)}, args...)...) //nolint:noctx // it outlives this command
	cmd.Env = append([]string{"PATH=" + fullPath(""), "LC_ALL=C", mark(s.dir, h.Name),
		"HOST_DIR=" + s.hostDir(h.Name), "BASE=" + s.state.Base}, env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, console, console
	cmd.Dir = "/"
	cmd.SysProcAttr = detached(flags)
	if err := cmd.Start(); err != nil {
		_ = feed.Close()
		return nil, nil, nil, err
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	return cmd, done, feed, nil
}

func (s *Sandbox) console(name string) string { return filepath.Join(s.hostDir(name), "console.log") }

func groupName(h string) string { return "paictl-" + h }

func (s *Sandbox) launchFull(h Host) (chan struct{}, error) {
	cg, err := machineCgroups()
	if err != nil {
		return nil, err
	}
	groups, err := cg.create(groupName(h.Name))
	if err != nil {
		return nil, err
	}
	env := []string{"CGROUPS=" + strings.Join(groups, " "), "SYSTEMD_NSPAWN_API_VFS_WRITABLE=network"}
	_, done, feed, err := s.spawn(h, cloneFull, env, "full.sh", s.nspawnArgs(h, cg)...)
	if err != nil {
		return nil, err
	}
	return done, feed.Close()
}

// nspawnArgs returns the arguments of systemd-nspawn for a host that can run kubelet.
func (s *Sandbox) nspawnArgs(h Host, cg cgroups) []string {
	dir := s.hostDir(h.Name)
	args := []string{"--quiet", "--directory=" + filepath.Join(dir, "merged"), "--machine=" + h.Name, "--boot", "--register=no",
		"--network-bridge=" + s.bridge(), "--capability=all", "--private-users=no",
		"--system-call-filter=@keyring bpf add_key keyctl perf_event_open @memlock",
		"--resolv-conf=off", "--timezone=off", "--link-journal=no",
		"--bind=" + filepath.Join(dir, "var") + ":/var"}
	if !cg.systemd {
		args = append(args, "--keep-unit")
	}
	for _, dev := range []string{"/dev/kmsg", "/dev/fuse"} {
		if exists(dev) {
			args = append(args, "--bind="+dev)
		}
	}
	if exists("/lib/modules") {
		args = append(args, "--bind-ro=/lib/modules")
	}
	return args
}

// launchLight starts all, then gives each its network interface, then lets them go on.
func (s *Sandbox) launchLight(ctx context.Context, hosts []Host) (map[string]chan struct{}, error) {
	ended := map[string]chan struct{}{}
	var batch strings.Builder
	var feeds []*os.File
	defer func() {
		for _, f := range feeds {
			_ = f.Close()
		}
	}()
	for _, h := range hosts {
		env := []string{"HOST_NAME=" + h.Name, fmt.Sprintf("HOST_ADDRESS=%s/%d", h.Address, s.state.Subnet.Bits()),
			"GATEWAY=" + s.state.gateway().String()}
		cmd, done, feed, err := s.spawn(h, cloneLight, env, "light.sh")
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", h.Name, err)
		}
		feeds, ended[h.Name] = append(feeds, feed), done
		fmt.Fprintf(&batch, "link add name vb-%s up master %s type veth peer name host0 netns %d\n", h.Name, s.bridge(), cmd.Process.Pid)
	}
	if _, err := runInput(ctx, nil, batch.String(), "ip", "-batch", "-"); err != nil {
		return nil, fmt.Errorf("make the hosts' network interfaces: %w", err)
	}
	for _, f := range feeds {
		if _, err := f.WriteString("go\n"); err != nil {
			return nil, fmt.Errorf("start the hosts: %w", err)
		}
	}
	return ended, nil
}

// waitSSH waits for the greeting of the host's sshd. A closed channel means that the host
// has ended; nil, that it was started by another run.
func (s *Sandbox) waitSSH(ctx context.Context, h Host, ended <-chan struct{}) error {
	ok, err := pollFor(ctx, bootLimit, func() (bool, error) {
		select {
		case <-ended:
			b, _ := os.ReadFile(s.console(h.Name))
			return false, hint.Errorf("its whole output is in "+s.console(h.Name), "start %s: it ended at once%s", h.Name, lastLines(string(b), 3))
		default:
			return greets(ctx, netip.AddrPortFrom(h.Address, 22)), nil
		}
	})
	if err == nil && !ok {
		err = fmt.Errorf("start %s: its sshd didn't answer within %s; see %s", h.Name, bootLimit, s.console(h.Name))
	}
	return err
}

// greets tells whether an SSH server answers.
func greets(ctx context.Context, at netip.AddrPort) bool {
	d := net.Dialer{Timeout: time.Second}
	c, err := d.DialContext(ctx, "tcp", at.String())
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	line, err := bufio.NewReader(c).ReadString('\n')
	return err == nil && strings.HasPrefix(line, "SSH-")
}

// guestInit returns the first process of a full host, if it runs.
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

// stopOne ends a host and what it holds of this machine. Its files stay.
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
			s.progress(name + " doesn't shut down; pulling the plug")
		}
	}
	// With the guest's first process the kernel ends all others on the host.
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
	// A process on its way out may have lost its mark already. The limit is for an id that
	// has become another program's.
	ending := append(guest, running[name]...)
	if _, err := pollFor(ctx, 5*time.Second, func() (bool, error) { return !slices.ContainsFunc(ending, alive), nil }); err != nil {
		return err
	}
	return s.cleanUp(ctx, name)
}

// cleanUp removes what a host that has ended leaves on this machine beside its files.
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
	// The kernel removes the interface too, but at a time of its own.
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
