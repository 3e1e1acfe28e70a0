package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/layout"
)

// examine checks a cluster of m1, w1 and w2 after edit has changed the machines.
func examine(t *testing.T, s *engine.Spec, limit []string, edit func(map[string]*machine)) []preflight.Finding {
	t.Helper()
	ms := map[string]*machine{}
	for _, n := range s.Nodes {
		ms[n.Hostname] = fitMachine(n)
	}
	if edit != nil {
		edit(ms)
	}
	w := &engine.World{Want: s.Fresh(), Facts: map[string]*engine.Facts{}}
	for name, m := range ms {
		if m != nil {
			w.Facts[name] = m.seen()
		}
	}
	w.Elect()
	r := engine.NewRun(s, engine.Options{Sink: &storySink{}, Clock: func() time.Time { return preflightNow }, Limit: limit})
	nodes, err := r.Selected()
	require.NoError(t, err)
	return phases.Check(r, w, nodes)
}

func TestFitMachinesYieldNoFindings(t *testing.T) {
	assert.Empty(t, examine(t, preflightSpec(t, 2), nil, nil))
}

func TestMembersOfARunningClusterYieldNoFindings(t *testing.T) {
	s := preflightSpec(t, 2)
	assert.Empty(t, examine(t, s, nil, func(ms map[string]*machine) {
		for _, n := range s.Nodes {
			m := memberMachine(s, n)
			// These facts would lead to the rejection of a new machine, but must not cause findings about a member.
			m.fact("memory-kib", "200000")
			m.fact("cpus", "0")
			m.fact("os-release", "ID=almalinux", true)
			m.say("active", "ufw")
			m.say("selinux", "1")
			ms[n.Hostname] = m
		}
	}))
}

// checkCase is one machine with a fault and the only expected finding.
type checkCase struct {
	name     string
	host     string // w1 unless set
	spec     func(*engine.Spec)
	edit     func(*machine)
	severity string // error unless set
	check    string
	message  string // part of it
	remedy   string // part of it
	fix      string // "" if a person must decide
}

func (c checkCase) run(t *testing.T) {
	s := preflightSpec(t, 2)
	if c.spec != nil {
		c.spec(s)
	}
	host := c.host
	if host == "" {
		host = "w1"
	}
	got := examine(t, s, nil, func(ms map[string]*machine) { c.edit(ms[host]) })
	if c.check == "" {
		assert.Empty(t, got)
		return
	}
	require.Len(t, got, 1, "%+v", got)
	severity := c.severity
	if severity == "" {
		severity = preflight.SeverityError
	}
	f := got[0]
	assert.Equal(t, host, f.Host)
	assert.Equal(t, c.check, f.Check)
	assert.Equal(t, severity, f.Severity)
	assert.Contains(t, f.Text(), c.message)
	assert.Contains(t, f.Remedy, c.remedy)
	assert.Equal(t, c.fix, f.Fix)
	assert.Equal(t, c.fix != "", f.Fixable)
}

