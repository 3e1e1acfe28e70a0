package cluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"mvdan.cc/sh/v3/syntax"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/test/runnable"
)

func TestTheProbeAndTheRepairsArePOSIXShell(t *testing.T) {
	s := preflightSpec(t, 1)
	for name, program := range map[string]string{
		"probe on a master": engine.DetectProgram([]engine.Section{{Name: phasePreflight, Body: preflight.Probe(phases.CheckedCluster(s.Fresh(), nil), phases.CheckedNode(s.Nodes[0]))}}),
		"probe on a worker": engine.DetectProgram([]engine.Section{{Name: phasePreflight, Body: preflight.Probe(phases.CheckedCluster(s.Fresh(), nil), phases.CheckedNode(s.Nodes[1]))}}),
		"repairs":           engine.ApplyProgram("r", phasePreflight, engine.RepairScript+"p_packages mount\np_hostname 'w1'\n"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(program), name)
			require.NoError(t, err)
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-n")
			cmd.Stdin = strings.NewReader(program)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// fakeRoot is a folder in place of a host's root. Its stubs come before the real programs in the PATH.
type fakeRoot struct {
	t    *testing.T
	root string
	bin  string
}

func newFakeRoot(t *testing.T) *fakeRoot {
	f := &fakeRoot{t: t, root: t.TempDir(), bin: t.TempDir()}
	f.file("/proc/1/comm", "systemd\n")
	f.file("/proc/sys/kernel/random/boot_id", "boot-1\n")
	f.file("/proc/sys/kernel/osrelease", "6.1.0-13-amd64\n")
	f.file("/proc/filesystems", "nodev\toverlay\n")
	f.file("/proc/mounts", "/dev/sda1 / ext4 rw,relatime 0 0\n")
	f.file("/proc/net/tcp", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n")
	f.stub("systemctl", `shift; for u; do echo inactive; done; exit 3`)
	f.stub("ip", `:`)
	f.stub("unshare", `:`)
	f.stub("iptables", `:`)
	f.stub("modprobe", `:`)
	return f
}

func (f *fakeRoot) file(path, body string) {
	name := filepath.Join(f.root, path)
	require.NoError(f.t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(f.t, os.WriteFile(name, []byte(body), 0o644))
}

func (f *fakeRoot) stub(name, body string) {
	runnable.Write(f.t, filepath.Join(f.bin, name), "#!/bin/sh\n"+body+"\n")
}

// probe runs the whole detect program with the probe of a node under the given shell, or /bin/sh.
func (f *fakeRoot) probe(s *engine.Spec, n *engine.Node, sh ...string) answer.Answer {
	if len(sh) == 0 {
		sh = []string{"/bin/sh"}
	}
	cmd := exec.CommandContext(f.t.Context(), sh[0], append(sh[1:], "-s")...)
	cmd.Env = []string{"PATH=" + f.bin + ":/usr/sbin:/usr/bin:/sbin:/bin", "PAICTL_ROOT=" + f.root}
	cmd.Stdin = strings.NewReader(engine.DetectProgram([]engine.Section{{Name: phasePreflight, Body: preflight.Probe(phases.CheckedCluster(s.Fresh(), nil), phases.CheckedNode(n))}}))
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	require.NoError(f.t, cmd.Run(), "%s", complaints.String())
	assert.Empty(f.t, complaints.String())
	a := sectionsOf(out.Bytes())[phasePreflight]
	require.Equal(f.t, "ok", a.Value("end"), "%s", out.String())
	require.Empty(f.t, a.Failed)
	return a
}

func TestTheProbeAnswersOnAFreshHost(t *testing.T) {
	f := newFakeRoot(t)
	s := preflightSpec(t, 1)
	for _, sh := range [][]string{{"/bin/sh"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		runnable.Need(t, sh[0])
		a := f.probe(s, s.Nodes[1], sh...)
		assert.Equal(t, "systemd", a.Value("init"))
		assert.Equal(t, "boot-1", a.Value("boot"))
		assert.Equal(t, "present", a.Value("module", "overlay"))
		assert.Equal(t, "unknown", a.Value("module", "vxlan"))
		assert.Equal(t, [][]string{{"kubeadm"}}, a.All("missing"))
		assert.Empty(t, a.All("active"))
		assert.Empty(t, a.All("port"))
		assert.Empty(t, a.All("exists"))
		assert.Empty(t, a.All("mount"))
		for _, p := range preflight.Folders(phases.CheckedCluster(s.Fresh(), nil), phases.CheckedNode(s.Nodes[1])) {
			row, ok := a.Row("fs", p)
			require.True(t, ok, p)
			require.Len(t, row, 6)
			assert.Regexp(t, `^[0-9]+$`, row[2])
		}
	}
}

func TestTheProbeTellsWhatIsMissing(t *testing.T) {
	f := newFakeRoot(t)
	s := preflightSpec(t, 1)
	// The PATH contains the programs that the probe itself needs. The prelude adds the system's folders, so the test replaces losetup with a nonexistent
	// name.
	body := strings.Replace(preflight.Probe(phases.CheckedCluster(s.Fresh(), nil), phases.CheckedNode(s.Nodes[1])), "losetup", "paictl-no-such-program", 1)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-s")
	cmd.Env = []string{"PATH=" + f.bin + ":/usr/sbin:/usr/bin:/sbin:/bin", "PAICTL_ROOT=" + f.root}
	cmd.Stdin = strings.NewReader(engine.DetectProgram([]engine.Section{{Name: phasePreflight, Body: body}}))
	out, err := cmd.Output()
	require.NoError(t, err)
	assert.Equal(t, [][]string{{"paictl-no-such-program"}, {"kubeadm"}}, sectionsOf(out)[phasePreflight].All("missing"))
}

func TestTheProbeNamesWhoHoldsAPort(t *testing.T) {
	f := newFakeRoot(t)
	s := preflightSpec(t, 1)
	line := "   0: %s %s %s 00000000:00000000 00:00000000 00000000     0        0 %d 1 0 100 0 0 10 0\n"
	// Port 6443 is listening (0A). Port 10250 in the IPv6 table has no known owner. 2379 is only an outgoing connection. Port 80 isn't a port of
	// the cluster.
	f.file("/proc/net/tcp", "  sl  header\n"+
		fmt.Sprintf(line, "00000000:192B", "00000000:0000", "0A", 4711)+
		fmt.Sprintf(line, "0100007F:094B", "0100007F:1F90", "01", 4712)+
		fmt.Sprintf(line, "00000000:0050", "00000000:0000", "0A", 4713))
	f.file("/proc/net/tcp6", "  sl  header\n"+
		fmt.Sprintf(line, "00000000000000000000000000000000:280A", "00000000000000000000000000000000:0000", "0A", 4714))
	f.file("/proc/123/comm", "nginx\n")
	require.NoError(t, os.MkdirAll(filepath.Join(f.root, "proc/123/fd"), 0o755))
	require.NoError(t, os.Symlink("socket:[4711]", filepath.Join(f.root, "proc/123/fd/6")))
	a := f.probe(s, s.Nodes[0])
	assert.Equal(t, [][]string{{"6443", "123", "nginx"}, {"10250", "", ""}}, a.All("port"))
}

func TestTheProbeSeesMountOptionsWhereTheyMatter(t *testing.T) {
	f := newFakeRoot(t)
	s := preflightSpec(t, 1)
	f.file("/proc/mounts", strings.Join([]string{
		"/dev/sda1 / ext4 ro,relatime 0 0",
		"/dev/sda2 /var ext4 rw,noexec 0 0",
		"/dev/sda3 /var/lib/containerd ext4 rw 0 0",
		"/dev/sda4 /optional ext4 ro 0 0",
		"/dev/sda5 /opt ext4 ro 0 0",
		"/dev/sda5 /opt ext4 rw 0 0", // mounted over it
	}, "\n")+"\n")
	a := f.probe(s, s.Nodes[1])
	assert.Equal(t, [][]string{
		{"/etc", "/", "ro"}, {"/etc/kubernetes", "/", "ro"}, {"/etc/cni/net.d", "/", "ro"}, {phases.BinDir, "/", "ro"},
		{engine.StateDir, "/var", "noexec"}, {"/var/lib/kubelet", "/var", "noexec"}, {"/var/log", "/var", "noexec"},
	}, a.All("mount"))
}

func TestTheProbeFollowsLinksToWhatTheyLeadTo(t *testing.T) {
	f := newFakeRoot(t)
	s := preflightSpec(t, 1)
	require.NoError(t, os.MkdirAll(f.root+"/data/kubelet", 0o755))
	require.NoError(t, os.MkdirAll(f.root+"/var/lib", 0o755))
	require.NoError(t, os.Symlink(f.root+"/data/kubelet", f.root+"/var/lib/kubelet"))
	require.NoError(t, os.Symlink(f.root+"/data/containerd", f.root+"/var/lib/containerd"))
	f.file("/proc/mounts", "/dev/sda1 / ext4 rw 0 0\n/dev/sdb1 /data xfs rw,noexec 0 0\n")
	a := f.probe(s, s.Nodes[1])
	assert.Equal(t, [][]string{{"/var/lib/kubelet", "/data", "noexec"}}, a.All("mount"))
	assert.Equal(t, [][]string{{"/var/lib/containerd", f.root + "/data/containerd"}}, a.All("dangling"))
}

func TestTheProbeCountsInodesAndTriesAnOverlay(t *testing.T) {
	f := newFakeRoot(t)
	s := preflightSpec(t, 1)
	f.stub("df", `shift 2
echo header
for f; do echo "tmpfs 160 159 48576 1048576 / $f"; done`)
	a := f.probe(s, s.Nodes[1])
	row, _ := a.Row("fs", "/var/lib/containerd")
	assert.Equal(t, []string{"/", "1097152", "1048576", "tmpfs", "160", "159"}, row)
	assert.Empty(t, a.All("overlay"))

	f.stub("df", `shift 2
echo header
for f; do echo "/dev/sdb 0 0 48576 1048576 / $f"; done`)
	f.stub("unshare", `echo "mount: wrong fs type" >&2; exit 32`)
	a = f.probe(s, s.Nodes[1])
	row, _ = a.Row("fs", "/var/lib/containerd")
	assert.Equal(t, "0", row[4], "btrfs makes inodes as they are needed")
	row, _ = a.Row("overlay", "/")
	require.Len(t, row, 2)
	assert.Equal(t, "mount: wrong fs type", row[1])
	left, err := filepath.Glob(f.root + "/.paictl*")
	require.NoError(t, err)
	assert.Empty(t, left)
}

// When a file system is mounted, the kernel loads the module of the file system.
func TestTheProbeUnloadsWhatItsOverlayHasLoaded(t *testing.T) {
	f := newFakeRoot(t)
	s := preflightSpec(t, 1)
	module := f.root + "/sys/module/overlay"
	f.stub("unshare", "mkdir -p "+module)
	f.stub("modprobe", `[ "$*" = "-r overlay" ] && rmdir `+module)
	f.probe(s, s.Nodes[1])
	assert.NoDirExists(t, module)
	require.NoError(t, os.MkdirAll(module, 0o755))
	f.probe(s, s.Nodes[1])
	assert.DirExists(t, module, "it was loaded before")
}

func TestTheProbeKnowsModulesLoadedBuiltInOrOnDisk(t *testing.T) {
	f := newFakeRoot(t)
	s := preflightSpec(t, 1)
	lib := "/lib/modules/6.1.0-13-amd64"
	f.file(lib+"/modules.builtin", "kernel/net/bridge/br_netfilter.ko\n")
	f.file(lib+"/modules.dep", "kernel/net/netfilter/nf_tables.ko.xz: kernel/lib/libcrc32c.ko.xz\n")
	a := f.probe(s, s.Nodes[1])
	assert.Equal(t, [][]string{
		{"overlay", "present"}, {"br_netfilter", "present"}, {"nf_tables", "present"}, {"vxlan", "absent"},
	}, a.All("module"))
}

func TestTheProbeReadsTheKernelsConfigurationWhereThereAreNoModules(t *testing.T) {
	f := newFakeRoot(t)
	s := preflightSpec(t, 1)
	f.file("/boot/config-6.1.0-13-amd64", "CONFIG_OVERLAY_FS=y\nCONFIG_BRIDGE_NETFILTER=m\nCONFIG_NF_TABLES=y\n# CONFIG_VXLAN is not set\n")
	a := f.probe(s, s.Nodes[1])
	assert.Equal(t, [][]string{
		{"overlay", "present"}, {"br_netfilter", "present"}, {"nf_tables", "present"}, {"vxlan", "absent"},
	}, a.All("module"))
}

func TestTheProbeFindsAnotherKubernetesAndItsUnits(t *testing.T) {
	f := newFakeRoot(t)
	s := preflightSpec(t, 1)
	f.stub("systemctl", `shift; for u; do case $u in kubelet.service|containerd.service|firewalld.service) echo active ;; *) echo inactive ;; esac; done; exit 3`)
	f.file("/etc/kubernetes/kubelet.conf", "clusters:\n- cluster:\n    server: https://10.9.9.9:6443\n  name: x\n")
	f.file("/etc/kubernetes/pki/ca.crt", "certificate")
	f.file("/etc/kubernetes/manifests/etcd.yaml", "x")
	f.file("/etc/cni/net.d/10-calico.conflist", "x")
	f.file("/etc/ufw/ufw.conf", "# comment\nENABLED=yes\n")
	f.file("/sys/fs/selinux/enforce", "1")
	a := f.probe(s, s.Nodes[1])
	assert.Equal(t, [][]string{{"kubelet"}, {"containerd"}, {"firewalld"}, {"ufw"}}, a.All("active"))
	assert.Equal(t, [][]string{
		{"/etc/kubernetes/kubelet.conf"}, {"/etc/kubernetes/pki/ca.crt"},
		{"/etc/kubernetes/manifests/etcd.yaml"}, {"/etc/cni/net.d/10-calico.conflist"},
	}, a.All("exists"))
	assert.Equal(t, "https://10.9.9.9:6443", a.Value("server"))
	assert.Equal(t, engine.Hash([]byte("certificate")), a.Value("ca"))
	assert.Equal(t, "1", a.Value("selinux"))
	assert.Empty(t, a.All("reach"), "a member does not knock at the API's door")
}

func TestTheProbeListsRoutesWithoutTheDefault(t *testing.T) {
	f := newFakeRoot(t)
	s := preflightSpec(t, 1)
	f.stub("ip", `[ "$1" = -4 ] || { echo "fe80::/64 dev eth0 proto kernel metric 256 pref medium"; exit 0; }
echo "default via 10.0.0.254 dev eth0"
echo "10.0.0.0/16 dev eth0 proto kernel scope link src 10.0.0.11"
echo "blackhole 10.1.0.0/16"
echo "10.144.5.0/24 via 10.0.0.9 dev tun0"
echo "10.7.7.7 dev eth0 scope link"`)
	assert.Equal(t, [][]string{
		{"10.0.0.0/16", "eth0"}, {"10.144.5.0/24", "tun0"}, {"10.7.7.7", "eth0"}, {"fe80::/64", "eth0"},
	}, f.probe(s, s.Nodes[1]).All("route"))
}

func TestTheProbeTellsARefusalFromSilence(t *testing.T) {
	f := newFakeRoot(t)
	s := preflightSpec(t, 1)
	f.stub("timeout", `shift; exec "$@"`)
	f.stub("bash", `case $4 in
10.0.0.1) echo "bash: connect: Connection refused" >&2; exit 1 ;;
10.0.0.2) exit 124 ;;
10.0.0.3) echo "bash: connect: No route to host" >&2; exit 1 ;;
esac`)
	body := strings.Replace(preflight.Probe(phases.CheckedCluster(s.Fresh(), nil), phases.CheckedNode(s.Nodes[1])), "reach_targets='10.0.0.1:6443'",
		"reach_targets='10.0.0.1:6443 10.0.0.2:6443 10.0.0.3:6443 10.0.0.4:6443'", 1)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-s")
	cmd.Env = []string{"PATH=" + f.bin + ":/usr/sbin:/usr/bin:/sbin:/bin", "PAICTL_ROOT=" + f.root}
	cmd.Stdin = strings.NewReader(engine.DetectProgram([]engine.Section{{Name: phasePreflight, Body: body}}))
	out, err := cmd.Output()
	require.NoError(t, err)
	a := sectionsOf(out)[phasePreflight]
	for target, state := range map[string]string{
		"10.0.0.1:6443": "refused", "10.0.0.2:6443": "timeout", "10.0.0.3:6443": "no route", "10.0.0.4:6443": "open",
	} {
		assert.Equal(t, state, a.Value("reach", target), target)
	}
}

func TestRepairsFetchTheListsOfPackagesOnlyWhenTheyMust(t *testing.T) {
	f := newFakeRoot(t)
	calls := filepath.Join(f.bin, "calls")
	// The first install fails, as it does before any lists of packages have been fetched.
	f.stub("apt-get", `echo "$*" >>`+calls+`
case "$*" in *update*) touch `+calls+`.updated ;; *) [ -e `+calls+`.updated ] ;; esac`)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-s")
	cmd.Env = []string{"PATH=" + f.bin + ":/usr/sbin:/usr/bin:/sbin:/bin", "PAICTL_ROOT=" + f.root}
	cmd.Stdin = strings.NewReader(engine.ApplyProgram("run1", phasePreflight, engine.RepairScript+"p_packages iproute2 mount\n"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	got, err := os.ReadFile(calls)
	require.NoError(t, err)
	install := "-o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 -y --no-install-recommends install iproute2 mount\n"
	assert.Equal(t, install+"-o DPkg::Lock::Timeout=120 update\n"+install, string(got))
}

func TestTheProbeNamesTheServicesOfTheClock(t *testing.T) {
	f := newFakeRoot(t)
	s := preflightSpec(t, 1)
	f.file("/usr/lib/systemd/system/systemd-timesyncd.service", "")
	f.file("/lib/systemd/system/chrony.service", "")
	f.stub("systemctl", `shift; for u; do case $u in chrony.service) echo active ;; *) echo inactive ;; esac; done; exit 3`)
	a := f.probe(s, s.Nodes[1])
	assert.Equal(t, [][]string{{"systemd-timesyncd"}, {"chrony"}}, a.All("timesync"))
	assert.Equal(t, [][]string{{"chrony"}}, a.All("active"))
}
