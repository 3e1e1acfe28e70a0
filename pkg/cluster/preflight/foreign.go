package preflight

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/paths"
)

// foreign returns traces of a Kubernetes that paictl didn't install. It returns nil if paictl's phases have already run on the host, because they
// only begin on a host without such traces.
func (s *Host) foreign() []string {
	if s.Touched {
		return nil
	}
	var out []string
	for _, unit := range []string{"kubelet", "k3s", "k3s-agent", "rke2-server", "rke2-agent", "snap.microk8s.daemon-kubelite"} {
		if s.active(unit) {
			out = append(out, "the unit "+unit)
		}
	}
	for _, row := range s.Probe.All("exists") {
		if len(row) > 0 && row[0] != paths.Member && row[0] != paths.Kubeadm {
			out = append(out, row[0])
		}
	}
	return out
}

// wipe returns the command that removes the files of another Kubernetes. The command empties folders but keeps them, because they may be mount points
// or links. If kubeadm is missing, the command also unmounts the volumes of pods.
func (s *Host) wipe() string {
	first := "kubeadm reset -f"
	if _, missing := s.Probe.Row("missing", "kubeadm"); missing {
		first = `grep -o " $(readlink -f /var/lib/kubelet)/[^ ]*" /proc/mounts | sort -r | xargs -r umount`
	}
	return first + "; find -H /etc/cni/net.d /etc/kubernetes /var/lib/kubelet " + EtcdPath(s.Cluster) + " -xdev -mindepth 1 -delete"
}

// unrecorded returns a finding if a machine has lost paictl's records and may be a member or a master of this cluster. The checks of a new machine
// don't apply, because the machine's data must be kept.
func (s *Host) unrecorded() []Finding {
	if s.Touched {
		return nil
	}
	lost := "and " + paths.State + ", which identifies it for paictl, is missing"
	restore := "restore " + paths.State + " from a backup"
	ca := s.Probe.Value("ca")
	for _, o := range s.others {
		leads := o.Joined && o.ControlPlane || o.holdsControlPlane()
		if o == s || ca == "" || o.Probe.Value("ca") != ca || !leads {
			continue
		}
		remedy := restore
		if o.Joined {
			remedy += fmt.Sprintf("; or remove the machine, reinstall its operating system, and add it again: paictl node remove %s, later paictl node add %s",
				s.Hostname, s.AddAs)
		}
		return []Finding{s.fail("kubernetes", fmt.Sprintf("the machine is a member of the cluster of %s, %s", o.Hostname, lost), remedy)}
	}
	if !s.holdsControlPlane() || s.hasLeader() {
		return nil
	}
	message, remedy := "the machine has the control plane of a cluster, "+lost, restore
	if !s.has(paths.Kubeadm) {
		message += ", or another tool has created it"
		remedy = "if it is this cluster: " + restore + "; if it is a different cluster: remove the machine from layout.yaml, or if you no longer need that cluster: " + s.wipe()
	}
	return []Finding{s.fail("kubernetes", message, remedy)}
}

func (s *Host) holdsControlPlane() bool {
	return s.has("/etc/kubernetes/manifests/kube-apiserver.yaml") || s.has("/etc/kubernetes/pki/ca.key")
}

// hasLeader reports whether the run's leader is a member of a cluster. Otherwise the leader is the machine that would create a cluster.
func (s *Host) hasLeader() bool {
	return slices.ContainsFunc(s.others, func(o *Host) bool { return o.Node == s.Cluster.Leader && o.Joined })
}

// checkKubernetes fails if another Kubernetes runs on the machine or has left files there.
func checkKubernetes(s *Host) []Finding {
	traces := s.foreign()
	if len(traces) == 0 {
		return nil
	}
	all := strings.Join(traces, " ")
	remedy := "if you no longer need it: " + s.wipe()
	switch {
	case strings.Contains(all, "k3s"):
		remedy = "if you no longer need it: k3s-uninstall.sh (k3s-agent-uninstall.sh on an agent)"
	case strings.Contains(all, "rke2"):
		remedy = "if you no longer need it: rke2-uninstall.sh"
	case strings.Contains(all, "microk8s"):
		remedy = "if you no longer need it: snap remove --purge microk8s"
	case strings.Contains(all, "k0s"):
		remedy = "if you no longer need it: k0s stop && k0s reset"
	}
	shown := traces
	if len(shown) > 4 {
		shown = append(slices.Clone(shown[:4]), fmt.Sprintf("%d more", len(traces)-4))
	}
	return []Finding{s.fail("kubernetes", "another Kubernetes is on the machine: "+strings.Join(shown, ", "), remedy)}
}

// checkOwner fails if the machine is a member of another cluster.
func checkOwner(s *Host) []Finding {
	if !s.Touched || !s.has("/etc/kubernetes/kubelet.conf") {
		return nil
	}
	leave := "remove it from that cluster first, with that cluster's configuration: paictl node remove " + s.Hostname +
		"; or, if you no longer need that cluster: paictl cluster down --limit " + s.Hostname
	own := s.Probe.Value("ca")
	for _, o := range s.others {
		if o.Node != s.Cluster.Leader || !o.Joined || !s.Joined {
			continue
		}
		// Compare the CAs, which identify a cluster. The addresses of load balancers and masters may change.
		if leads := o.Probe.Value("ca"); own != "" && leads != "" {
			if own == leads {
				return nil
			}
			return []Finding{s.fail("cluster", "the machine is a member of another cluster: its certificate authority is not that of "+o.Hostname,
				"if it was off while this cluster's authorities were replaced: paictl cluster certs rotate-ca --catch-up; otherwise "+leave)}
		}
	}
	server := strings.TrimPrefix(s.Probe.Value("server"), "https://")
	host, _, err := net.SplitHostPort(server)
	if err == nil && server != s.Cluster.Endpoint && !slices.ContainsFunc(s.Cluster.controlPlane(), func(n *Node) bool { return n.HostIP == host }) {
		return []Finding{s.fail("cluster", "the machine is a member of another cluster, that of https://"+server, leave)}
	}
	return nil
}

// checkRuntime fails if another containerd runs, because paictl would replace it. It warns about other runtimes, because they use memory and change
// the firewall.
func checkRuntime(s *Host) []Finding {
	if s.Touched {
		return nil
	}
	if s.active("containerd") {
		users, stop := "", "systemctl disable --now containerd"
		if s.active("docker") {
			users, stop = ", and Docker's containers run in it", "systemctl disable --now docker.socket docker containerd"
		}
		return []Finding{s.fail("runtime", "another containerd runs on the machine"+users+"; paictl installs its own in that place",
			"if you no longer need its containers: "+stop)}
	}
	var out []Finding
	for _, unit := range []string{"docker", "crio"} {
		if s.active(unit) {
			out = append(out, s.warn("runtime", unit+" runs on the machine in addition to paictl's containerd",
				"systemctl disable --now "+unit+", unless you need it: its containers are unknown to Kubernetes and take memory and GPUs"))
		}
	}
	return out
}
