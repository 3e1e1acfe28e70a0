package sandbox

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
)

// launch starts hosts. It returns a channel for each host, which is closed when the host ends.
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

// spawn starts a script in new namespaces. The script survives the end of this process.
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

// nspawnArgs returns the arguments of systemd-nspawn for a full host, on which the kubelet can run.
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

// launchLight starts the scripts of all hosts, which wait at first. It then creates the hosts' network interfaces and lets the scripts continue.
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
		fmt.Fprintf(&batch, "link add name vb-%s up master %s type veth peer name host0 address %s netns %d\n",
			h.Name, s.bridge(), s.hardwareAddress(h.Name), cmd.Process.Pid)
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

// hardwareAddress returns the MAC address of a light host. The address stays the same after a restart, because other machines in the network cache it
// for half a minute. systemd-nspawn does the same for full hosts.
func (s *Sandbox) hardwareAddress(name string) net.HardwareAddr {
	sum := sha256.Sum256([]byte(s.dir + ":" + name))
	return append(net.HardwareAddr{0x02}, sum[:5]...) // 02: locally administered
}

// waitSSH waits until the host's sshd responds. The channel ended is closed when the host ends. The channel is nil if another run has started the
// host.
func (s *Sandbox) waitSSH(ctx context.Context, h Host, ended <-chan struct{}) error {
	ok, err := pollFor(ctx, bootLimit, func() (bool, error) {
		select {
		case <-ended:
			b, _ := os.ReadFile(s.console(h.Name))
			return false, hint.Errorf("the full output is in "+s.console(h.Name), "start %s: it ended at once%s", h.Name, lastLines(string(b), 3))
		default:
			return greets(ctx, netip.AddrPortFrom(h.Address, 22)), nil
		}
	})
	if err == nil && !ok {
		err = fmt.Errorf("start %s: its sshd didn't answer within %s; see %s", h.Name, bootLimit, s.console(h.Name))
	}
	return err
}

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
