package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
	"github.com/openpai/paictl/test/tier"
)

// lab is a set of fake machines with their configuration. Each machine is an SSH server in this process. It runs scripts under /bin/sh, with the
// stubs in testdata in place of programs that would change the real machine.
type lab struct {
	t       testing.TB
	dir     string
	cluster string // the state that the stubs of kubeadm and kubectl share
	conf    *config.Cluster
	bundle  *bundle.Bundle
	hosts   []*fakeHost
	path    []string
	// crash decides when paictl dies. It is atomic because machines read it while tests change it.
	crash atomic.Pointer[crash]

	commands atomic.Int64 // commands that all hosts got since the last reset
}

type fakeHost struct {
	lab      *lab
	name, ip string
	root     string
	server   *sshtest.Server
	// taking is called before the machine writes a part of an uploaded file.
	taking func(offset int64)
}

// inGate holds the tests on simulated machines that the gate runs: one for each kind of run. All tests on simulated machines together take minutes.
var inGate = map[string]bool{
	"TestUpMakesAClusterAndTheSecondUpChangesNothing":                   true,
	"TestADryRunChangesNothingAndPlansWhatUpDoes":                       true,
	"TestASecondRunIsToldWhoHoldsTheLock":                               true,
	"TestEveryCrashHealsByTheNextRun":                                   true,
	"TestUpMakesExactlyTheChangesThatADifferenceCallsFor":               true,
	"TestPhasesAndLimitNarrowARunDown":                                  true,
	"TestNoSecretLeavesItsPlace":                                        true,
	"TestDownGivesMachinesBackAsTheyWere":                               true,
	"TestDownTakesAwayWhatPodsLeftButNotWhatIsForeign":                  true,
	"TestARemovedNodeIsDrainedGivenBackAndForgotten":                    true,
	"TestPreflightOfFitMachinesPassesInOneRoundTripEach":                true,
	"TestOneUnfitMachineStopsUpBeforeAnythingIsChangedAnywhere":         true,
	"TestStatusAsksEachMachineOnceAndReadsCertificatesWithoutTheirKeys": true,
	"TestAnUpgradeGoesFromTheControlPlaneToOneMachineAfterTheOther":     true,
	"TestABackupHasTheKeysAndEtcdAndChangesNothing":                     true,
	"TestAConfigurationOfAnotherKubernetesThanTheBundlesIsRefused":      true,
}

func later(t testing.TB) {
	t.Helper()
	tier.More(t, "simulated machines, which run thousands of shell commands")
}

// newLab returns a lab with the masters m1, m2 … and the workers w1, w2 ….
func newLab(t testing.TB, masters, workers int) *lab {
	t.Helper()
	if test, _, _ := strings.Cut(t.Name(), "/"); !inGate[test] {
		later(t)
	}
	dir := t.TempDir()
	l := &lab{t: t, dir: dir, cluster: filepath.Join(dir, "cluster"), bundle: newBundle(t)}
	stubs, err := filepath.Abs("testdata/stubs")
	require.NoError(t, err)
	l.path = []string{stubs, refusing(t, dir)}
	makeAuthorities(t, filepath.Join(l.cluster, "ca"))
	quick := "ssh-username: root\ndns: 10.9.0.53\nmachines:\n"
	for i := range masters + workers {
		name, role := fmt.Sprintf("m%d", i+1), layout.RoleMaster
		if i >= masters {
			name, role = fmt.Sprintf("w%d", i-masters+1), layout.RoleWorker
		}
		h := &fakeHost{lab: l, name: name, ip: fmt.Sprintf("10.9.%d.%d", i/200, i%200+1), root: filepath.Join(dir, name)}
		h.install()
		h.server = sshtest.NewServer(t, sshtest.Config{Name: name, Handler: h})
		l.hosts = append(l.hosts, h)
		quick += fmt.Sprintf("  - {hostip: %s, hostname: %s, roles: [%s]}\n", h.ip, name, role)
	}
	l.conf = configure(t, dir, quick)
	l.conf.Kubernetes.Kubernetes.APIEndpoint = "" // tests set load-balance-ip if they need another address than the default
	t.Cleanup(l.checkRefused)
	return l
}

