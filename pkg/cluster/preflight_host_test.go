package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/layout"
)

var preflightNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// preflightBundle returns a bundle for amd64 with programs of 100 MiB, plugins of 10 MiB and images of 300 MiB.
func preflightBundle(t testing.TB) *bundle.Bundle {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s\nkind: Bundle\nkubernetes: v1.36.3\narch: amd64\norigin: build\nartifacts:\n", bundle.APIVersion)
	n := 0
	add := func(kind, name string, mib int, more string) {
		n++
		fmt.Fprintf(&b, "- {name: %s, version: v1, kind: %s, path: %s/%s, source: s, sha256: '%064x', size: %d%s}\n", name, kind, kind, name, n, mib<<20, more)
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "kubelet", "kubeadm", "kubectl", "pai-api-proxy"} {
		add("binary", name, 100, "")
	}
	add("cni-plugin", "bridge", 10, "")
	for _, name := range []string{"pause", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd", "coredns", "flannel"} {
		add("image", name, 300, fmt.Sprintf(", image: registry.k8s.io/%s:v1, digest: 'sha256:%064x'", name, n+100))
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, bundle.ManifestFile), []byte(b.String()), 0o600))
	opened, err := bundle.Open(dir)
	require.NoError(t, err)
	return opened
}

// preflightSpec returns a cluster with the master m1 (10.0.0.1) and the workers w1 (10.0.0.11), w2 ….
func preflightSpec(t testing.TB, workers int) *engine.Spec {
	t.Helper()
	c := &config.Cluster{}
	c.Kubernetes.Kubernetes = config.KubernetesSpec{
		Version: "v1.36.3", ClusterName: "test", PodCIDR: "10.144.0.0/16", ServiceClusterIPRange: "10.96.0.0/16",
		DNSDomain: "cluster.local", APIServerPort: 6443, EtcdDataPath: "/var/lib/etcd", NetworkPlugin: "flannel",
		Extra: config.Extra{Kubelet: map[string]any{}, KubeProxy: map[string]any{}},
	}
	c.Roles.Roles = map[string]config.Role{
		"master": {Components: []string{"etcd", "apiserver", "controller-manager", "scheduler"}},
		"worker": {Workloads: true},
	}
	c.Layout.MachineSKU = map[string]layout.SKU{"cpu": {}}
	c.Layout.MachineList = []layout.Machine{{Hostname: "m1", HostIP: "10.0.0.1", SKU: "cpu", Roles: []string{"master"}}}
	for i := 1; i <= workers; i++ {
		c.Layout.MachineList = append(c.Layout.MachineList, layout.Machine{
			Hostname: fmt.Sprintf("w%d", i), HostIP: fmt.Sprintf("10.0.%d.%d", (i+10)/250, (i+10)%250), SKU: "cpu", Roles: []string{"worker"},
		})
	}
	s, err := engine.NewSpec(c, preflightBundle(t))
	require.NoError(t, err)
	return s
}

// machine holds the output of the detect script on an imaginary host.
type machine struct {
	facts, probe, journal, images []string
	asked, answered               time.Time
	member, driver                []string
}

func fitMachine(n *engine.Node) *machine {
	m := &machine{
		asked: preflightNow, answered: preflightNow.Add(200 * time.Millisecond),
		facts: []string{
			"paictl-facts\t1", fmt.Sprintf("time\t%d", preflightNow.Add(100*time.Millisecond).UnixMilli()),
			"time-source\tsystemd-timesyncd", "time-synced\tyes",
			"hostname\t" + n.Hostname, "kernel\t6.1.0-13-amd64", "arch\tx86_64",
			"os-release\tID=debian", "os-release\tVERSION_ID=\"12\"", "os-release\tPRETTY_NAME=\"Debian GNU/Linux 12\"",
			"machine-id\tid-of-" + n.Hostname, "cpus\t0-7", "memory-kib\t16777216", "swap-kib\t0",
			"address\teth0 " + n.HostIP + "/16", "cgroup\tv2", "uid\t0", "sudo\troot", "end\tok",
		},
		probe: []string{
			"init\tsystemd", "boot\tboot-of-" + n.Hostname, "packages\tapt-get", "timesync\tsystemd-timesyncd", "selinux\t",
			"controllers\tcpuset cpu io memory pids", "route\t10.0.0.0/16\teth0", "end\tok",
		},
	}
	for _, p := range preflight.Folders(&preflight.Cluster{Kubernetes: &config.KubernetesSpec{}}, phases.CheckedNode(n)) {
		m.say("fs", p, "/", "209715200", "104857600", "/dev/sda1", "0", "0") // 100 GiB free
	}
	for _, name := range []string{"overlay", "br_netfilter", "nf_tables", "vxlan"} {
		m.say("module", name, "present")
	}
	return m
}

