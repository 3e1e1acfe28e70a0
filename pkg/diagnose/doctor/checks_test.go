package doctor

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// patient returns a healthy cluster with the masters m1, m2 … and the workers w1, w2 ….
func patient(t *testing.T, masters, workers int, objects ...runtime.Object) *Cluster {
	t.Helper()
	layoutOf := config.Cluster{Dir: t.TempDir()}
	layoutOf.Kubernetes.Kubernetes.NetworkPlugin = flannel
	layoutOf.Layout.MachineSKU = map[string]layout.SKU{"cpu": {Mem: "64Gi", CPU: layout.CPU{VCore: 16}, Discovered: true},
		"gpu": {Mem: "64Gi", CPU: layout.CPU{VCore: 16}, Discovered: true, GPU: &layout.GPU{Type: "NVIDIA-A100", Count: 8}}}
	c := &Cluster{Config: &layoutOf, Dir: "my cluster", Now: func() time.Time { return now }, Inspection: &cluster.Inspection{Status: &cluster.Status{API: "up"}, Machines: map[string]*cluster.InspectedMachine{}}}
	c.Spec = &engine.Spec{Config: c.Config}
	for i := range masters + workers {
		m := layout.Machine{Hostname: fmt.Sprintf("m%d", i+1), HostIP: fmt.Sprintf("10.0.0.%d", i+1), SKU: "cpu", Roles: []string{layout.RoleMaster}}
		if i >= masters {
			m.Hostname, m.SKU, m.Roles = fmt.Sprintf("w%d", i-masters+1), "gpu", []string{layout.RoleWorker}
		}
		c.Config.Layout.MachineList = append(c.Config.Layout.MachineList, m)
		c.Spec.Nodes = append(c.Spec.Nodes, &engine.Node{Machine: m, ControlPlane: i < masters, Worker: i >= masters, Target: ssh.Target{User: "root"}})
		l := &cluster.InspectedMachine{Broken: map[string]string{}, Facts: layout.Facts{Hostname: m.Hostname, VCores: 16, MemKiB: 63 << 20}, More: [][]string{{"end", "ok"},
			{"unit", "kubelet", "active", "enabled"}, {"unit", "containerd", "active", "enabled"},
			{"own", "eth0"}, {"link", "eth0", "1500"}, {"link", "flannel.1", "1450"}, {"link", "cni0", "1450"}}}
		if i < masters {
			l.API = "up"
			l.Etcd = &cluster.EtcdView{Quorum: true, Status: []byte(`{"leader":"7","dbSize":"1000000","dbSizeInUse":"900000"}`), Alarms: []byte(`{}`)}
		} else {
			for range 8 {
				l.Facts.PCIGPUs, l.Facts.NVIDIA = append(l.Facts.PCIGPUs, layout.PCIDevice{}), append(l.Facts.NVIDIA, layout.NVIDIAGPU{})
			}
			l.Facts.Driver = "535.261.03"
		}
		c.Inspection.Machines[m.Hostname] = l
		c.Inspection.Status.Machines = append(c.Inspection.Status.Machines, cluster.MachineStatus{Host: m.Hostname, State: cluster.StateReady})
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Hostname, Labels: map[string]string{corev1.LabelHostname: m.Hostname}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
	}
	var members []cluster.EtcdMember
	for i := range masters {
		members = append(members, cluster.EtcdMember{Name: fmt.Sprintf("m%d", i+1), PeerURLs: []string{fmt.Sprintf("https://10.0.0.%d:2380", i+1)}})
	}
	for _, l := range c.Inspection.Machines {
		if l.Etcd != nil {
			l.Etcd.Members = members
		}
	}
	c.Kube = &kube.Cluster{Client: fake.NewClientset(objects...), Context: "test", Server: "https://10.0.0.1:6443", Config: &rest.Config{}}
	return c
}

func named(t *testing.T, id string) *Check {
	t.Helper()
	at := slices.IndexFunc(Checks(), func(c *Check) bool { return c.ID == id })
	require.GreaterOrEqual(t, at, 0, id)
	return Checks()[at]
}

// ask runs one check. It returns the warnings and problems in the form "verdict where: message -> remedy".
func ask(t *testing.T, c *Cluster, id string) (out []string) {
	t.Helper()
	check := named(t, id)
	require.Empty(t, c.unmet(check.Needs), id)
	found, err := check.Run(t.Context(), c)
	require.NoError(t, err, id)
	for _, f := range found {
		if f.Verdict == Warning || f.Verdict == Problem {
			assert.NotEmpty(t, f.Remedy, "%s has no remedy for %q", id, f.Message)
			out = append(out, fmt.Sprintf("%s %s: %s -> %s", f.Verdict, f.Where, f.Message, f.Remedy))
		}
	}
	return out
}