func TestEachFaultOfAMachineIsOneFindingWithARemedy(t *testing.T) {
	cases := []checkCase{
		{name: "an old Ubuntu", edit: func(m *machine) {
			m.fact("os-release", "ID=ubuntu")
			m.fact("os-release", "VERSION_ID=\"18.04\"", true)
		}, check: "os", message: "ubuntu18.04 is too old, the oldest supported is ubuntu 20.04", remedy: "upgrade"},
		{name: "an old Debian", edit: func(m *machine) { m.fact("os-release", "VERSION_ID=\"10\"", true) }, check: "os", message: "too old", remedy: "upgrade"},
		{name: "a system that nobody tested", edit: func(m *machine) { m.fact("os-release", "ID=almalinux") },
			severity: preflight.SeverityWarning, check: "os", message: "not tested on", remedy: "continue if you know the system"},
		{name: "Debian testing has no version", edit: func(m *machine) { m.fact("os-release", "ID=debian") }},
		{name: "a kernel between the long-term ones", edit: func(m *machine) { m.fact("kernel", "5.19.0-40-generic") },
			severity: preflight.SeverityWarning, check: "kernel", message: "kernel 5.19.0-40-generic is not one of the long-term kernels", remedy: "5.15"},
		{name: "a kernel from before 5.4", edit: func(m *machine) { m.fact("kernel", "4.19.0") },
			check: "kernel", message: "kernel 4.19.0 is too old, the oldest supported is 5.4", remedy: "reboot"},
		{name: "kube-proxy's nftables on kernel 5.10", edit: func(m *machine) { m.fact("kernel", "5.10.0-26-amd64") },
			check: "kernel", message: "nftables mode needs kernel 5.13, the machine has 5.10.0-26-amd64", remedy: "extra.kube-proxy.mode: iptables"},
		{name: "kube-proxy's iptables on kernel 5.10",
			spec: func(s *engine.Spec) { s.Config.Kubernetes.Kubernetes.Extra.KubeProxy["mode"] = "iptables" },
			edit: func(m *machine) { m.fact("kernel", "5.10.0-26-amd64") }},
		{name: "a kernel that the operator takes on himself",
			spec: func(s *engine.Spec) {
				s.Config.Kubernetes.Kubernetes.Extra.KubeadmIgnorePreflight = []string{"systemverification"}
			},
			edit: func(m *machine) { m.fact("kernel", "5.19.0") }},
		{name: "another architecture than the bundle's", edit: func(m *machine) { m.fact("arch", "aarch64") },
			check: "arch", message: "is arm64, the bundle in", remedy: "built for arm64"},
		{name: "scripts that do not run as root", edit: func(m *machine) { m.fact("uid", "1000") }, check: "sudo", message: "user id 1000", remedy: "sudo"},
		{name: "no systemd", edit: func(m *machine) { m.unsay("init"); m.say("init", "sshd") }, check: "systemd", message: "process 1 is sshd", remedy: "systemd"},
		{name: "programs that are missing", edit: func(m *machine) { m.say("missing", "losetup"); m.say("missing", "ip"); m.say("missing", "mount") },
			check: "commands", message: "missing on the machine: ip, losetup, mount", remedy: "apt-get install -y iproute2 mount", fix: "p_packages iproute2 mount"},
		{name: "neither iptables nor nft", edit: func(m *machine) { m.say("missing", "iptables") },
			check: "commands", message: "neither iptables nor nft", remedy: "apt-get install -y iptables", fix: "p_packages iptables"},
		{name: "programs that are missing without apt", edit: func(m *machine) { m.unsay("packages"); m.say("packages", "dnf"); m.say("missing", "ip") },
			check: "commands", message: "ip", remedy: "dnf install ip"},
		{name: "little memory on a worker", edit: func(m *machine) { m.fact("memory-kib", "512000") }, check: "memory", message: "500 MiB of memory, a worker needs 700 MiB", remedy: "memory"},
		{name: "little memory on the control plane", host: "m1", edit: func(m *machine) { m.fact("memory-kib", "1048576") },
			check: "memory", message: "1024 MiB of memory, the control plane needs 1700 MiB", remedy: "another role"},
		{name: "little memory that is to be ignored", host: "m1",
			spec: func(s *engine.Spec) { s.Config.Kubernetes.Kubernetes.Extra.KubeadmIgnorePreflight = []string{"Mem"} },
			edit: func(m *machine) { m.fact("memory-kib", "1048576") }},
		{name: "one processor on the control plane", host: "m1", edit: func(m *machine) { m.fact("cpus", "0") }, check: "cpu", message: "one processor", remedy: "NumCPU"},
		{name: "one processor on a worker", edit: func(m *machine) { m.fact("cpus", "0") }},
		{name: "swap", edit: func(m *machine) { m.fact("swap-kib", "2097152") },
			severity: preflight.SeverityWarning, check: "swap", message: "2048 MiB of swap are in use; the phase base switches it off", remedy: "failSwapOn"},
		{name: "swap that the kubelet may keep", spec: func(s *engine.Spec) { s.Config.Kubernetes.Kubernetes.Extra.Kubelet["failSwapOn"] = false },
			edit: func(m *machine) { m.fact("swap-kib", "2097152") }},
		{name: "a kernel without a module", edit: func(m *machine) { m.unsay("module", "vxlan"); m.say("module", "vxlan", "absent") },
			check: "modules", message: "kernel 6.1.0-13-amd64 has no module vxlan", remedy: "linux-image-amd64"},
		{name: "a kernel that tells nothing", edit: func(m *machine) { m.unsay("module", "vxlan"); m.say("module", "vxlan", "unknown") }},
		{name: "cgroup v1", edit: func(m *machine) { m.fact("cgroup", "hybrid") }, check: "cgroup", message: "cgroup v1, which the kubelet of v1.36.3 refuses", remedy: "unified_cgroup_hierarchy=1"},
		{name: "cgroup v1 that the kubelet may use", spec: func(s *engine.Spec) { s.Config.Kubernetes.Kubernetes.Extra.Kubelet["failCgroupV1"] = false },
			edit: func(m *machine) { m.fact("cgroup", "hybrid") }},
		{name: "a cgroup controller that is off", edit: func(m *machine) { m.unsay("controllers"); m.say("controllers", "cpuset cpu io pids") },
			check: "cgroup", message: "disabled the cgroup controllers memory", remedy: "cgroup_disable"},
		{name: "no time source, and none installed", edit: func(m *machine) { m.fact("time-source", ""); m.fact("time-synced", "no"); m.unsay("timesync") },
			severity: preflight.SeverityWarning, check: "time-source", message: "no service synchronizes its clock", remedy: "systemd-timesyncd", fix: "p_packages systemd-timesyncd"},
		{name: "a time source that does not run", edit: func(m *machine) {
			m.fact("time-source", "")
			m.fact("time-synced", "no")
			m.unsay("timesync")
			m.say("timesync", "chrony")
		}, severity: preflight.SeverityWarning, check: "time-source", message: "chrony is installed, but doesn't run", remedy: "systemctl enable --now chrony.service", fix: "systemctl enable --now chrony.service"},
		{name: "a time source that the phase base will start", edit: func(m *machine) { m.fact("time-source", ""); m.fact("time-synced", "no") }},
		{name: "a container has its machine's clock", edit: func(m *machine) {
			m.fact("time-source", "")
			m.fact("time-synced", "no")
			m.unsay("timesync")
			m.fact("container", "systemd-nspawn")
		}},
		{name: "GPUs without a driver", edit: func(m *machine) {
			m.fact("pci-gpu", "0000:01:00.0 0x10de 0x20b2 0x030200", true)
			m.fact("pci-gpu", "0000:02:00.0 0x10de 0x20b2 0x030200", true)
		}, severity: preflight.SeverityWarning, check: "gpu-unlisted", message: "has 2 GPUs, but its SKU cpu lists none: no job gets them", remedy: "gpu-driver: {policy: none}"},
		{name: "a broken driver", spec: func(s *engine.Spec) {
			s.Config.Layout.MachineSKU["gpu"] = layout.SKU{GPU: &layout.GPU{Type: "NVIDIA-A100", Count: 1}}
			s.Nodes[1].SKU = "gpu"
		}, edit: func(m *machine) {
			m.driver = []string{"gpus\t1", "module\t535.104.05\tclosed", "userland\t535.104.05"}
			m.fact("pci-gpu", "0000:01:00.0 0x10de 0x20b2 0x030200", true)
			m.fact("nvidia-smi", "Failed to initialize NVML: Driver/library version mismatch", true)
		}, severity: preflight.SeverityWarning, check: "gpu-driver", message: "NVIDIA's driver doesn't answer: Failed to initialize NVML", remedy: "reboot"},
		{name: "a broken driver that a run replaces", spec: func(s *engine.Spec) {
			s.Config.Layout.MachineSKU["gpu"] = layout.SKU{GPU: &layout.GPU{Type: "NVIDIA-A100", Count: 1}}
			s.Nodes[1].SKU = "gpu"
			s.Config.Kubernetes.Kubernetes.GPUDriver = config.GPUDriver{Policy: config.GPUDriverInstall}
		}, edit: func(m *machine) {
			m.driver = []string{"gpus\t1", "module\t470.1\tclosed", "userland\t470.2", "apt\tyes"}
			for _, name := range []string{"nvidia-smi", "libnvidia-ml1", "libcuda1", "nvidia-kernel-dkms", "nvidia-persistenced", "nvidia-modprobe", "linux-headers-6.1.0-13-amd64"} {
				m.driver = append(m.driver, "candidate\t"+name+"\t535.261.03-1")
			}
			m.fact("pci-gpu", "0000:01:00.0 0x10de 0x20b2 0x030200", true)
			m.fact("nvidia-smi", "Failed to initialize NVML: Driver/library version mismatch", true)
		}},
		{name: "fewer GPUs than the layout says",
			spec: func(s *engine.Spec) {
				s.Config.Layout.MachineSKU["gpu"] = layout.SKU{GPU: &layout.GPU{Type: "NVIDIA-A100", Count: 2}}
				s.Nodes[1].SKU = "gpu"
			},
			edit:     func(m *machine) { m.fact("nvidia-smi", "0, NVIDIA A100, 81920, 535.104.05, GPU-1", true) },
			severity: preflight.SeverityWarning, check: "gpu-count", message: "has 1 of the 2 GPUs that layout.yaml says (gpu)", remedy: "gpu.count of gpu"},
		{name: "GPUs that are only simulated",
			spec: func(s *engine.Spec) {
				s.Config.Layout.MachineSKU["gpu"] = layout.SKU{GPU: &layout.GPU{Type: "NVIDIA-A100", Count: 2, Simulated: true}}
				s.Nodes[1].SKU = "gpu"
			},
			edit: func(*machine) {}},
		{name: "another host name than the layout's", edit: func(m *machine) { m.fact("hostname", "node7") },
			check: "hostname", message: "host name is node7, but layout.yaml says w1", remedy: "hostnamectl set-hostname w1; or in layout.yaml: hostname: node7"},
		{name: "a host name that is none", edit: func(m *machine) { m.fact("hostname", "My_Node") },
			check: "hostname", message: "host name is My_Node", remedy: "My_Node is not a valid name, see RFC 1123"},
		{name: "the installer's host name", edit: func(m *machine) { m.fact("hostname", "localhost") },
			check: "hostname", message: "the machine's host name is localhost", remedy: "hostnamectl set-hostname w1", fix: "p_hostname 'w1'"},
		{name: "a fully qualified host name", edit: func(m *machine) { m.fact("hostname", "w1.example.org") }},
		{name: "another machine's host name", edit: func(m *machine) { m.fact("hostname", "m1") },
			check: "unique-hostname", message: "host name is m1, as is that of m1 (10.0.0.1); layout.yaml says w1", remedy: "hostnamectl set-hostname w1"},
		{name: "no machine id", edit: func(m *machine) { m.fact("machine-id", "") },
			check: "machine-id", message: "no machine id", remedy: "systemd-machine-id-setup", fix: "systemd-machine-id-setup >/dev/null"},
		{name: "a copy of another machine", edit: func(m *machine) { m.fact("machine-id", "id-of-m1") },
			check: "unique-machine-id", message: "has the machine id of m1 (id-of-m1)", remedy: "rm -f /etc/machine-id"},
		{name: "the same machine under two addresses", edit: func(m *machine) {
			m.fact("machine-id", "id-of-m1")
			m.fact("hostname", "m1")
			m.unsay("boot")
			m.say("boot", "boot-of-m1")
			m.fact("address", "eth0 10.0.0.1/16", true)
		}, check: "unique-machine", message: "10.0.0.11 and 10.0.0.1 are the same machine, m1", remedy: "hostip of w1"},
		{name: "an address that no interface has", edit: func(m *machine) { m.fact("address", "eth0 192.168.1.4/24") },
			check: "address", message: "no interface has the address 10.0.0.11; the machine has 192.168.1.4 (eth0)", remedy: "hostip"},
		{name: "another machine's address", edit: func(m *machine) { m.fact("address", "eth1 10.0.0.12/32", true) },
			check: "unique-address", message: "eth1 has the address 10.0.0.12, which is w2's", remedy: "ip addr del 10.0.0.12/32 dev eth1"},
		{name: "a clock that is an hour ahead", edit: func(m *machine) { m.fact("time", fmt.Sprint(preflightNow.Add(time.Hour).UnixMilli())) },
			check: "clock", message: "the clock is 1h0m0s ahead of the other machines' (it says 2026-03-01T13:00:00Z)", remedy: "timedatectl"},
		{name: "a clock that is 40 seconds behind", edit: func(m *machine) { m.fact("time", fmt.Sprint(preflightNow.Add(-40*time.Second).UnixMilli())) },
			check: "clock", message: "40s behind the other machines'", remedy: "timedatectl"},
		{name: "a clock that is 20 seconds ahead", edit: func(m *machine) { m.fact("time", fmt.Sprint(preflightNow.Add(20*time.Second).UnixMilli())) }},
		{name: "an answer that took a minute", edit: func(m *machine) {
			m.answered = preflightNow.Add(time.Minute)
			m.fact("time", fmt.Sprint(preflightNow.Add(59*time.Second).UnixMilli()))
		}},
		{name: "port 6443 taken by a web server", host: "m1", edit: func(m *machine) { m.say("port", "6443", "123", "nginx") },
			check: "port", message: "port 6443, which the API server needs, is in use by nginx (pid 123)", remedy: "stop nginx"},
		{name: "a port taken by nobody knows whom", edit: func(m *machine) { m.say("port", "10250", "", "") },
			check: "port", message: "port 10250, which the kubelet needs, is in use", remedy: "ss -ltnp 'sport = :10250'"},
		{name: "a port of the control plane taken on a worker", edit: func(m *machine) { m.say("port", "6443", "123", "nginx") }},
		{name: "a port that was taken over on a member", host: "m1", edit: func(m *machine) {
			m.journal = []string{"journal\tinit\tdone"}
			m.say("port", "2379", "5", "etcd")
			m.say("port", "6443", "123", "nginx")
		}, check: "port", message: "port 6443, which the API server needs, is in use by nginx (pid 123)", remedy: "nginx"},
		{name: "another Kubernetes", edit: func(m *machine) {
			m.say("active", "kubelet")
			m.say("port", "10250", "99", "kubelet")
			m.say("exists", "/etc/kubernetes/kubelet.conf")
		}, check: "kubernetes", message: "the unit kubelet, /etc/kubernetes/kubelet.conf", remedy: "kubeadm reset -f; find -H /etc/cni/net.d /etc/kubernetes"},
		{name: "k3s", edit: func(m *machine) { m.say("active", "k3s-agent") }, check: "kubernetes", message: "k3s-agent", remedy: "k3s-agent-uninstall.sh"},
		{name: "leftovers of --fix alone make no member", edit: func(m *machine) {
			m.journal = []string{"journal\tpreflight\tdone"}
			m.say("exists", "/etc/kubernetes/admin.conf")
		}, check: "kubernetes", message: "/etc/kubernetes/admin.conf", remedy: "kubeadm reset"},
		{name: "Docker's containerd", edit: func(m *machine) { m.say("active", "docker"); m.say("active", "containerd") },
			check: "runtime", message: "another containerd runs on the machine, and Docker's containers run in it", remedy: "systemctl disable --now docker.socket docker containerd"},
		{name: "Docker with a containerd of its own", edit: func(m *machine) { m.say("active", "docker") },
			severity: preflight.SeverityWarning, check: "runtime", message: "docker runs on the machine", remedy: "systemctl disable --now docker"},
		{name: "a member of another cluster", edit: func(m *machine) {
			m.journal = []string{"journal\tjoin\tdone"}
			m.say("exists", "/etc/kubernetes/kubelet.conf")
			m.say("server", "https://10.9.9.9:6443")
		}, check: "cluster", message: "a member of another cluster, that of https://10.9.9.9:6443", remedy: "paictl node remove w1"},
		{name: "another Kubernetes without its kubeadm", edit: func(m *machine) {
			m.say("missing", "kubeadm")
			m.say("exists", "/var/lib/kubelet/config.yaml")
		}, check: "kubernetes", message: "/var/lib/kubelet/config.yaml", remedy: "xargs -r umount; find -H /etc/cni/net.d /etc/kubernetes /var/lib/kubelet /var/lib/etcd -xdev -mindepth 1 -delete"},
		{name: "more name servers than pods use", edit: func(m *machine) {
			for i := range 5 {
				m.fact("dns", fmt.Sprintf("10.0.0.%d", 53+i), true)
			}
		}, severity: preflight.SeverityWarning, check: "dns", message: "so 10.0.0.56, 10.0.0.57 will not be asked", remedy: "cluster-dns"},
		{name: "more name servers than pods use, which get others",
			spec: func(s *engine.Spec) { s.Config.Kubernetes.Kubernetes.ClusterDNS = []string{"10.0.0.9"} },
			edit: func(m *machine) {
				for i := range 5 {
					m.fact("dns", fmt.Sprintf("10.0.0.%d", 53+i), true)
				}
			}},
		{name: "a long search list", edit: func(m *machine) { m.say("search", strings.Repeat("a.b ", 29)+"c.d e.f") },
			severity: preflight.SeverityWarning, check: "dns", message: "so c.d, e.f will not be searched", remedy: "search list"},
		{name: "a search list with many characters", edit: func(m *machine) {
			m.say("search", strings.Repeat(strings.Repeat("x", 60)+".example.org ", 26)+"the.last.domain.has.no.room.example.org more.example.org")
		}, severity: preflight.SeverityWarning, check: "dns", message: "so the.last.domain.has.no.room.example.org, more.example.org will not", remedy: "search list"},
		{name: "a folder that is a link to a disk that isn't mounted", edit: func(m *machine) { m.say("dangling", "/var/lib/kubelet", "/data/kubelet") },
			check: "link", message: "/var/lib/kubelet is a link to /data/kubelet, which doesn't exist", remedy: "mkdir -p /data/kubelet"},
		{name: "a store that can't carry overlays", edit: func(m *machine) { m.say("overlay", "/var/lib/containerd", "overlayfs", "Invalid argument") },
			check: "overlay", message: "an overlay mount fails on its file system, overlayfs (Invalid argument)", remedy: "ftype=1, at /var/lib/containerd"},
		{name: "a store that can't carry overlays, and needs none",
			spec: func(s *engine.Spec) {
				s.Config.Kubernetes.Kubernetes.Extra.Containerd = map[string]any{"plugins": map[string]any{"io.containerd.cri.v1.images": map[string]any{"snapshotter": "native"}}}
			},
			edit: func(m *machine) { m.say("overlay", "/var/lib/containerd", "overlayfs", "Invalid argument") }},
		{name: "no inodes for the images", edit: func(m *machine) {
			m.unsay("fs\t/var/lib/containerd")
			m.say("fs", "/var/lib/containerd", "/var/lib/containerd", "209715200", "104857600", "tmpfs", "160", "159")
		}, check: "inodes", message: "/var/lib/containerd has 159 inodes free, but needs 8000, for /var/lib/containerd", remedy: "du -x --inodes --max-depth=3 /var/lib/containerd"},
		{name: "a file system without a limit of inodes", edit: func(m *machine) {
			m.unsay("fs\t/var/lib/containerd")
			m.say("fs", "/var/lib/containerd", "/var/lib/containerd", "209715200", "104857600", "/dev/sdb", "0", "0")
		}},
		{name: "a read-only root", edit: func(m *machine) { m.say("mount", "/etc", "/", "ro"); m.say("mount", phases.BinDir, "/", "ro") },
			check: "mount", message: "/ is read-only, and contains /etc", remedy: "mount -o remount,rw /"},
		{name: "programs on a file system that forbids them", edit: func(m *machine) {
			m.say("mount", "/var/log", "/var", "noexec")
			m.say("mount", "/var/lib/containerd", "/var", "noexec")
		}, check: "mount", message: "/var is mounted noexec, and contains /var/lib/containerd", remedy: "mount -o remount,exec /var"},
		{name: "logs on a file system that forbids programs", edit: func(m *machine) { m.say("mount", "/var/log", "/var/log", "noexec") }},
		{name: "no way to the API", edit: func(m *machine) { m.say("reach", "10.0.0.1:6443", "timeout") },
			check: "reach", message: "cannot reach m1 (10.0.0.1:6443): no answer within three seconds", remedy: "let 10.0.0.11 open TCP port 6443 on 10.0.0.1"},
		{name: "an API that does not run yet", edit: func(m *machine) { m.say("reach", "10.0.0.1:6443", "refused") }},
		{name: "no way to the load balancer", edit: func(m *machine) { m.say("reach", "10.0.0.100:6443", "no route") },
			severity: preflight.SeverityWarning, check: "reach", message: "cannot reach the API's address 10.0.0.100:6443: no route", remedy: "load balancer"},
		{name: "a route into the pods' network", edit: func(m *machine) { m.say("route", "10.144.5.0/24", "tun0") },
			check: "network", message: "pod-cidr 10.144.0.0/16 overlaps the machine's route to 10.144.5.0/24 (tun0)", remedy: "another pod-cidr"},
		{name: "an interface in the services' network", edit: func(m *machine) { m.fact("address", "docker0 10.96.1.1/24", true) },
			check: "network", message: "service-cluster-ip-range 10.96.0.0/16 overlaps the machine's network 10.96.1.0/24 (docker0)", remedy: "another service-cluster-ip-range"},
		{name: "a wider route around the pods' network", edit: func(m *machine) { m.say("route", "10.0.0.0/8", "eth0") }},
		{name: "ufw", edit: func(m *machine) { m.say("active", "ufw") }, severity: preflight.SeverityWarning, check: "firewall", message: "ufw is active: it must allow 10250/tcp", remedy: "10.144.0.0/16"},
		{name: "firewalld", host: "m1", edit: func(m *machine) { m.say("active", "firewalld") }, severity: preflight.SeverityWarning, check: "firewall", message: "6443, 2379, 2380, 10250/tcp", remedy: "--add-source=10.144.0.0/16"},
		{name: "SELinux", edit: func(m *machine) { m.unsay("selinux"); m.say("selinux", "1") }, severity: preflight.SeverityWarning, check: "selinux", message: "enforcing", remedy: "setenforce 0"},
		{name: "an answer that is no answer", edit: func(m *machine) { m.facts = []string{"Welcome to w1!"} }, check: "facts", message: "is not readable", remedy: "standard output"},
		{name: "a probe that broke off", edit: func(m *machine) { m.unsay("end"); m.probe = append(m.probe, "@! 2") }, check: "probe", message: "were aborted with exit status 2", remedy: "--log-file"},
	}
	for _, c := range cases {
		t.Run(c.name, c.run)
	}
}

