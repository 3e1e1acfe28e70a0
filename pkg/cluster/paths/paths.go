// Package paths holds the paths of files that paictl keeps or checks on a host.
// In: nothing. Out: names of files and folders on real hosts.
package paths

const (
	// State is the folder of paictl's state on a host.
	State = "/var/lib/paictl"
	// Conf is the folder of the configuration files that paictl writes for Kubernetes' programs.
	Conf = "/etc/paictl"
	// Member is a file that exists on machines that paictl has added to a cluster.
	Member = State + "/member"
	// Kubeadm is the configuration that paictl gives to kubeadm on the control plane.
	Kubeadm = Conf + "/kubeadm.yaml"
	// Bin is the folder in which paictl installs programs.
	Bin = "/usr/local/bin"
	// Containerd is the folder of images and containers, unless extra.containerd.root names another folder.
	Containerd = "/var/lib/containerd"
	// CNIBin is the folder of the CNI plugins.
	CNIBin = "/opt/cni/bin"
	// Sysctl sorts after the files of distributions and images: systemd-sysctl reads all files in the order of their names, regardless of the
	// folder, and the last value wins. 99-sysctl.conf is a link to /etc/sysctl.conf, in which hardened images disable forwarding.
	Sysctl = "/etc/sysctl.d/99-zz-paictl.conf"
)
