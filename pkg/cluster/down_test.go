package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
	"github.com/openpai/paictl/test/runnable"
)

// newWholeLab returns a lab whose machines have the folders that every system has.
func newWholeLab(t testing.TB, masters, workers int) *lab {
	t.Helper()
	l := newLab(t, masters, workers)
	for _, h := range l.hosts {
		for _, d := range []string{"/var/lib", "/var/log", "/usr/local/bin", "/sys/module", "/etc/systemd/system"} {
			require.NoError(t, os.MkdirAll(h.root+d, 0o755))
		}
	}
	return l
}

// down runs "cluster down" like a new process of paictl.
func (l *lab) down(ctx context.Context, purge bool, edit ...func(*labOptions, *ssh.Options)) *outcome {
	l.t.Helper()
	so := sshtest.Options(l.t, l.servers()...)
	counter, events := &ssh.Counter{}, &sink{}
	so.Tracer = counter
	if c := l.crash.Load(); c != nil {
		so.NetDial = c.dial
	}
	o := labOptions{Options: engine.Options{Sink: events, Clock: time.Now, Owner: "tester@here, pid 1", Command: "paictl cluster down -p conf", StepTimeout: 5 * time.Minute}}
	for _, f := range edit {
		f(&o, &so)
	}
	client := ssh.NewClient(so)
	defer func() { _ = client.Close() }()
	o.Dialer = client
	cs, err := Down(ctx, l.spec(), o.Options, purge)
	return &outcome{changes: cs, err: err, events: events.events, trips: counter}
}

// machines returns the state of the machines without the cluster. It omits files that the stubs store beside containerd's folder and about the called
// programs.
func (l *lab) machines() string {
	var out []string
	for _, line := range l.state() {
		if !strings.HasPrefix(line, "cluster ") && !strings.Contains(line, "/.fake/images") && !strings.Contains(line, ".restored") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func assertSame(t *testing.T, before, after string) {
	t.Helper()
	assert.Empty(t, engine.Unified("machines", []byte(after), []byte(before)))
}

func TestDownGivesMachinesBackAsTheyWere(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 2)
	l.host("w1").write("/etc/containerd/config.toml", "# the operator's\n")
	require.NoError(t, os.Chmod(l.host("w1").root+"/etc/containerd/config.toml", 0o660))
	l.host("w1").write("/etc/fstab", "UUID=1 / ext4 defaults 0 1\n/swap.img none swap sw 0 0\n")
	require.NoError(t, os.Chmod(l.host("w1").root+"/etc/fstab", 0o640))
	l.host("w1").write("/opt/cni/bin/calico", "of somebody else")
	l.host("w2").write("/proc/swaps", "Filename Type Size Used Priority\n/swap.img file 1 0 -2\n")
	l.host("w2").write("/etc/fstab", "UUID=1 / ext4 defaults 0 1\n/swap.img\tnone swap sw 0 0\n")
	before := l.machines()
	l.mustUp()
	require.NotEqual(t, before, l.machines())
	// The kubelet has started the unit, and systemd keeps it active.
	l.host("m1").write("/.fake/units/paictl-certificates-boot.service.active", "")

	planned := l.down(t.Context(), false, func(o *labOptions, so *ssh.Options) { o.DryRun, so.Gate = true, ssh.DryRunGate{} })
	require.NoError(t, planned.err)
	require.NotEmpty(t, planned.changes)

	done := l.down(t.Context(), false)
	require.NoError(t, done.err, "%s", l.story(done))
	var undone []engine.Change
	for _, e := range done.events {
		if e.Kind == engine.EventChanged {
			undone = append(undone, *e.Change)
		}
	}
	assertSame(t, before, l.machines())
	for _, c := range undone {
		assert.Contains(t, planned.changes, c, "the dry run names what is done")
	}

	again := l.down(t.Context(), false)
	require.NoError(t, again.err)
	assert.Empty(t, again.changes)
	assertSame(t, before, l.machines())
}

func TestDownOfMachinesThatWereNeverTouchedChangesNothing(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 1)
	before := l.machines()
	o := l.down(t.Context(), false)
	require.NoError(t, o.err)
	assert.Empty(t, o.changes)
	assertSame(t, before, l.machines())
}