func TestDiskSpaceIsAddedUpForEachFileSystem(t *testing.T) {
	// A worker gets eight programs of 100 MiB, both staged and installed, a plugin of 10 MiB and eight images of 300 MiB. On a single disk, the sum is
	// 64 + 2048 + 2·800 + 10 + 5·2400 = 15722 MiB.
	for _, c := range []struct {
		name  string
		edit  func(*machine)
		check string
	}{
		{"1 GB for everything", func(m *machine) {
			for _, p := range preflight.Folders(phases.CheckedCluster(preflightSpec(t, 1).Fresh(), nil), &preflight.Node{}) {
				m.disk(p, "/", "/dev/sda1", 1024)
			}
		}, "/ has 1024 MiB free, but needs 15.4 GiB"},
		{"just enough for everything", func(m *machine) {
			for _, p := range preflight.Folders(phases.CheckedCluster(preflightSpec(t, 1).Fresh(), nil), &preflight.Node{}) {
				m.disk(p, "/", "/dev/sda1", 15722)
			}
		}, ""},
		{"one MiB too little", func(m *machine) {
			for _, p := range preflight.Folders(phases.CheckedCluster(preflightSpec(t, 1).Fresh(), nil), &preflight.Node{}) {
				m.disk(p, "/", "/dev/sda1", 15721)
			}
		}, "/ has 15.4 GiB free, but needs 15.4 GiB"},
		{"a small disk of its own for the images", func(m *machine) { m.disk("/var/lib/containerd", "/var/lib/containerd", "/dev/sdb", 5000) },
			"/var/lib/containerd has 5000 MiB free, but needs 11.7 GiB, for /var/lib/containerd"},
		{"two mount points of one device", func(m *machine) {
			m.disk("/var/lib/containerd", "/data/containerd", "/dev/sdb", 13000)
			m.disk("/var/lib/kubelet", "/data/kubelet", "/dev/sdb", 13000)
		}, "for /var/lib/kubelet, /var/lib/containerd"},
		{"images that are there need no room", func(m *machine) {
			m.disk("/var/lib/containerd", "/var/lib/containerd", "/dev/sdb", 10)
			m.images = memberMachine(preflightSpec(t, 1), preflightSpec(t, 1).Nodes[1]).images
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := examine(t, preflightSpec(t, 2), nil, func(ms map[string]*machine) { c.edit(ms["w1"]) })
			if c.check == "" {
				assert.Empty(t, got)
				return
			}
			require.Len(t, got, 1, "%+v", got)
			assert.Equal(t, "disk", got[0].Check)
			assert.Equal(t, preflight.SeverityError, got[0].Severity)
			assert.Contains(t, got[0].Message, c.check)
			assert.Contains(t, got[0].Remedy, "free at least")
		})
	}
}

