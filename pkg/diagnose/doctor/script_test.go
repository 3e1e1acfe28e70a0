package doctor

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/test/runnable"
	"github.com/openpai/paictl/test/tier"
)

// host is a folder that simulates a machine. It contains stubs of the programs that would change or query the real machine.
type host struct {
	t    *testing.T
	root string
	path string
}

func newHost(t *testing.T) *host {
	h := &host{t: t, root: t.TempDir(), path: t.TempDir()}
	h.stub("systemctl", `
case $1 in
is-enabled) case $2 in kubelet.service) echo enabled ;; containerd.service) echo disabled; exit 1 ;; *) echo not-found; exit 4 ;; esac ;;
is-active) case $2 in kubelet.service) echo failed; exit 3 ;; *) echo active ;; esac ;;
list-units) echo "paictl-cni.service loaded failed failed The pods' network" ;;
esac`)
	h.stub("ip", `printf '1: lo    inet 127.0.0.1/8 scope host lo\n2: eth0@if7    inet 10.0.0.5/24 brd 10.0.0.255 scope global eth0\n3: eth1    inet6 fd00::5/64 scope global\n'`)
	h.stub("stat", `
for last; do :; done
case "$*" in *%T*) case $last in */mnt/nfs*) echo nfs ;; *) echo ext2/ext3 ;; esac ;; *%Y*) echo 1700000000 ;; *) case $last in */mnt/hangs) sleep 60 ;; esac ;; esac`)
	h.stub("df", `
shift 2
for f; do
	case $f in */var/log*) d=/dev/sdb m=/var/log ;; *) d=/dev/sda m=/ ;; esac
	echo "$d 6000 1000 960000 40000 $m $f"
done`)
	return h
}

func (h *host) stub(name, body string) {
	runnable.Write(h.t, filepath.Join(h.path, name), "#!/bin/sh\n"+body+"\n")
}

func (h *host) write(path, text string) {
	path = filepath.Join(h.root, path)
	require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(h.t, os.WriteFile(path, []byte(text), 0o644))
}

func (h *host) look(paths, volumes string) *machine {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), "/bin/sh", "-s")
	cmd.Stdin = strings.NewReader("R=" + shell.Quote(h.root) + "\nset -u\n" + checks.FilesystemsScript + machineScript + "\nPATHS=" + shell.Quote(paths) + " VOLUMES=" + shell.Quote(volumes) + " ADDRESS=10.0.0.5\nm_look\n")
	cmd.Env = []string{"PATH=" + h.path + ":" + os.Getenv("PATH"), "LC_ALL=C"}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	require.NoError(h.t, cmd.Run(), "%s", &errOut)
	m := &machine{}
	for line := range strings.Lines(out.String()) {
		m.rows = append(m.rows, strings.Split(strings.TrimRight(line, "\n"), "\t"))
	}
	return m
}

func TestAMachineAnswersInOneScript(t *testing.T) {
	h := newHost(t)
	h.write("etc/fstab", `# a comment
UUID=1 / ext4 defaults 0 1
/dev/sdb1 /data/ xfs defaults,nofail 0 2
/dev/sdc1 /gone ext4 defaults 0 2
/dev/sdd1 /by-hand ext4 noauto 0 2
server:/x /on-demand nfs x-systemd.automount 0 0
/swap none swap sw 0 0
`)
	h.write("proc/self/mounts", "/dev/sda1 / ext4 rw 0 0\n/dev/sdb1 /data xfs rw 0 0\nserver:/x /mnt/nfs nfs4 rw 0 0\n")
	h.write("sys/class/net/eth0/mtu", "1500\n")
	h.write("sys/class/net/cni0/mtu", "1450\n")
	h.write("volumes/a/file", "")
	h.write("var/backups/etcd/snap.db", "")
	h.write("var/log/x", "")
	m := h.look("/ /var/lib/kubelet /var/log /mnt/nfs/data", "/volumes/a /volumes/b")

	assert.Equal(t, "ok", m.value("end"))
	assert.Equal(t, [][]string{{"/", "ext4", "defaults", "yes"}, {"/data", "xfs", "defaults,nofail", "yes"}, {"/gone", "ext4", "defaults", "no"}}, m.all("fstab", 4))
	assert.Equal(t, [][]string{{"/volumes/a", "there"}, {"/volumes/b", "absent"}}, m.all("volume", 2))
	assert.Equal(t, [][]string{{"kubelet", "failed", "enabled"}, {"containerd", "active", "disabled"}}, m.all("unit", 3))
	assert.Equal(t, [][]string{{"paictl-cni.service"}}, m.all("failed", 1))
	assert.Equal(t, "eth0", m.value("own"))
	assert.Equal(t, [][]string{{"eth0", "1500"}, {"cni0", "1450"}}, m.all("link", 2))
	assert.Equal(t, [][]string{{"/var/backups/etcd/snap.db", "1700000000"}}, m.all("snapshot", 2))
	fs := checks.Filesystems(m.all("fs", 7))
	require.Len(t, fs, 2, "two folders are on one file system, and a server's isn't asked")
	assert.Equal(t, &checks.Filesystem{Point: "/", Size: 1000000, Free: 40000, Inodes: 6000, FreeInodes: 1000, Paths: []string{"/", "/var/lib/kubelet"}}, fs[0])
	assert.Equal(t, "/var/log", fs[1].Point)
}

func TestAServerThatIsAwayDoesNotHoldTheMachinesAnswer(t *testing.T) {
	tier.More(t, "it waits five seconds")
	h := newHost(t)
	h.write("proc/self/mounts", "server:/a /mnt/hangs nfs4 rw 0 0\nserver:/a /mnt/again nfs4 rw 0 0\nserver:/b /mnt/with\\040blank nfs rw 0 0\n")
	m := h.look("/", "")
	assert.Equal(t, [][]string{{"/mnt/hangs", "nfs4", "hangs"}, {"/mnt/with blank", "nfs", "ok"}}, m.all("netmount", 3))
	assert.Equal(t, "ok", m.value("end"))
}

func TestPathsThatAShellWouldReadOtherwiseAreLeftOut(t *testing.T) {
	assert.Equal(t, "'/a /b-c.d'", words([]string{"/a", "/b c", "relative", "/*", "/b-c.d", "/$(reboot)", "/'x", "/`x`"}))
}

func TestDisksAreThoseOfTheConfiguredFolders(t *testing.T) {
	c := patient(t, 1, 0)
	k := &c.Config.Kubernetes.Kubernetes
	k.EtcdDataPath, k.Extra.Containerd = "/data/etcd/", map[string]any{"root": "/data/containerd"}
	assert.Contains(t, c.machineProgram(c.Spec.Nodes[0], []string{"/volumes/a"}), "\nPATHS='/ /var/lib/kubelet /data/containerd /var/log /data/etcd /volumes/a' ")
}