func configure(t testing.TB, dir, quick string) *config.Cluster {
	t.Helper()
	file := filepath.Join(dir, "quick-start.yaml")
	require.NoError(t, os.WriteFile(file, []byte(quick), 0o600))
	g, err := config.Generate(t.Context(), config.Generation{QuickStart: file, OutDir: filepath.Join(dir, "conf"), Offline: true, DryRun: true})
	require.NoError(t, err)
	return g.Cluster
}

// refusing creates a folder of programs that no script may call on a fake host. These programs would change the machine that runs the tests.
func refusing(t testing.TB, dir string) string {
	t.Helper()
	stub, err := filepath.Abs("testdata/stubs/refuse")
	require.NoError(t, err)
	out := filepath.Join(dir, "refused")
	require.NoError(t, os.Mkdir(out, 0o755))
	for _, name := range strings.Fields(`mount umount losetup iptables ip6tables sysctl swapon rmmod insmod reboot shutdown
		hostnamectl hostname apt-get apt dpkg dpkg-query dnf yum pkill killall crictl containerd kubelet runc systemd-machine-id-setup
		chown useradd service chronyc resolvectl lscpu sudo curl wget`) {
		require.NoError(t, os.Symlink(stub, filepath.Join(out, name)))
	}
	return out
}

func (l *lab) host(name string) *fakeHost {
	for _, h := range l.hosts {
		if h.name == name {
			return h
		}
	}
	l.t.Fatalf("the lab has no host %s", name)
	return nil
}

func (l *lab) spec() *engine.Spec {
	l.t.Helper()
	s, err := engine.NewSpec(l.conf, l.bundle)
	require.NoError(l.t, err)
	for _, n := range s.Nodes {
		n.Target = l.host(n.Hostname).server.Target()
	}
	return s
}

type outcome struct {
	changes []engine.Change
	err     error
	events  []engine.Event
	trips   *ssh.Counter
}

func (o *outcome) summary() engine.Summary {
	for _, e := range o.events {
		if e.Kind == engine.EventRunDone {
			return *e.Summary
		}
	}
	return engine.Summary{}
}

type sink struct{ events []engine.Event }

func (s *sink) Emit(e engine.Event) { s.events = append(s.events, e) }

// labOptions holds the options of a run of one operation. The method up of lab runs the operation like a new process of paictl, with new connections.
type labOptions struct {
	engine.Options
	UpOptions
	recreate bool
	restore  *engine.RestoreParts
	recover  *RecoverOptions
}

func (o labOptions) run(ctx context.Context, s *engine.Spec) ([]engine.Change, error) {
	switch {
	case o.recreate:
		return Recreate(ctx, s, o.Options)
	case o.restore != nil:
		return Restore(ctx, s, o.Options, o.restore)
	case o.recover != nil:
		return Recover(ctx, s, o.Options, *o.recover)
	}
	return Up(ctx, s, o.Options, o.UpOptions)
}

func (l *lab) up(ctx context.Context, edit ...func(*labOptions, *ssh.Options)) *outcome {
	l.t.Helper()
	so := sshtest.Options(l.t, l.servers()...)
	counter, events := &ssh.Counter{}, &sink{}
	so.Tracer = counter
	if c := l.crash.Load(); c != nil {
		so.NetDial = c.dial
	}
	o := labOptions{Options: engine.Options{
		Sink: events, Clock: time.Now, Owner: "tester@here, pid 1", Command: "paictl cluster up -p conf",
		StepTimeout: 5 * time.Minute, RoundTrips: func(h string) int { return counter.Host(h).RoundTrips },
	}}
	for _, f := range edit {
		f(&o, &so)
	}
	client := ssh.NewClient(so)
	defer func() { _ = client.Close() }()
	o.Dialer = client
	cs, err := o.run(ctx, l.spec())
	return &outcome{changes: cs, err: err, events: events.events, trips: counter}
}