func TestDownLeavesAHalfInstalledMachineAsItWas(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 1)
	before := l.machines()
	l.host("w1").write("/.fake/fail/containerd.service", "")
	require.Error(t, l.up(t.Context()).err)
	l.host("w1").remove("/.fake/fail/containerd.service")
	o := l.down(t.Context(), false)
	require.NoError(t, o.err, "%s", l.story(o))
	assertSame(t, before, l.machines())
}

func TestDownSetsAsideAMachineThatIsOffAndFinishesTheOthers(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 2)
	before := l.machines()
	l.made()
	l.host("w1").server.Close()
	o := l.down(t.Context(), false)
	var partial *engine.PartialError
	require.ErrorAs(t, o.err, &partial)
	assert.Equal(t, 3, partial.ExitCode())
	assert.Equal(t, "paictl cluster down -p conf --limit w1", partial.Retry)
	others := func(s string) string {
		return strings.Join(slices.DeleteFunc(strings.Split(s, "\n"), func(l string) bool { return strings.HasPrefix(l, "w1 ") || strings.HasPrefix(l, "\t") }), "\n")
	}
	assertSame(t, others(before), others(l.machines()))
}

func TestDownTakesAwayWhatPodsLeftButNotWhatIsForeign(t *testing.T) {
	l := newWholeLab(t, 1, 0)
	l.made()
	h := l.host("m1")
	h.write("/proc/self/mountinfo", strings.Join([]string{
		`1 0 8:1 / / rw - ext4 /dev/vda1 rw`,
		`2 1 8:2 / /var/lib/etcd rw - ext4 /dev/vdb1 rw`,
		`3 1 0:3 / /var/lib/kubelet/pods/a/volumes/kubernetes.io~projected/token rw - tmpfs tmpfs rw`,
		`4 1 0:4 / /var/lib/kubelet/pods/a/volumes/with\040space rw - tmpfs tmpfs rw`,
		`5 1 0:5 / /run/containerd/io.containerd.runtime.v2.task/k8s.io/b/rootfs rw - overlay overlay rw`,
		`6 1 8:3 / /datastorage rw - ext4 /dev/vdc1 rw`,
	}, "\n")+"\n")
	h.write("/run/containerd/containerd.sock.ttrpc", "")
	h.write("/var/lib/etcd/member/snap/db", "objects")
	h.write("/datastorage/models/a", "weights")
	h.write("/run/netns/cni-1", "")
	h.write("/run/netns/mine", "")
	for _, link := range []string{"cni0", "flannel.1", "veth1.cni0", "veth9"} {
		h.write("/.fake/links/"+link, "")
	}
	h.write("/.fake/nft/ip kube-proxy", "table ip kube-proxy {\n}\n")
	h.write("/.fake/nft/inet mine", "table inet mine {\n}\n")
	h.write("/.fake/nft/ip mangle", "table ip mangle {\n\tchain PREROUTING {\n\t\ttype filter hook prerouting priority mangle; policy accept;\n\t}\n}\n")
	h.write("/.fake/nft/ip nat", "table ip nat {\n\tchain POSTROUTING {\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n\t\tip saddr 10.0.0.0/8 masquerade\n\t}\n}\n")
	h.write("/.fake/iptables", `*nat
:PREROUTING ACCEPT [0:0]
:KUBE-MARK-DROP - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A PREROUTING -m comment --comment "for KUBE-x" -j DOCKER
-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000
COMMIT
*filter
:INPUT ACCEPT [0:0]
-A INPUT -p tcp -j ACCEPT
COMMIT
`)
	o := l.down(t.Context(), false)
	require.NoError(t, o.err, "%s", l.story(o))

	assert.Equal(t, "*nat\n-D PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT\n-F KUBE-MARK-DROP\n-F CNI-HOSTPORT-DNAT\n"+
		"-X KUBE-MARK-DROP\n-X CNI-HOSTPORT-DNAT\nCOMMIT\n", h.read("/.fake/iptables.restored"))
	info := h.read("/proc/self/mountinfo")
	assert.NotContains(t, info, "/var/lib/kubelet")
	assert.NotContains(t, info, "/run/containerd")
	assert.Contains(t, info, " /var/lib/etcd ", "a disk of the operator's stays mounted")
	assert.DirExists(t, h.root+"/var/lib/etcd")
	assert.NoDirExists(t, h.root+"/var/lib/etcd/member")
	assert.FileExists(t, h.root+"/datastorage/models/a")
	assert.Equal(t, []string{"veth9"}, names(t, h.root+"/.fake/links"))
	assert.Equal(t, []string{"inet mine", "ip nat"}, names(t, h.root+"/.fake/nft"))
	assert.Equal(t, []string{"mine"}, names(t, h.root+"/run/netns"))

	purged := l.down(t.Context(), true)
	require.NoError(t, purged.err)
	require.Len(t, purged.changes, 1)
	assert.Equal(t, "/datastorage", purged.changes[0].Target)
	assert.DirExists(t, h.root+"/datastorage", "it is a disk of its own")
	assert.Empty(t, names(t, h.root+"/datastorage"))
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestDownEndsThePodsProcessesAndNoOthers(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 0)
	l.made()
	h := l.host("m1")
	h.write("/proc/1/cgroup", "0::/init.scope\n")
	pod, other := sleeper(t, h, "0::/kubepods/burstable/pod1/c\n", ""), sleeper(t, h, "0::/user.slice\n", "")
	shim := sleeper(t, h, "0::/system.slice/containerd.service\n", "/usr/local/bin/containerd-shim-runc-v2\x00-namespace\x00k8s.io\x00-id\x00x\x00")
	docker := sleeper(t, h, "0::/system.slice/docker.service\n", "/usr/bin/containerd-shim-runc-v2\x00-namespace\x00moby\x00-id\x00x\x00")
	o := l.down(t.Context(), false)
	require.NoError(t, o.err, "%s", l.story(o))
	<-pod
	<-shim
	for _, alive := range []<-chan struct{}{other, docker} {
		select {
		case <-alive:
			t.Error("a process that belongs to no pod was ended")
		default:
		}
	}
}