func TestAMachineWithAnotherCertificateAuthorityBelongsToAnotherCluster(t *testing.T) {
	s := preflightSpec(t, 2)
	got := examine(t, s, nil, func(ms map[string]*machine) {
		for _, n := range s.Nodes {
			ms[n.Hostname] = memberMachine(s, n)
		}
		ms["w2"].unsay("ca")
		ms["w2"].say("ca", "bbbb")
	})
	require.Len(t, got, 1)
	assert.Equal(t, "w2", got[0].Host)
	assert.Equal(t, "cluster", got[0].Check)
	assert.Contains(t, got[0].Message, "not that of m1")
	assert.Contains(t, got[0].Remedy, "if it was off while this cluster's authorities were replaced: paictl cluster certs rotate-ca --catch-up; otherwise remove it from that cluster first")
}

// A machine that has lost paictl's record may hold the last copy of the cluster's data.
func TestAMemberThatLostPaictlsRecordIsNotToldToWipeItself(t *testing.T) {
	// without makes all machines members, and removes paictl's record from the named machines.
	made := []string{engine.KubeadmConf}
	without := func(s *engine.Spec, names ...string) []preflight.Finding {
		return examine(t, s, nil, func(ms map[string]*machine) {
			for _, n := range s.Nodes {
				m := memberMachine(s, n)
				if n.ControlPlane {
					m.say("exists", "/etc/kubernetes/manifests/kube-apiserver.yaml")
				}
				if slices.Contains(names, n.Hostname) {
					m.journal, m.member = nil, []string{"member\tno"}
					m.unsay("exists")
					m.say("exists", "/etc/kubernetes/kubelet.conf")
					if n.ControlPlane {
						m.say("exists", "/etc/kubernetes/manifests/kube-apiserver.yaml")
						for _, f := range made {
							m.say("exists", f)
						}
					}
				}
				ms[n.Hostname] = m
			}
		})
	}
	one := func(got []preflight.Finding) preflight.Finding {
		t.Helper()
		require.Len(t, got, 1, "%+v", got)
		assert.Equal(t, "kubernetes", got[0].Check)
		assert.Equal(t, preflight.SeverityError, got[0].Severity)
		assert.Contains(t, got[0].Remedy, "restore /var/lib/paictl from a backup")
		return got[0]
	}
	f := one(without(preflightSpec(t, 2), "w1"))
	assert.Contains(t, f.Message, "the machine is a member of the cluster of m1, and /var/lib/paictl, which identifies it for paictl, is missing")
	assert.Contains(t, f.Remedy, "reinstall its operating system")
	assert.Contains(t, f.Remedy, "paictl node remove w1, later paictl node add w1=10.0.0.11 --role worker")
	assert.NotContains(t, f.Remedy, "rm -rf")

	f = one(without(preflightSpec(t, 0), "m1"))
	assert.Contains(t, f.Message, "the machine has the control plane of a cluster")
	assert.NotContains(t, f.Message+f.Remedy, "another")
	assert.NotContains(t, f.Remedy, "rm -rf")

	made = nil // by another tool
	f = one(without(preflightSpec(t, 0), "m1"))
	assert.Contains(t, f.Message, "or another tool has created it")
	assert.Contains(t, f.Remedy, "remove the machine from layout.yaml, or if you no longer need that cluster: kubeadm reset -f")
	made = []string{engine.KubeadmConf}

	for _, f := range without(preflightSpec(t, 1), "m1", "w1") {
		assert.NotContains(t, f.Remedy, "rm -rf", "%+v", f)
	}
}