func (l *lab) mustUp() *outcome {
	l.t.Helper()
	o := l.up(context.Background())
	require.NoError(l.t, o.err, "%s", l.story(o))
	return o
}

// madeLab is an archive with the state of machines and cluster after the method made.
type madeLab struct {
	mu      sync.Mutex
	archive []byte // nil until one was made
}

// madeLabs holds the archives of all tests, by configuration and state before the run.
var madeLabs sync.Map

// made is like mustUp, for tests that begin with an existing cluster. Labs with the same configuration and the same machines share one run. All other
// labs get a copy of the result.
func (l *lab) made() {
	l.t.Helper()
	conf, err := json.Marshal([]any{l.conf.Layout, l.conf.Kubernetes})
	require.NoError(l.t, err)
	folders := []string{"cluster"}
	for _, h := range l.hosts {
		folders = append(folders, h.name)
	}
	found, _ := madeLabs.LoadOrStore(string(conf)+strings.Join(l.state(), "\n"), &madeLab{})
	m := found.(*madeLab)
	m.mu.Lock() // other tests with the same key wait for the first
	defer m.mu.Unlock()
	if m.archive != nil {
		for _, f := range folders {
			require.NoError(l.t, os.RemoveAll(filepath.Join(l.dir, f)))
		}
		l.tar(bytes.NewReader(m.archive), "-xp")
		return
	}
	l.mustUp()
	l.rest()
	m.archive = l.tar(nil, append([]string{"-c", "--format=posix"}, folders...)...)
}

func (l *lab) tar(in io.Reader, args ...string) []byte {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), "tar", append([]string{"-C", l.dir}, args...)...)
	cmd.Stdin = in
	out, err := cmd.Output()
	require.NoError(l.t, err)
	return out
}

func (l *lab) story(o *outcome) string {
	var b strings.Builder
	for _, e := range o.events {
		if e.Error != "" {
			fmt.Fprintf(&b, "%s %s %s: %s (%s)\n", e.Kind, e.Host, e.Phase, e.Error, e.Hint)
		}
	}
	return b.String()
}

func (l *lab) servers() []*sshtest.Server {
	var out []*sshtest.Server
	for _, h := range l.hosts {
		out = append(out, h.server)
	}
	return out
}

// rest waits until every command on every machine has ended, including commands of a paictl process that has died.
func (l *lab) rest() {
	for _, h := range l.hosts {
		h.server.Wait()
	}
}

// Exec runs one command of paictl on the machine, unless a crash occurs first.
func (h *fakeHost) Exec(ctx context.Context, e *sshtest.Exec) int {
	n := int(h.lab.commands.Add(1))
	shell := sshtest.Shell{Root: h.root, Path: h.lab.path, Env: []string{
		"FAKE_CLUSTER=" + h.lab.cluster, "FAKE_STUBS=" + h.lab.path[0],
		// pam_env sets these variables from a machine's /etc/environment. The stubs fail if any of these variables is set.
		"http_proxy=" + machineProxy, "https_proxy=" + machineProxy, "all_proxy=" + machineProxy, "no_proxy=localhost",
		"HTTP_PROXY=" + machineProxy, "HTTPS_PROXY=" + machineProxy, "ALL_PROXY=" + machineProxy, "NO_PROXY=localhost",
	}}
	if h.taking != nil {
		shell.Corrupt = func(_ string, offset int64, _ []byte) { h.taking(offset) }
	}
	if c := h.lab.crash.Load(); c != nil {
		return c.exec(ctx, h, shell, n, e)
	}
	return shell.Exec(ctx, e)
}

const machineProxy = "http://10.9.255.1:3128"