func onMachines() (ids []string) {
	for _, c := range Checks() {
		if c.Needs&^(Machines|Managed) == 0 && c.ID != "api-server" {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func TestNothingIsFoundOnMachinesThatAreWell(t *testing.T) {
	for name, c := range map[string]*Cluster{
		"one machine":                   patient(t, 1, 0),
		"one master and its workers":    patient(t, 1, 3),
		"three masters":                 patient(t, 3, 2),
		"names with dots and dashes":    renamed(patient(t, 1, 1), "m1", "gpu-node.rack-1.example.org"),
		"IPv6":                          addressed(patient(t, 1, 0), "fd00::1"),
		"containers, as of the sandbox": contained(patient(t, 1, 2)),
		"a machine that hasn't joined":  outside(patient(t, 1, 2), "w2"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, id := range onMachines() {
				assert.Empty(t, ask(t, c, id), id)
			}
		})
	}
}

func renamed(c *Cluster, from, to string) *Cluster {
	for i, n := range c.Spec.Nodes {
		if n.Hostname == from {
			n.Hostname, c.Config.Layout.MachineList[i].Hostname, c.Inspection.Status.Machines[i].Host = to, to, to
			c.Inspection.Machines[to] = c.Inspection.Machines[from]
			delete(c.Inspection.Machines, from)
			for k := range c.Inspection.Machines[to].Etcd.Members {
				c.Inspection.Machines[to].Etcd.Members[k].Name = to
			}
		}
	}
	return c
}

func addressed(c *Cluster, ip string) *Cluster {
	c.Spec.Nodes[0].HostIP = ip
	c.Inspection.Machines["m1"].Etcd.Members[0] = cluster.EtcdMember{PeerURLs: []string{"https://[" + ip + "]:2380"}}
	return c
}

func contained(c *Cluster) *Cluster {
	for _, l := range c.Inspection.Machines {
		l.Facts.Container = "systemd-nspawn"
		l.More = [][]string{{"end", "ok"}, {"unit", "kubelet", "active", "enabled"}, {"unit", "containerd", "active", "enabled"}}
	}
	return c
}

// outside changes a cluster so that one machine isn't a member and has no programs or settings of a member.
func outside(c *Cluster, name string) *Cluster {
	c.Inspection.Machines[name].More = [][]string{{"end", "ok"}}
	c.Inspection.Machines[name].Settings = []engine.Change{{Target: "sysctl net.ipv4.ip_forward"}, {Target: "/etc/hosts"}, {Target: "swapoff"}}
	for i := range c.Inspection.Status.Machines {
		if c.Inspection.Status.Machines[i].Host == name {
			c.Inspection.Status.Machines[i].State = cluster.StateOutside
		}
	}
	return c
}

func TestFaultsOfMachinesAreFound(t *testing.T) {
	more := func(host string, rows ...[]string) func(*Cluster) {
		return func(c *Cluster) { c.Inspection.Machines[host].More = append(rows, c.Inspection.Machines[host].More...) }
	}
	unit := func(host, name, active, enabled string) func(*Cluster) {
		return func(c *Cluster) {
			for _, r := range c.Inspection.Machines[host].More {
				if r[0] == "unit" && r[1] == name {
					r[2], r[3] = active, enabled
				}
			}
		}
	}
	for _, tc := range []struct {
		name, check string
		fault       func(*Cluster)
		finds       []string // parts of each finding, in order, with | between
	}{
		{"a machine that is off", "machines-reachable", func(c *Cluster) {
			c.Inspection.Machines["w1"] = &cluster.InspectedMachine{Err: fmt.Errorf("w1: %w: i/o timeout", ssh.ErrUnreachable)}
		}, []string{"problem w1: |doesn't answer by SSH at 10.0.0.4|switch it on|paictl node remove w1"}},
		{"a key that is refused", "machines-reachable", func(c *Cluster) {
			c.Inspection.Machines["w1"] = &cluster.InspectedMachine{Err: hint.Errorf("look at the key", "w1: %w", ssh.ErrAuth)}
		}, []string{"problem w1: |look at the key"}},
		{"a server that drops connections", "machines-reachable", func(c *Cluster) {
			c.Inspection.Machines["w1"] = &cluster.InspectedMachine{Err: hint.Errorf("look at MaxStartups", "w1: %w: %w", ssh.ErrUnreachable, io.EOF)}
		}, []string{"problem w1: can't be checked by SSH|look at MaxStartups"}},
		{"answers that broke off", "machines-reachable", func(c *Cluster) { c.Inspection.Machines["w1"].Broken["more"] = "1" }, []string{"warning w1: |aborted"}},
		{"a kubelet that was stopped", "kubelet-active", unit("w1", "kubelet", "inactive", "enabled"), []string{"problem w1: the kubelet doesn't run (inactive)|systemctl enable --now kubelet|journalctl -u kubelet"}},
		{"a kubelet that won't come back", "kubelet-active", unit("w1", "kubelet", "active", "disabled"), []string{"problem w1: |won't after the next reboot|systemctl enable kubelet"}},
		{"a kubelet that someone masked", "kubelet-active", unit("w1", "kubelet", "inactive", "masked"), []string{"problem w1: |systemctl unmask kubelet"}},
		{"a containerd that failed", "runtime-active", unit("m1", "containerd", "failed", "enabled"), []string{"problem m1: containerd doesn't run (failed)"}},
		{"a time service that was stopped", "time-service", func(c *Cluster) {
			f := (&checks.TimeSync{Installed: []string{"chrony"}}).Check()
			f.Host, f.By = "w1", "time-source"
			c.Inspection.Preflight = []preflight.Finding{*f}
		}, []string{"problem w1: no service synchronizes its clock: chrony|systemctl enable --now chrony"}},
		{"a unit that failed", "units-failed", more("w1", []string{"failed", "paictl-cni.service"}), []string{"warning w1: the unit paictl-cni.service has failed|journalctl"}},
		{"a clock that is off", "clocks", func(c *Cluster) {
			c.Inspection.Preflight = []preflight.Finding{{Host: "w1", By: "clock", Severity: preflight.SeverityError, Message: "the clock is 5m ahead", Remedy: "timedatectl"}}
		}, []string{"problem w1: the clock is 5m ahead -> timedatectl"}},
		{"a folder that is read-only", "machine-fitness", func(c *Cluster) {
			c.Inspection.Preflight = []preflight.Finding{{Host: "w1", By: "mount", Severity: preflight.SeverityError, Message: "/var is read-only", Remedy: "remount"}, {Host: "w1", Check: "clock", By: "clock"}, {Host: "w1", Check: "unique-machine-id", By: "unique"}}
		}, []string{"problem w1: /var is read-only"}},
		{"settings that will be lost", "kernel-settings", func(c *Cluster) {
			c.Inspection.Machines["w1"].Settings = []engine.Change{{Target: "/etc/sysctl.d/99-zz-paictl.conf"}, {Target: "sysctl net.ipv4.ip_forward", Detail: "0 -> 1"}, {Target: "/etc/hosts"}}
			c.Inspection.Preflight = []preflight.Finding{{Host: "m1", By: "sysctl", Severity: preflight.SeverityError, Message: "/etc/sysctl.d/zzz.conf sets it", Remedy: "remove the line"}}
		}, []string{"problem w1: kernel settings aren't|sysctl net.ipv4.ip_forward 0 -> 1|--fix -p 'my cluster'", "problem w1: settings will be lost at the next reboot: /etc/sysctl.d/99-zz-paictl.conf", "problem m1: |zzz.conf"}},
		{"swap", "swap", func(c *Cluster) { c.Inspection.Machines["w1"].Settings = []engine.Change{{Target: "swapoff"}} }, []string{"problem w1: swap is on"}},
		{"names of machines", "host-names", func(c *Cluster) { c.Inspection.Machines["w1"].Settings = []engine.Change{{Target: "/etc/hosts"}} }, []string{"problem w1: the names"}},
		{"a disk that is full", "disk-space", more("w1", []string{"fs", "/var/lib/kubelet", "/var", "100000000", "1000000", "/dev/sdb", "100", "50"}, []string{"fs", "/var/log", "/var", "100000000", "1000000", "/dev/sdb", "100", "50"}),
			[]string{"problem w1: /var is 99 % full|for /var/lib/kubelet, /var/log|du -xh"}},
		{"a disk that fills up", "disk-space", more("w1", []string{"fs", "/", "/", "100", "8", "/dev/sda", "0", "0"}), []string{"warning w1: / is 92 % full"}},
		{"inodes", "inodes", more("w1", []string{"fs", "/", "/", "100", "50", "/dev/sda", "1000", "10"}, []string{"fs", "/b", "/b", "100", "50", "/dev/sdb", "0", "0"}), []string{"problem w1: / has 10 of 1000 inodes left"}},
		{"a certificate that expires", "certificates", func(c *Cluster) {
			c.Inspection.Status.Certificates = []checks.Certificate{{Host: "m1", Name: "apiserver", Days: 3, Expires: now}, {Host: "w1", Name: "kubelet", Days: 20, Expires: now},
				{Host: "w2", Name: "kubelet", Days: -1, Expired: true, Expires: now}, {Host: "m1", Name: "ca", CA: true, Days: 2, Expires: now}, {Host: "m1", Name: "etcd/server", Days: 300, Expires: now}}
		}, []string{"problem m1: the certificate apiserver expires in 3 days|paictl-certificates.service", "warning w1: the certificate kubelet expires in 20 days|systemctl restart kubelet", "problem w2: |has expired|paictl node remove", "problem m1: the certificate ca|authority"}},
		{"renewal that is off", "certificate-renewal", func(c *Cluster) { c.Inspection.Status.Renewal.Off = []string{"m1"} }, []string{"warning m1: |paictl cluster up --limit m1"}},
		{"an API server of one master", "api-servers", func(c *Cluster) { c.Inspection.Machines["m2"].API = "down" }, []string{"problem m2: its API server doesn't answer|crictl"}},
		{"etcd that is down on a master", "etcd-members", func(c *Cluster) { c.Inspection.Machines["m3"].Etcd = nil }, []string{"problem m3: its etcd doesn't answer|crictl"}},
		{"a master that is off", "etcd-members", func(c *Cluster) {
			c.Inspection.Machines["m3"] = &cluster.InspectedMachine{Err: ssh.ErrUnreachable}
			c.Inspection.Status.Machines[2].State = cluster.StateUnreachable
		}, []string{"problem m3: is an etcd member that doesn't answer: 2 of 3 members are left|paictl node remove m3"}},
		{"a member that is gone", "etcd-members", func(c *Cluster) {
			for _, l := range c.Inspection.Machines {
				if l.Etcd != nil {
					l.Etcd.Members = l.Etcd.Members[:2]
				}
			}
		}, []string{"problem m3: |not an etcd member|paictl node add m3=10.0.0.3 --role master", "warning : etcd has two members"}},
		{"a member too many", "etcd-members", func(c *Cluster) {
			for _, l := range c.Inspection.Machines {
				if l.Etcd != nil {
					l.Etcd.Members = append(l.Etcd.Members[:3:3], cluster.EtcdMember{PeerURLs: []string{"https://10.0.0.99:2380"}})
				}
			}
		}, []string{"problem : etcd has a member https://10.0.0.99:2380 that is not a master"}},
		{"a quorum that is lost", "etcd-members", func(c *Cluster) {
			for _, l := range c.Inspection.Machines {
				if l.Etcd != nil {
					l.Etcd.Quorum = false
				}
			}
		}, []string{"problem : etcd has lost its quorum: too few of 3 members"}},
		{"alarms of etcd", "etcd-health", func(c *Cluster) {
			c.Inspection.Machines["m1"].Etcd.Alarms = []byte(`{"alarms":[{"memberID":"1","alarm":"NOSPACE"}]}`)
			c.Inspection.Machines["m2"].Etcd.Status = []byte(`{"errors":["disk slow","memberID:1 alarm:NOSPACE"]}`)
		}, []string{"problem m2: its etcd has no leader", "problem m2: its etcd reports an error", "problem : etcd has the alarm NOSPACE|alarm disarm"}},
		{"a database that is full of holes", "etcd-size", func(c *Cluster) {
			c.Inspection.Machines["m1"].Etcd.Status = []byte(`{"leader":"1","dbSize":"2000000000","dbSizeInUse":"1000"}`)
		}, []string{"problem m1: etcd's database has 1907 MiB of 2048|defragment"}},
		{"copies that are old", "etcd-backup", more("m1", []string{"snapshot", "/var/backups/etcd/a.db", fmt.Sprint(now.Add(-200 * time.Hour).Unix())}), []string{"warning m1: the last backup is 8 days old"}},
		{"a backup that is old", "etcd-backup", backedUp(t, now.Add(-200*time.Hour)), []string{"warning : the last backup is 8 days old|timer"}},
		{"storage that isn't mounted", "mounts", more("w1", []string{"fstab", "/mnt/data", "nfs", "defaults,nofail", "no"}), []string{"problem w1: /mnt/data isn't mounted|mount /mnt/data"}},
		{"a file server that hangs", "network-mounts", more("w1", []string{"netmount", "/mnt/a b", "nfs4", "hangs"}), []string{"problem w1: /mnt/a b (nfs4) doesn't answer|umount -f -l '/mnt/a b'"}},
		{"a tunnel that is too wide", "mtu", func(c *Cluster) { c.Inspection.Machines["w1"].More[4][2] = "1400" }, []string{"problem w1: flannel's tunnel|1450 bytes", "warning : MTUs of interfaces are of 2 kinds: 1400 on w1"}},
		{"GPUs that are missing", "gpu-hardware", func(c *Cluster) {
			c.Inspection.Preflight = []preflight.Finding{{Host: "w1", By: "gpu", Check: "gpu-count", Severity: preflight.SeverityError, Message: "has 7 of the 8 GPUs", Remedy: "look at dmesg"}}
		}, []string{"problem w1: has 7 of the 8 GPUs"}},
		{"a driver that doesn't answer", "gpu-driver", func(c *Cluster) {
			c.Inspection.Machines["w1"].Facts.DriverError = "Failed to initialize NVML"
			c.Inspection.Preflight = []preflight.Finding{{Host: "w1", By: "gpu-driver", Check: "gpu-driver-mismatch", Severity: preflight.SeverityError, Message: "the libraries are 550.1", Remedy: "reboot"}, {Host: "w1", By: "gpu"}}
		}, []string{"problem w1: the libraries are 550.1 -> reboot"}},
		{"a different driver than the configuration's", "gpu-driver", func(c *Cluster) {
			c.Config.Kubernetes.Kubernetes.GPUDriver = config.GPUDriver{Policy: config.GPUDriverInstall, Version: "550"}
		}, []string{"warning w1: the driver 535.261.03 is loaded, but the configuration says 550", "warning w2: "}},
		{"a copied machine", "machine-identity", func(c *Cluster) {
			c.Inspection.Preflight = []preflight.Finding{{Host: "w1", By: "unique", Check: "unique-machine-id", Severity: preflight.SeverityError, Message: "the machine has the machine id of w2", Remedy: "systemd-machine-id-setup"}, {Host: "w1", By: "disk", Check: "inodes"}}
		}, []string{"problem w1: the machine has the machine id of w2"}},
		{"room for a bundle's files, which a member has", "machine-fitness", func(c *Cluster) {
			c.Inspection.Preflight = []preflight.Finding{{Host: "w1", By: "disk", Check: "inodes"}, {Host: "w1", By: "gpu", Check: "gpu-count"}, {Host: "w1", By: "gpu-driver", Check: "gpu-driver-old"}}
		}, nil},
		{"drivers that differ", "gpu-driver", func(c *Cluster) { c.Inspection.Machines["w1"].Facts.Driver = "550.1" }, []string{"warning : drivers of the machines gpu are of 2 versions: 535.261.03 on w2; 550.1 on w1"}},
		{"toolkits that differ", "gpu-toolkit", func(c *Cluster) {
			more("w1", []string{"toolkit", "1.17.0"})(c)
			more("w2", []string{"toolkit", "1.18.0"})(c)
		}, []string{"warning : container toolkits are of 2 versions"}},
		{"memory that is gone", "machine-hardware", func(c *Cluster) { c.Inspection.Machines["w1"].Facts.MemKiB = 32 << 20 }, []string{"warning w1: has 32768 MiB of memory|dmesg"}},
		{"a bridge of another subnet", "pod-subnets", func(c *Cluster) { c.Inspection.Status.Machines[3].Message = "no pod starts: cni0 has 10.1.0.1/24" }, []string{"problem w1: no pod starts|paictl cluster up --limit w1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := patient(t, 3, 2)
			require.Empty(t, ask(t, c, tc.check), "it is well before")
			tc.fault(c)
			expect(t, tc.finds, ask(t, c, tc.check))
		})
	}
}

func backedUp(t *testing.T, at time.Time) func(*Cluster) {
	t.Helper()
	return func(c *Cluster) {
		_, err := c.Kube.Client.CoreV1().ConfigMaps(cluster.NotesNamespace).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: cluster.NotesName}, Data: map[string]string{cluster.BackupNote: at.Format(time.RFC3339)}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

func expect(t *testing.T, want, got []string) {
	t.Helper()
	if !assert.Len(t, got, len(want), "%s", strings.Join(got, "\n")) {
		return
	}
	for i, w := range want {
		for part := range strings.SplitSeq(w, "|") {
			assert.Contains(t, got[i], part)
		}
	}
}

func TestFaultsThatTheAPITellsAreFound(t *testing.T) {
	old := metav1.NewTime(now.Add(-time.Hour))
	pod := func(ns, name, node string, status corev1.PodStatus, labels ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, CreationTimestamp: old, Labels: map[string]string{}}, Spec: corev1.PodSpec{NodeName: node}, Status: status}
		for i := 0; i+1 < len(labels); i += 2 {
			p.Labels[labels[i]] = labels[i+1]
		}
		return p
	}
	waits := func(image, reason, message string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Image: image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "pai-system", Name: "data", CreationTimestamp: old}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
	user := pod("pai-system", "uses-it", "", corev1.PodStatus{})
	user.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	stuck := pod("pai-jobs", "stuck", "w1", corev1.PodStatus{})
	stuck.DeletionTimestamp, stuck.Finalizers = &old, []string{"example.org/held"}
	young := pod("kube-system", "kube-scheduler-m1", "m1", corev1.PodStatus{}, "tier", "control-plane", "component", "kube-scheduler")
	young.CreationTimestamp = metav1.NewTime(now.Add(-time.Second))
	left := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "paictl-doctor-1", CreationTimestamp: metav1.NewTime(now.Add(-2 * time.Hour)), Labels: map[string]string{labelProbe: "true"}, Annotations: map[string]string{annotationOwner: "ada@elsewhere, pid 7"}}}
	works := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "paictl-doctor-2", CreationTimestamp: metav1.NewTime(now), Labels: map[string]string{labelProbe: "true"}, Annotations: map[string]string{annotationOwner: "ada@elsewhere, pid 8"}}}

	for _, tc := range []struct {
		name, check string
		objects     []runtime.Object
		finds       []string
	}{
		{"an image that is missing", "image-pulls", []runtime.Object{pod("pai-system", "grafana-0", "w1", waits("quay.io/no:1", "ImagePullBackOff", "not found")), pod("pai-jobs", "a-users", "w1", waits("quay.io/users:1", "ErrImagePull", ""))},
			[]string{"problem pai-system/grafana-0: the image quay.io/no:1 can't be pulled, and a pod waits for it|paictl image push"}},
		{"a pod that crashes", "crash-loops", []runtime.Object{pod("kube-system", "kube-proxy-x", "w1", waits("p", "CrashLoopBackOff", ""))}, []string{"problem kube-system/kube-proxy-x: |--previous"}},
		{"a part of the control plane", "control-plane", []runtime.Object{pod("kube-system", "etcd-m1", "m1", waits("e", "CrashLoopBackOff", "back-off"), "tier", "control-plane", "component", "etcd"), young},
			[]string{"problem etcd-m1: isn't ready on m1|crictl"}},
		{"a claim that waits", "claims-bound", []runtime.Object{claim, user}, []string{"problem pai-system/data: the claim has no volume, and the pod uses-it waits"}},
		{"a claim that no one waits for", "claims-bound", []runtime.Object{claim}, nil},
		{"a pod that doesn't go", "stuck-deletions", []runtime.Object{stuck}, []string{"problem pai-jobs/stuck: |example.org/held"}},
		{"what a doctor has left", "doctor-left", []runtime.Object{left, works}, []string{"warning paictl-doctor-1: |kubectl delete namespace paictl-doctor-1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := patient(t, 1, 1, tc.objects...)
			c.jobs.asked = true // none
			c.Spec.Nodes = nil
			c.Spec = nil
			expect(t, tc.finds, ask(t, c, tc.check))
		})
	}
}

