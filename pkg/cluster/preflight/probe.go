package preflight

import (
	_ "embed"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/diagnose/checks"
)

//go:embed scripts/probe.sh
var probeScript string

// Port is a port on which one of the cluster's programs listens.
type Port struct {
	Number  int
	Program string // the kernel's name for it: 15 characters at most
	Purpose string
}

// Ports returns the ports on a node that only the cluster's own programs may use.
func Ports(c *Cluster, n *Node) []Port {
	out := []Port{
		{10250, "kubelet", "the kubelet"},
		{10256, "kube-proxy", "kube-proxy"},
	}
	if c.Endpoint == config.LocalAPI() {
		out = append(out, Port{config.LocalAPIPort, "pai-api-proxy", "the machine's way to the API"})
	}
	if !n.ControlPlane {
		return out
	}
	return append(out,
		Port{c.Kubernetes.APIServerPort, "kube-apiserver", "the API server"},
		Port{10257, "kube-controller", "the controller manager"},
		Port{10259, "kube-scheduler", "the scheduler"},
		Port{2379, "etcd", "etcd's clients"},
		Port{2380, "etcd", "etcd's peers"},
	)
}

// program is a command that paictl's scripts, kubeadm or the kubelet call on a host. debian is the package that contains the command.
type program struct{ command, debian string }

// programs returns the commands that must exist on a host. kubeadm 1.36 itself requires losetup, mount and cp. The unit files of kubeadm and the
// kubelet call other commands.
func programs() []program {
	return []program{
		{"awk", "mawk"}, {"base64", "coreutils"}, {"cp", "coreutils"}, {"df", "coreutils"},
		{"flock", "util-linux"}, {"grep", "grep"}, {"ip", "iproute2"}, {"iptables", "iptables"},
		{"losetup", "mount"}, {"modprobe", "kmod"}, {"mount", "mount"}, {"sed", "sed"},
		{"sha256sum", "coreutils"}, {"stat", "coreutils"}, {"swapoff", "mount"},
		{"systemctl", "systemd"}, {"timeout", "coreutils"},
	}
}

// kernelModules returns the kernel modules that a node needs for the cluster's network and for containers.
func kernelModules(c *Cluster) []string {
	out := []string{"overlay", "br_netfilter", "nf_tables"}
	if c.Kubernetes.NetworkPlugin == "flannel" {
		out = append(out, "vxlan")
	}
	return out
}

// Folders returns the folders on a node that contain the cluster's files; see disk.go.
func Folders(c *Cluster, n *Node) []string {
	out := []string{"/etc", "/etc/kubernetes", "/etc/cni/net.d", paths.Bin, paths.CNIBin, paths.State, c.Store(), "/var/lib/kubelet", "/var/log"}
	if n.ControlPlane {
		out = append(out, EtcdPath(c))
	}
	return out
}

// Store returns the folder in which containerd keeps images and containers.
func (c *Cluster) Store() string {
	if p, _ := c.Kubernetes.Extra.Containerd["root"].(string); p != "" {
		return path.Clean(p)
	}
	return paths.Containerd
}

// snapshotter returns the name of containerd's snapshotter, the plugin that assembles image layers.
func (c *Cluster) snapshotter() string {
	plugins, _ := c.Kubernetes.Extra.Containerd["plugins"].(map[string]any)
	images, _ := plugins["io.containerd.cri.v1.images"].(map[string]any)
	if name, _ := images["snapshotter"].(string); name != "" {
		return name
	}
	return "overlayfs"
}

// EtcdPath returns the folder with etcd's data.
func EtcdPath(c *Cluster) string {
	if p := c.Kubernetes.EtcdDataPath; p != "" {
		return path.Clean(p)
	}
	return "/var/lib/etcd"
}

// kubernetesFiles returns paths that exist only if Kubernetes is installed. It includes paths of other installers.
func kubernetesFiles(c *Cluster) []string {
	return []string{
		"/etc/kubernetes/admin.conf", "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/bootstrap-kubelet.conf",
		"/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/ca.key", "/var/lib/kubelet/config.yaml", EtcdPath(c) + "/member",
		"/etc/rancher/k3s", "/var/lib/rancher/k3s", "/etc/rancher/rke2", "/var/lib/k0s", "/var/snap/microk8s",
		paths.Member, paths.Kubeadm,
	}
}

// reachTargets returns the HOST:PORTs that a machine must be able to reach before it joins: the API's endpoint and the API servers of other
// masters. A master must also be able to reach the other etcd members.
func reachTargets(c *Cluster, n *Node) []string {
	var out []string
	port := strconv.Itoa(c.Kubernetes.APIServerPort)
	for _, m := range c.controlPlane() {
		if m.HostIP == n.HostIP || strings.Contains(m.HostIP, ":") {
			continue
		}
		out = append(out, net.JoinHostPort(m.HostIP, port))
		if n.ControlPlane {
			out = append(out, net.JoinHostPort(m.HostIP, "2380"))
		}
	}
	if e := c.Endpoint; !slices.Contains(out, e) && !strings.HasPrefix(e, n.HostIP+":") && !strings.HasPrefix(e, "[") {
		out = append(out, e)
	}
	return out
}

// Probe returns read-only shell code that prints the part of a host's state that the facts don't contain. Its output becomes Host.Probe.
func Probe(c *Cluster, n *Node) string {
	var ports, commands []string
	for _, l := range Ports(c, n) {
		ports = append(ports, fmt.Sprintf("%04X=%d", l.Number, l.Number))
	}
	for _, p := range programs() {
		if p.command != "iptables" { // nft is enough
			commands = append(commands, p.command)
		}
	}
	commands = append(commands, "kubeadm") // only a remedy depends on kubeadm
	var b strings.Builder
	for _, v := range []struct {
		name  string
		words []string
	}{
		{"want_ports", ports},
		{"want_paths", Folders(c, n)},
		{"want_store", []string{c.Store()}},
		{"want_modules", kernelModules(c)},
		{"want_commands", commands},
		{"want_files", kubernetesFiles(c)},
		{"time_services", checks.TimeServices()},
		{"reach_targets", reachTargets(c, n)},
	} {
		fmt.Fprintf(&b, "%s=%s\n", v.name, shell.Quote(strings.Join(v.words, " ")))
	}
	return b.String() + checks.FilesystemsScript + probeScript
}
