// Package paths holds the paths of the files on a host that paictl keeps there or looks for.
// In: nothing. Out: names of files and folders, as they are on real hosts.
package paths

const (
	// State is the folder of paictl's state on a host.
	State = "/var/lib/paictl"
	// Conf is the folder of the files that paictl gives to Kubernetes' programs.
	Conf = "/etc/paictl"
	// Member exists on machines that paictl has added to a cluster.
	Member = State + "/member"
	// Kubeadm is the configuration that paictl gives to kubeadm on the control plane.
	Kubeadm = Conf + "/kubeadm.yaml"
	// Bin is the folder of programs.
	Bin = "/usr/local/bin"
	// Containerd is the folder of images and containers, unless extra.containerd.root names another one.
	Containerd = "/var/lib/containerd"
	// CNIBin is the folder of the plugins of the pod network.
	CNIBin = "/opt/cni/bin"
	// Sysctl sorts behind the files of distributions and images: systemd-sysctl reads all files in
	// the order of their names, regardless of their folder, and the last value counts.
	// 99-sysctl.conf points at /etc/sysctl.conf, in which hardened images switch forwarding off.
	Sysctl = "/etc/sysctl.d/99-zz-paictl.conf"
)
