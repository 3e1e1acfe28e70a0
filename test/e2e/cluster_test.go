package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestClusterComesUpAndWorks follows the main use of paictl: with a quick-start file and one command, a cluster is created whose pods can connect to
// each other. Another run of the command changes nothing. Then nodes join and leave, and finally the hosts are restored.
func TestClusterComesUpAndWorks(t *testing.T) {
	l := newLab(t, "e2ea", 3)
	l.generate()
	before := l.snapshots()

	s := l.up(0)
	assert.Equal(t, 3, s.Changed)
	l.isReady(3)
	l.podsReachEachOther()

	t.Run("a second up changes nothing within three round trips", func(t *testing.T) {
		s := l.up(0)
		assert.Zero(t, s.Changes)
		assert.LessOrEqual(t, s.RoundTrips, 3) // lock, detect, the pushed copy
	})
	t.Run("secrets are encrypted at rest and requests are audited", func(t *testing.T) {
		l.kubectl("create secret generic e2e --from-literal=word=plainly-visible")
		n := l.on(l.names[0], "grep -rac plainly-visible /var/lib/etcd/member | awk -F: '{ n += $NF } END { print n }'")
		assert.Equal(t, "0", n, "the secret stands in etcd in clear")
		log := l.on(l.names[0], `grep -c '"resource":"secrets"' /var/log/kubernetes/audit.log`)
		assert.NotEqual(t, "0", log)
	})
	t.Run("requests with a body of YAML are audited", l.auditsYAML)
	t.Run("a changed kubelet setting reaches all nodes", func(t *testing.T) {
		edit(t, filepath.Join(l.cluster, "kubernetes-configuration.yaml"), "cgroupDriver: cgroupfs", "cgroupDriver: cgroupfs\n      maxPods: 77")
		s := l.up(0)
		assert.Equal(t, 3, s.Changed)
		eventually(t, time.Minute, "all nodes allow 77 pods", func() bool {
			return strings.Count(l.kubectl("get nodes -o jsonpath='{.items[*].status.capacity.pods}'"), "77") == 3
		})
		assert.Zero(t, l.up(0).Changes)
	})
	t.Run("machines keep something for their own programs", func(t *testing.T) {
		memory := l.kubectl("get node " + l.names[1] + " -o jsonpath='{.status.capacity.memory} {.status.allocatable.memory}'")
		var capacity, allocatable int
		_, err := fmt.Sscanf(memory, "%dKi %dKi", &capacity, &allocatable)
		require.NoError(t, err, memory)
		assert.GreaterOrEqual(t, capacity-allocatable, 768<<10, "KiB for the system and Kubernetes, and what the kubelet evicts at")
	})
	t.Run("a worker that lost its subnet or its kubelet is repaired", l.lostNode)
	t.Run("a fourth host is added and removed", func(t *testing.T) {
		l.hosts("e2ea", 4)
		fourth := l.snapshot(l.names[3])
		ok(t, "node", "add", l.address(3), "-p", l.cluster)
		l.isReady(4)
		ok(t, "node", "remove", l.names[3], "-p", l.cluster, "--yes")
		assert.NotContains(t, l.kubectl("get nodes -o name"), l.names[3])
		assert.NotContains(t, read(t, filepath.Join(l.cluster, "layout.yaml")), l.names[3])
		same(t, l.names[3], fourth, l.snapshot(l.names[3]))
		assert.Zero(t, l.up(0).Changes)
	})
	t.Run("down leaves the hosts as they were", func(t *testing.T) {
		ok(t, "cluster", "down", "-p", l.cluster, "--yes")
		after := l.snapshots()
		for _, n := range l.names[:3] {
			same(t, n, before[n], after[n])
			assert.NotContains(t, l.on(n, "ip rule"), "prohibit")
		}
		ok(t, "cluster", "down", "-p", l.cluster, "--yes")
	})
}

// auditsYAML sends server-side applies with bodies of YAML, and checks that the audit log has them. kubectl would convert the bodies to JSON. The
// API server can't write an event that contains YAML, so the policy must leave out the bodies of patches.
func (l *lab) auditsYAML(t *testing.T) {
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(l.on(l.names[0], "cat /etc/kubernetes/admin.conf")))
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	for resource, kind := range map[string]string{"configmaps": "ConfigMap", "serviceaccounts": "ServiceAccount"} {
		manifest := "apiVersion: v1\nkind: " + kind + "\nmetadata:\n  name: e2e-audit\n"
		require.NoError(t, client.CoreV1().RESTClient().Patch(types.ApplyYAMLPatchType).Namespace("default").Resource(resource).Name("e2e-audit").
			Param("fieldManager", "e2e").Body([]byte(manifest)).Do(t.Context()).Error())
		eventually(t, 10*time.Second, "the audit log has the patch of "+resource, func() bool {
			_, err := l.try(l.names[0], `grep -q '"verb":"patch".*"resource":"`+resource+`".*"name":"e2e-audit"' /var/log/kubernetes/audit.log`)
			return err == nil
		})
	}
	for line := range strings.Lines(l.kubectl("get --raw /metrics | grep '^apiserver_audit_error_total' || true")) {
		assert.True(t, strings.HasSuffix(strings.TrimSpace(line), " 0"), line)
	}
}