func TestOfTwoClocksThatDifferTheOperatorsTellsWhichIsWrong(t *testing.T) {
	s := preflightSpec(t, 1)
	got := examine(t, s, nil, func(ms map[string]*machine) {
		ms["m1"].fact("time", fmt.Sprint(preflightNow.Add(-time.Hour).UnixMilli()))
	})
	require.Len(t, got, 1)
	assert.Equal(t, "m1", got[0].Host)
}

func TestAnOperatorWithAWrongClockIsWarned(t *testing.T) {
	got := examine(t, preflightSpec(t, 2), nil, func(ms map[string]*machine) {
		for _, m := range ms {
			m.fact("time", fmt.Sprint(preflightNow.Add(-20*time.Minute).UnixMilli()))
		}
	})
	require.Len(t, got, 1)
	assert.Equal(t, preflight.Finding{Check: "clock", By: "clock", Severity: preflight.SeverityWarning,
		Message: "the clock here differs by 20m0s from the machines'",
		Remedy:  "set the clock of this computer: by its time the cluster's certificates may not be valid"}, got[0])
}

func TestALimitedRunIsToldOnlyOfItsOwnHosts(t *testing.T) {
	got := examine(t, preflightSpec(t, 2), []string{"w2"}, func(ms map[string]*machine) {
		ms["m1"].fact("swap-kib", "1024")
		ms["m1"].fact("machine-id", "same")
		ms["w2"].fact("machine-id", "same")
		ms["w1"] = nil
	})
	require.Len(t, got, 1)
	assert.Equal(t, "w2", got[0].Host)
	assert.Equal(t, "unique-machine-id", got[0].Check)
}

func TestAMasterThatIsOffIsNoReasonToStopTheOthers(t *testing.T) {
	s := preflightSpec(t, 2)
	got := examine(t, s, nil, func(ms map[string]*machine) {
		ms["w1"] = nil
		ms["w2"].say("reach", "10.0.0.11:6443", "timeout")
	})
	assert.Empty(t, got)
}

func TestFindingsHaveOneOrder(t *testing.T) {
	s := preflightSpec(t, 2)
	list := func() string {
		var b strings.Builder
		for _, f := range examine(t, s, nil, func(ms map[string]*machine) {
			for _, m := range ms {
				m.fact("swap-kib", "1024")
				m.fact("uid", "7")
				m.fact("arch", "arm64")
			}
		}) {
			fmt.Fprintf(&b, "%s/%s ", f.Host, f.Check)
		}
		return b.String()
	}
	const want = "m1/arch m1/sudo m1/swap w1/arch w1/sudo w1/swap w2/arch w2/sudo w2/swap "
	for range 20 {
		require.Equal(t, want, list())
	}
}
