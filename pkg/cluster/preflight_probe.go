package cluster

import (
	_ "embed"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed scripts/preflight.sh
var preflightScript string

// memberFile is there on machines that paictl has taken into a cluster.
const memberFile = stateDir + "/member"

// listener is a port that a program of ours listens on.
type listener struct {
	port    int
	program string // as the kernel names it: 15 characters at most
	purpose string
}

// listeners are the ports that have to be free on a node, or held by what belongs there.
func listeners(s *Spec, n *Node) []listener {
	out := []listener{
		{10250, "kubelet", "the kubelet"},
		{10256, "kube-proxy", "kube-proxy"},
	}
	if !n.ControlPlane {
		return out
	}
	return append(out,
		listener{s.Config.Kubernetes.Kubernetes.APIServerPort, "kube-apiserver", "the API server"},
		listener{10257, "kube-controller", "the controller manager"},
		listener{10259, "kube-scheduler", "the scheduler"},
		listener{2379, "etcd", "etcd's clients"},
		listener{2380, "etcd", "etcd's peers"},
	)
}

// program is a command that paictl's scripts, kubeadm or the kubelet call on a host, and
// the Debian package that has it.
type program struct{ command, debian string }

// programs are those that a host must have. Those of kubeadm and the kubelet are what
// kubeadm 1.36 itself checks (losetup, mount, cp) and what its unit files call.
func programs() []program {
	return []program{
		{"awk", "mawk"}, {"base64", "coreutils"}, {"cp", "coreutils"}, {"df", "coreutils"},
		{"flock", "util-linux"}, {"grep", "grep"}, {"ip", "iproute2"}, {"iptables", "iptables"},
		{"losetup", "mount"}, {"modprobe", "kmod"}, {"mount", "mount"}, {"sed", "sed"},
		{"sha256sum", "coreutils"}, {"stat", "coreutils"}, {"swapoff", "mount"},
		{"systemctl", "systemd"}, {"timeout", "coreutils"},
	}
}

// kernelModules are those that the cluster's traffic and containers need on a node.
func kernelModules(s *Spec) []string {
	out := []string{"overlay", "br_netfilter", "nf_tables"}
	if s.Config.Kubernetes.Kubernetes.NetworkPlugin == "flannel" {
		out = append(out, "vxlan")
	}
	return out
}

// diskPaths are the folders in which a node's disk space is used, see disk.go.
func diskPaths(s *Spec, n *Node) []string {
	out := []string{"/etc", binDir, cniBinDir, stateDir, "/var/lib/containerd", "/var/lib/kubelet", "/var/log"}
	if n.ControlPlane {
		out = append(out, etcdPath(s))
	}
	return out
}

func etcdPath(s *Spec) string {
	if p := s.Config.Kubernetes.Kubernetes.EtcdDataPath; p != "" {
		return path.Clean(p)
	}
	return "/var/lib/etcd"
}

// kubernetesFiles tell of a Kubernetes on the machine, whoever made it.
func kubernetesFiles() []string {
	return []string{
		"/etc/kubernetes/admin.conf", "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/bootstrap-kubelet.conf",
		"/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/ca.key", "/var/lib/kubelet/config.yaml", "/var/lib/etcd/member",
		"/etc/rancher/k3s", "/var/lib/rancher/k3s", "/etc/rancher/rke2", "/var/lib/k0s", "/var/snap/microk8s",
		memberFile, kubeadmConf,
	}
}

// reachTargets are what a machine must be able to open a connection to before it joins:
// the API on every other control plane machine, and from there etcd's peers.
func reachTargets(s *Spec, n *Node) []string {
	var out []string
	port := strconv.Itoa(s.Config.Kubernetes.Kubernetes.APIServerPort)
	for _, m := range s.ControlPlane() {
		if m.HostIP == n.HostIP || strings.Contains(m.HostIP, ":") {
			continue
		}
		out = append(out, net.JoinHostPort(m.HostIP, port))
		if n.ControlPlane {
			out = append(out, net.JoinHostPort(m.HostIP, "2380"))
		}
	}
	if e := s.endpoint(); !slices.Contains(out, e) && !strings.HasPrefix(e, n.HostIP+":") && !strings.HasPrefix(e, "[") {
		out = append(out, e)
	}
	return out
}

// preflightProbe returns the read-only shell that asks a host what the facts leave open.
func preflightProbe(s *Spec, n *Node) string {
	var ports, commands []string
	for _, l := range listeners(s, n) {
		ports = append(ports, fmt.Sprintf("%04X=%d", l.port, l.port))
	}
	for _, p := range programs() {
		if p.command != "iptables" { // nft will do as well
			commands = append(commands, p.command)
		}
	}
	var b strings.Builder
	for _, v := range []struct {
		name  string
		words []string
	}{
		{"want_ports", ports},
		{"want_paths", diskPaths(s, n)},
		{"want_modules", kernelModules(s)},
		{"want_commands", commands},
		{"want_files", kubernetesFiles()},
		{"reach_targets", reachTargets(s, n)},
	} {
		fmt.Fprintf(&b, "%s=%s\n", v.name, quote(strings.Join(v.words, " ")))
	}
	return b.String() + preflightScript
}