// isReady waits until exactly the given number of nodes is Ready, and all system pods run.
func (l *lab) isReady(nodes int) {
	l.t.Helper()
	eventually(l.t, 2*time.Minute, "all nodes are Ready", func() bool {
		out := l.kubectl("get nodes --no-headers")
		return strings.Count(out, " Ready ") == nodes
	})
	eventually(l.t, 2*time.Minute, "all system pods run", func() bool {
		out := l.kubectl("get pods -A --no-headers --field-selector status.phase!=Succeeded,metadata.namespace!=pai-jobs")
		return !strings.Contains(out, "ContainerCreating") && !strings.Contains(out, "Pending") && !strings.Contains(out, "0/1")
	})
}

// podsReachEachOther runs one of the demo's pods on each worker. Each pod sends requests to all other pods by address, and to the service by name.
func (l *lab) podsReachEachOther() {
	l.t.Helper()
	l.on(l.names[0], "cat >/root/netcheck.yaml <<'EOF'\n"+read(l.t, "../../examples/demo/netcheck.yaml")+"\nEOF")
	l.kubectl("apply -f /root/netcheck.yaml")
	l.on(l.names[0], "rm /root/netcheck.yaml")
	l.kubectl("-n paictl-demo rollout status daemonset/netcheck --timeout 120s")
	pods := strings.Fields(l.kubectl("-n paictl-demo get pods -o jsonpath='{range .items[*]}{.metadata.name}={.status.podIP} {end}'"))
	require.Len(l.t, pods, len(l.names)-1, "one pod on each worker")
	for _, from := range pods {
		name, _, _ := strings.Cut(from, "=")
		for _, to := range pods {
			_, ip, _ := strings.Cut(to, "=")
			l.kubectl(fmt.Sprintf("-n paictl-demo exec %s -- /netcheck get http://%s:8080/", name, ip))
		}
		eventually(l.t, 30*time.Second, "the service's name resolves", func() bool {
			_, err := l.try(l.names[0], fmt.Sprintf("KUBECONFIG=/etc/kubernetes/admin.conf kubectl -n paictl-demo exec %s -- /netcheck get http://netcheck.paictl-demo.svc.cluster.local/", name))
			return err == nil
		})
	}
	l.kubectl("delete namespace paictl-demo --wait")
}

// snapshot lists everything on a host that a cluster could leave behind.
func (l *lab) snapshot(host string) string {
	l.t.Helper()
	return l.on(host, `
timeout 60 systemctl is-system-running --wait >/dev/null 2>&1 || true # what only runs at the boot is over
echo "# packages"; dpkg-query -W -f '${Package} ${Version} ${Status}\n'
echo "# units"; systemctl list-unit-files --no-legend --no-pager | awk '{ print $1, $2 }' | sort
echo "# running"; systemctl list-units --type=service,timer,path --state=active --no-legend --plain --no-pager | awk '{ print $1 }' | grep -v -e ssh -e user@ -e session -e user-runtime -e apt -e dpkg -e e2scrub -e fstrim -e systemd-tmpfiles-clean -e systemd-timedated -e systemd-hostnamed | sort
echo "# mounts"; awk '{ print $2, $3 }' /proc/mounts | grep -v /run/user | sort
echo "# nft"; nft list ruleset
echo "# processes"; ps -eo comm= | grep -v -e ssh -e '^sh$' -e '^ps$' -e sort -e grep -e '^(sd-pam)$' -e kworker -e '^systemd$' -e awk -e '^sed$' -e sleep -e systemd-timedat -e systemd-hostnam -e systemd-update- | sed 's/^(\(.*\))$/\1/' | sort -u
echo "# links"; ip -o link | awk -F': ' '{ print $2 }' | sort
echo "# routes"; ip route
echo "# files"; find /etc /opt /usr/local /var/lib /run -xdev \( -path /var/lib/apt -o -path /var/lib/systemd -o -path /run/systemd -o -path /run/user -o -path /run/log -o -path /run/sudo -o -path /run/dbus -o -path /run/udev -o -path /run/agetty.reload \) -prune -o -type f -print | sort
echo "# directories"; find /etc /opt /usr/local /var/lib -xdev \( -path /var/lib/apt -o -path /var/lib/systemd \) -prune -o -type d -print | sort
echo "# sums"; sha256sum /etc/hosts /etc/fstab /etc/passwd 2>/dev/null
echo "# sysctl"; cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/bridge/bridge-nf-call-iptables 2>/dev/null
`)
}

func (l *lab) snapshots() map[string]string {
	l.t.Helper()
	out := map[string]string{}
	for _, n := range l.names {
		out[n] = l.snapshot(n)
	}
	return out
}

// same compares two snapshots of a host, and shows only the differences.
func same(t testing.TB, host, before, after string) {
	t.Helper()
	d, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(before), B: difflib.SplitLines(after), FromFile: "before", ToFile: "after",
	})
	require.NoError(t, err)
	if lines := strings.SplitAfter(d, "\n"); len(lines) > 60 {
		d = strings.Join(lines[:60], "") // enough to see the cause
	}
	assert.Empty(t, d, "%s is not as it was", host)
}

// address returns the address of the i-th host.
func (l *lab) address(i int) string {
	l.t.Helper()
	return l.machines.address(l.t, l.names[i])
}

// gateway returns the address of this machine in the network of the hosts. Pods use it to connect to servers of the test.
func (l *lab) gateway() string {
	l.t.Helper()
	master, err := netip.ParseAddr(l.address(0))
	require.NoError(l.t, err)
	gateway := master.As4()
	gateway[3] = 1
	return netip.AddrFrom4(gateway).String()
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// edit replaces a text in a file, which must contain the text.
func edit(t testing.TB, path, have, want string) {
	t.Helper()
	body := read(t, path)
	require.Contains(t, body, have, path)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(body, have, want, 1)), 0o600))
}