// sleeper starts a process that the fake host shows in its /proc. The channel is closed when the process ends.
func sleeper(t *testing.T, h *fakeHost, cgroup, cmdline string) <-chan struct{} {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "300")
	require.NoError(t, cmd.Start())
	dir := fmt.Sprintf("/proc/%d", cmd.Process.Pid)
	h.write(dir+"/cgroup", cgroup)
	h.write(dir+"/cmdline", cmdline)
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		_ = os.RemoveAll(h.root + dir)
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	return ended
}

func TestADownThatIsCutOffAnywhereIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	cutOff(t, 2, 6, func(t *testing.T) story {
		l := newWholeLab(t, 1, 0)
		before := l.machines()
		l.made()
		return story{lab: l, run: func() *outcome { return l.down(t.Context(), false) }, check: func(*crash, *outcome) {
			assertSame(t, before, l.machines())
		}}
	})
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(to))
	out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestDownRefusesToEraseFoldersOfTheSystem(t *testing.T) {
	s := &engine.Spec{Config: &config.Cluster{}}
	etcd, data := &s.Config.Kubernetes.Kubernetes.EtcdDataPath, &s.Config.Services.Cluster.Common.DataPath
	for _, c := range []struct{ etcd, data, want string }{
		{"/etc", "/datastorage", "etcd-data-path: /etc belongs to the machine"},
		{"/var/lib/etcd", "/var/lib", "cluster.common.data-path: /var/lib belongs to the machine"},
	} {
		*etcd, *data = c.etcd, c.data
		_, err := newUndo(s, true)
		require.ErrorContains(t, err, c.want)
		assert.NotEmpty(t, hint.Of(err))
	}
	*etcd, *data = "/var/lib/etcd", "/var/lib"
	_, err := newUndo(s, false)
	assert.NoError(t, err, "the services' data stays")
}

// TestScriptsOfThisHalfAreSound checks the syntax of every rendered script with shells. The scripts contain names that are hard to quote.
func TestScriptsOfThisHalfAreSound(t *testing.T) {
	t.Parallel()
	s := newLab(t, 1, 1).spec()
	odd := `it's "$(odd)"`
	scripts := map[string]string{
		"status": engine.PreludeScript + statusScript + statusCall(s, s.ControlPlane()[0], false),
		"list":   (&undo{etcdDir: "/var/lib/" + odd, podCIDR: "10.1.0.0/16"}).script("ab12", "list"),
		"run":    (&undo{etcdDir: "/var/lib/" + odd, dataDir: odd}).script("ab12", "run"),
		"remove": engine.PreludeScript + phases.RemoveScript + "NODE=" + shell.Quote(odd) + "\nr_drain\nr_member\nr_delete\n",
	}
	for name, body := range scripts {
		t.Run(name, func(t *testing.T) { sound(t, body) })
	}
}