func TestEvidenceHasReasonsInWordsAndTheirTermsForASearch(t *testing.T) {
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "grafana-0", Namespace: "pai-system"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{Image: "quay.io/no:1", State: waits}}}}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gone"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "no network"}}}}
	c := patient(t, 1, 0, p, n)
	for check, want := range map[string]string{
		"image-pulls": "image can't be pulled (ImagePullBackOff): not found",
		"nodes-ready": "kubelet not ready (KubeletNotReady): no network",
	} {
		found, err := named(t, check).Run(t.Context(), c)
		require.NoError(t, err, check)
		require.NotEmpty(t, found, check)
		assert.Equal(t, want, found[len(found)-1].Evidence, check)
	}
	ready, why := podReady(p)
	assert.False(t, ready)
	assert.Equal(t, "image can't be pulled (ImagePullBackOff): not found", why)
}

func TestASkippedConditionSaysWhetherAgentsReportGPUs(t *testing.T) {
	for want, conditions := range map[string][]corev1.NodeCondition{
		"no agent reports GPUs": nil,
		"agents report GPUs, but not the condition GPUDriverMissingAtNextBoot: it needs NVIDIA's driver and a kernel in /boot": {{Type: "GPUsUnhealthy", Status: corev1.ConditionFalse}},
	} {
		c := patient(t, 1, 0, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpus"}, Status: corev1.NodeStatus{Conditions: conditions}})
		found, err := named(t, "gpu-next-boot").Run(t.Context(), c)
		require.NoError(t, err)
		assert.Equal(t, skip("%s", want), found)
	}
}

func TestNodesAreJudged(t *testing.T) {
	c := patient(t, 1, 3)
	change := func(name string, do func(*corev1.Node)) {
		n, err := c.Kube.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		do(n)
		_, err = c.Kube.Client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	for _, id := range []string{"nodes-ready", "nodes-pressure", "nodes-cordoned", "nodes-listed", "same-cluster"} {
		assert.Empty(t, ask(t, c, id), id)
	}
	change("w1", func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown"}, {Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}}
	})
	change("w2", func(n *corev1.Node) { n.Spec.Unschedulable, n.Annotations = true, map[string]string{driverMark: "now"} })
	change("w3", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	_, err := c.Kube.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, c.Kube.Client.CoreV1().Nodes().Delete(t.Context(), "m1", metav1.DeleteOptions{}))
	c.nodes = lazy[[]corev1.Node]{}

	expect(t, []string{"problem w1: the node hasn't reported yet|paictl node remove w1"}, ask(t, c, "nodes-ready"))
	expect(t, []string{"problem w1: |DiskPressure|disk-space"}, ask(t, c, "nodes-pressure"))
	expect(t, []string{"warning w2: |upgrade of its driver|paictl node driver", "warning w3: |kubectl uncordon w3"}, ask(t, c, "nodes-cordoned"))
	expect(t, []string{"problem m1: |is not a node of the cluster|paictl cluster up", "warning stranger: |paictl node add stranger=ADDRESS"}, ask(t, c, "nodes-listed"))

	t.Run("and the cordon of a run that ended is taken back", func(t *testing.T) {
		found, err := named(t, "nodes-cordoned").Run(t.Context(), c)
		require.NoError(t, err)
		r := &Report{Results: []Result{{ID: "nodes-cordoned", Findings: found}}}
		fixes := Fixes(r)
		require.Len(t, fixes, 1)
		assert.Equal(t, []Fixed{{What: fixes[0].What}}, Apply(t.Context(), c, Options{}, fixes))
		n, err := c.Kube.Client.CoreV1().Nodes().Get(t.Context(), "w2", metav1.GetOptions{})
		require.NoError(t, err)
		assert.False(t, n.Spec.Unschedulable)
		assert.NotContains(t, n.Annotations, driverMark)
	})
	t.Run("no cordon of a run that is at work", func(t *testing.T) {
		c.Inspection.Status.Lock = &cluster.LockOwner{Owner: "ada@desk, pid 1"}
		expect(t, []string{"warning w3: "}, ask(t, c, "nodes-cordoned"))
		done := Apply(t.Context(), c, Options{}, []*Fix{{What: "x", host: "w1", script: "true"}})
		assert.Contains(t, done[0].Error, "ada@desk, pid 1 works on the machines")
	})
}

func TestAnotherClustersAPIIsTold(t *testing.T) {
	c := patient(t, 1, 1)
	for i := range c.Config.Layout.MachineList {
		c.Config.Layout.MachineList[i].Hostname += "-of-another"
	}
	expect(t, []string{"problem : no node of the cluster of context test is a machine of my cluster|--kubeconfig"}, ask(t, c, "same-cluster"))
	assert.Empty(t, ask(t, c, "nodes-listed"), "it is told once")
}

// The API counts as available even if the user has few permissions. If the API rejects the user's credentials, the report contains the reason.
func TestAnAPIThatRefusesIsNotOneThatIsDown(t *testing.T) {
	c := patient(t, 1, 1)
	c.apiErr = hint.Wrap(apierrors.NewUnauthorized("who are you"), "renew it")
	expect(t, []string{"problem : who are you|renew it"}, ask(t, c, "api-server"))
	assert.Equal(t, "the API server doesn't accept these credentials", c.unmet(API))
	c.apiErr = nil
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	c.Kube = &kube.Cluster{Client: client, Server: server.URL}
	c.askAPI(t.Context())
	assert.NoError(t, c.apiErr)
}

func TestAnAPIThatIsDownIsOneProblem(t *testing.T) {
	c := patient(t, 1, 1)
	c.apiErr = errors.New("connection refused")
	r := Result{}
	for _, check := range Checks() {
		if check.ID == "api-server" {
			r = c.run(t.Context(), check)
			continue
		}
		if check.Needs&(API|Pods) != 0 {
			assert.Equal(t, "the API server doesn't answer", c.unmet(check.Needs), check.ID)
		}
	}
	assert.Equal(t, Problem, r.Verdict)
	assert.Equal(t, "connection refused", r.Findings[0].Evidence)
}

func TestPairsAreAllOrASample(t *testing.T) {
	assert.Equal(t, [][]int{{1, 2}, {0, 2}, {0, 1}}, pairs(3, nil))
	few := pairs(200, seeded())
	reached := map[int]bool{}
	for i, list := range few {
		assert.Len(t, list, pairsEach)
		for _, j := range list {
			assert.NotEqual(t, i, j)
			reached[j] = true
		}
	}
	assert.Len(t, reached, 200, "each is tried by one at least")
}

func TestPairsThatFailAreToldByTheirCause(t *testing.T) {
	var cut []broken
	for _, other := range []string{"a", "b", "c"} {
		cut = append(cut, broken{from: other, to: "d", said: "timeout"}, broken{from: "d", to: other, said: "timeout"})
	}
	got := tell(cut, 4)
	require.Len(t, got, 1, "one machine that is cut off is one problem: %v", got)
	assert.Equal(t, "d", got[0].Where)
	assert.Contains(t, got[0].Remedy, "UDP 8472")

	got = tell([]broken{{from: "a", to: "b", size: true}}, 4)
	require.Len(t, got, 1)
	assert.Contains(t, got[0].Message, "large packets")
	assert.Contains(t, got[0].Remedy, "MTU")

	var all []broken
	for _, x := range []string{"a", "b", "c", "d"} {
		for _, y := range []string{"a", "b", "c", "d"} {
			if x != y {
				all = append(all, broken{from: x, to: y})
			}
		}
	}
	require.Len(t, tell(all, 4), 1, "where no one reaches anyone it is one thing")
}

func TestWhoseDoctorHasEnded(t *testing.T) {
	assert.False(t, isAbandoned("ada@elsewhere, pid 1", time.Minute))
	assert.True(t, isAbandoned("ada@elsewhere, pid 1", 2*time.Hour))
	assert.False(t, isAbandoned("", time.Minute))
	here := hostname(t)
	assert.False(t, isAbandoned("ada@"+here+", pid 1", time.Minute), "process 1 is there")
	assert.True(t, isAbandoned("ada@"+here+", pid 4194000", time.Minute))
	assert.False(t, isAbandoned("ada@"+here+", pid none", time.Minute))
}

func TestVolumesOfOneMachine(t *testing.T) {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
	v.Spec.Local = &corev1.LocalVolumeSource{Path: filepath.Join("/data", "x")}
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Values: []string{"w1"}}}}}}}
	c := patient(t, 1, 1, v)
	c.Inspection.Machines["w1"].More = append(c.Inspection.Machines["w1"].More, []string{"volume", "/data/x", "there"})
	assert.Empty(t, ask(t, c, "volume-folders"))
	c.Inspection.Machines["w1"].More[len(c.Inspection.Machines["w1"].More)-1][2] = "absent"
	expect(t, []string{"problem w1: the folder /data/x of the volume v is missing"}, ask(t, c, "volume-folders"))
	assert.Equal(t, map[string][]string{"w1": {"/data/x"}}, c.volumePaths(t.Context()))
}

func TestTheDoctorsJobsAreTakenByTheProtocol(t *testing.T) {
	for _, one := range []trial{{vc: "default", name: "hello-1-abcdef"}, {vc: "a-team_1", name: "gang-abcdef", machines: []string{"a", "b"}}} {
		text, err := one.text("docker.io/openpai/examples-python:3")
		require.NoError(t, err)
		parsed, found := protocol.Parse("job.yaml", text)
		assert.Empty(t, found)
		objects, found := render.Render(parsed, render.Options{User: endUser, Namespace: kube.JobNamespace, Now: now})
		require.Empty(t, found)
		(&Cluster{owner: "me"}).dress(objects, one)
		assert.Equal(t, "me", objects.Framework.Annotations[annotationOwner])
		require.Len(t, objects.Framework.Spec.TaskRoles, one.tasks())
		for i, machine := range one.machines {
			assert.Equal(t, machine, objects.Framework.Spec.TaskRoles[i].Task.Pod.Spec.NodeSelector[corev1.LabelHostname])
		}
	}
}