func (h *fakeHost) install() {
	for path, text := range map[string]string{
		"/etc/hosts":                        "127.0.0.1 localhost\n",
		"/etc/os-release":                   "ID=debian\nVERSION_ID=\"12\"\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n",
		"/etc/machine-id":                   fmt.Sprintf("%032x\n", len(h.name)<<8+int(h.name[0])<<16+sum(h.name)),
		"/etc/resolv.conf":                  "nameserver 10.9.0.53\n",
		"/proc/1/comm":                      "systemd\n",
		"/proc/cpuinfo":                     "processor\t: 0\nmodel name\t: Fake CPU\n",
		"/proc/filesystems":                 "\text4\n",
		"/proc/meminfo":                     "MemTotal: 16000000 kB\nSwapTotal: 0 kB\n",
		"/proc/mounts":                      "/dev/vda1 / ext4 rw 0 0\n",
		"/proc/net/tcp":                     "  sl  local_address rem_address   st\n",
		"/proc/uptime":                      "1000.00 900.00\n",
		"/proc/swaps":                       "Filename Type Size Used Priority\n",
		"/proc/sys/kernel/hostname":         h.name + "\n",
		"/proc/sys/kernel/osrelease":        "6.1.0-fake\n",
		"/proc/sys/kernel/random/boot_id":   "boot-" + h.name + "\n",
		"/proc/sys/net/ipv4/ip_forward":     "0\n",
		"/proc/sys/kernel/panic":            "0\n",
		"/proc/sys/vm/overcommit_memory":    "0\n",
		"/proc/sys/vm/max_map_count":        "65530\n",
		"/sys/devices/system/cpu/online":    "0-7\n",
		"/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
		"/lib/modules/6.1.0-fake/modules.dep": "kernel/overlay.ko: \nkernel/br_netfilter.ko:\nkernel/nf_tables.ko:\n" +
			"kernel/vxlan.ko:\n",
		"/lib/systemd/system/systemd-timesyncd.service":  "[Service]\n",
		"/.fake/units/systemd-timesyncd.service.enabled": "",
		"/.fake/units/systemd-timesyncd.service.active":  "",
		"/.fake/address": h.ip + "\n",
		"/.fake/calls":   "",
	} {
		h.write(path, text)
	}
	for _, d := range []string{"/.fake/images", "/.fake/fail", "/run/systemd/system", "/opt", "/usr/libexec", "/sys/block"} {
		require.NoError(h.lab.t, os.MkdirAll(h.root+d, 0o755))
	}
}

func (h *fakeHost) swap() {
	h.write("/proc/swaps", "Filename Type Size Used Priority\n/dev/vda2 partition 1 0 -2\n")
	h.write("/etc/fstab", "/dev/vda1 / ext4 defaults 0 1\n/dev/vda2 none swap sw 0 0\n")
}

func sum(s string) int {
	n := 0
	for _, c := range s {
		n = n*31 + int(c)
	}
	return n
}

func (h *fakeHost) write(path, text string) {
	h.lab.t.Helper()
	require.NoError(h.lab.t, os.MkdirAll(filepath.Dir(h.root+path), 0o755))
	require.NoError(h.lab.t, os.WriteFile(h.root+path, []byte(text), 0o644))
}

func (h *fakeHost) read(path string) string {
	b, err := os.ReadFile(h.root + path)
	if !os.IsNotExist(err) {
		require.NoError(h.lab.t, err)
	}
	return string(b)
}

func (h *fakeHost) remove(path string) {
	h.lab.t.Helper()
	require.NoError(h.lab.t, os.RemoveAll(h.root+path))
}

// calls returns the commands that were called on the machine since the last forgetCalls.
func (h *fakeHost) calls() []string {
	return strings.FieldsFunc(h.read("/.fake/calls"), func(r rune) bool { return r == '\n' })
}

func (l *lab) forgetCalls() {
	for _, h := range l.hosts {
		h.write("/.fake/calls", "")
	}
}

func (l *lab) checkRefused() {
	for _, h := range l.hosts {
		if text := h.read("/.fake/refused"); text != "" {
			l.t.Errorf("on %s, calls that no stub knows:\n%s", h.name, text)
		}
	}
}