func sound(t *testing.T, body string) {
	t.Helper()
	for _, shell := range []string{"sh", "dash", "bash"} {
		runnable.Need(t, shell)
		cmd := exec.CommandContext(t.Context(), shell, "-n")
		cmd.Stdin = strings.NewReader(body)
		var out bytes.Buffer
		cmd.Stderr = &out
		assert.NoError(t, cmd.Run(), "%s -n: %s", shell, out.String())
	}
}

// Folders of the cluster's programs may be the operator's disks, links to disks, or folders that aren't empty.
func TestDownLeavesTheFoldersOfTheOperatorAsTheyWere(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 1)
	m, w := l.host("m1"), l.host("w1")
	link := func(h *fakeHost, from, to string) {
		require.NoError(t, os.MkdirAll(h.root+to, 0o700))
		require.NoError(t, os.MkdirAll(filepath.Dir(h.root+from), 0o755))
		require.NoError(t, os.Symlink(h.root+to, h.root+from))
	}
	// A disk is mounted at each folder of the master. One disk is mounted below another disk.
	mounts := []string{"1 0 8:1 / / rw - ext4 /dev/vda1 rw"}
	for _, d := range []string{"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/etcd", "/etc/kubernetes", "/var/lib/kubelet/pods"} {
		mounts = append(mounts, "2 1 8:2 / "+d+" rw - ext4 /dev/vdb1 rw")
		require.NoError(t, os.MkdirAll(m.root+d+"/lost+found", 0o700))
	}
	m.write("/var/lib/kubelet/notes", "the operator's")
	m.write("/proc/self/mountinfo", strings.Join(mounts, "\n")+"\n")
	// On the worker, the folders are links. A token is mounted at its resolved path.
	for _, d := range []string{"/var/lib/kubelet", "/var/lib/containerd", "/etc/kubernetes", "/etc/cni", "/opt/cni", "/var/lib/paictl"} {
		link(w, d, "/data"+d)
	}
	w.write("/data/etc/cni/net.d/README", "the operator's")
	w.write("/proc/self/mountinfo", "")
	before := l.machines()
	l.mustUp()
	for _, h := range []*fakeHost{m, w} {
		h.write("/var/lib/kubelet/pki/kubelet-client-current.pem", "the key of a cluster")
		h.write("/var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db", "images")
		h.write("/var/lib/kubelet/pods/a/volumes/token/token", "a token")
	}
	w.write("/proc/self/mountinfo", "3 1 0:3 / /data/var/lib/kubelet/pods/a/volumes/token rw - tmpfs tmpfs rw\n")
	done := l.down(t.Context(), false)
	require.NoError(t, done.err, "%s", l.story(done))

	assertSame(t, before, l.machines())
	assert.Empty(t, l.down(t.Context(), false).changes)
	l.mustUp()
}

// The second run must also recognize the operator's folders.
func TestADownThatFailsLateLeavesTheFoldersOfTheOperatorToTheNext(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 0)
	h := l.host("m1")
	for _, d := range []string{"/var/lib/kubelet", "/var/lib/containerd", "/etc/kubernetes", "/etc/cni/net.d"} {
		h.write(d+"/notes", "the operator's")
	}
	before := l.machines()
	l.mustUp()
	h.write("/var/lib/kubelet/pki/kubelet-client-current.pem", "the key of a cluster")
	inTheWay := "/etc/hosts.paictl-new"
	h.write(inTheWay+"/x", "")
	require.Error(t, l.down(t.Context(), false).err)
	require.NoDirExists(t, h.root+"/var/lib/kubelet/pki")
	h.remove(inTheWay)
	o := l.down(t.Context(), false)
	require.NoError(t, o.err, "%s", l.story(o))
	assertSame(t, before, l.machines())
}