// memberMachine returns a machine on which "cluster up" has run completely.
func memberMachine(s *engine.Spec, n *engine.Node) *machine {
	m := fitMachine(n)
	for _, phase := range []string{"base", "containerd", "kubelet", "images", "join"} {
		m.journal = append(m.journal, "journal\t"+phase+"\tdone")
	}
	for _, f := range []string{"/etc/kubernetes/kubelet.conf", "/etc/kubernetes/pki/ca.crt", "/var/lib/kubelet/config.yaml", paths.Member, "/etc/cni/net.d/10-paictl-flannel.conflist"} {
		m.say("exists", f)
	}
	for i, l := range preflight.Ports(phases.CheckedCluster(s.Fresh(), nil), phases.CheckedNode(n)) {
		m.say("port", fmt.Sprint(l.Number), fmt.Sprint(100+i), l.Program)
	}
	m.say("active", "kubelet")
	m.say("active", "containerd")
	m.say("server", "https://10.0.0.1:6443")
	m.say("ca", "aaaa")
	m.say("route", "10.144.7.0/24", "eth0")
	m.fact("address", "flannel.1 10.144.1.0/32", true)
	m.member = []string{"member\tyes", "ca\taaaa", "server\thttps://10.0.0.1:6443"}
	for _, a := range s.Artifacts(n, bundle.KindImage) {
		m.images = append(m.images, "imported\t"+a.Image+"\t"+a.SHA256+"\tsha256:1", "image\t"+a.Image+"\tsha256:1")
	}
	for _, kind := range []string{bundle.KindBinary, bundle.KindCNIPlugin} {
		for _, a := range s.Artifacts(n, kind) {
			m.images = append(m.images, "art\t/x/"+a.Name+"\t755\t"+a.SHA256)
		}
	}
	return m
}

func (m *machine) say(fields ...string) {
	last := len(m.probe) - 1
	m.probe = append(m.probe[:last:last], strings.Join(fields, "\t"), m.probe[last])
}

// unsay removes the lines of the probe's output that begin with the given fields.
func (m *machine) unsay(fields ...string) { m.probe = dropLines(m.probe, strings.Join(fields, "\t")) }

// fact replaces a fact, or adds another fact with the same key.
func (m *machine) fact(key, value string, another ...bool) {
	if len(another) == 0 {
		m.facts = dropLines(m.facts, key)
	}
	last := len(m.facts) - 1
	m.facts = append(m.facts[:last:last], key+"\t"+value, m.facts[last])
}

// disk sets the free space on the file system of a folder, in MiB.
func (m *machine) disk(path, point, device string, mib int) {
	m.unsay("fs", path)
	m.say("fs", path, point, "209715200", fmt.Sprint(mib<<10), device, "0", "0")
}

func dropLines(lines []string, begin string) []string {
	var out []string
	for _, l := range lines {
		if l != begin && !strings.HasPrefix(l, begin+"\t") {
			out = append(out, l)
		}
	}
	return out
}

func (m *machine) answer() string {
	var b strings.Builder
	for _, s := range []struct {
		name  string
		lines []string
	}{{"facts", m.facts}, {phasePreflight, m.probe}, {"journal", m.journal}, {phases.PhaseImages, m.images}, {engine.PhaseJoin, m.member}, {phases.PhaseDriver, m.driver}} {
		b.WriteString("@@ " + s.name + "\n")
		for _, l := range s.lines {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

func (m *machine) seen() *engine.Facts {
	return &engine.Facts{Sections: sectionsOf([]byte(m.answer())), QueriedAt: m.asked, AnsweredAt: m.answered}
}

type storySink struct{ events []engine.Event }

// Emit implements engine.Sink.
func (s *storySink) Emit(e engine.Event) { s.events = append(s.events, e) }

func (s *storySink) of(kind string) []engine.Event {
	var out []engine.Event
	for _, e := range s.events {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}
