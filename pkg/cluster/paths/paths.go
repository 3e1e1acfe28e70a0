// Package paths defines the paths of files that paictl writes or checks on a host.
// In: nothing. Out: paths of files and folders on real hosts.
package paths

const (
	// State is the folder with paictl's state.
	State = "/var/lib/paictl"
	// Conf is the folder with the configuration files that paictl writes for Kubernetes' programs.
	Conf = "/etc/paictl"
	// Member is a file that exists on machines that paictl has added to a cluster.
	Member = State + "/member"
	// Kubeadm is the configuration file for kubeadm on control plane machines.
	Kubeadm = Conf + "/kubeadm.yaml"
	// Bin is the folder in which paictl installs programs.
	Bin = "/usr/local/bin"
	// Containerd is the folder for images and containers, unless extra.containerd.root sets another folder.
	Containerd = "/var/lib/containerd"
	// CNIBin is the folder with the CNI plugins.
	CNIBin = "/opt/cni/bin"
	// Sysctl is the file with the kernel settings. systemd-sysctl reads the files of all folders in the order of their names, and the last value of a
	// setting wins. The name must sort after 99-sysctl.conf, a link to /etc/sysctl.conf, because hardened images disable forwarding in that file.
	Sysctl = "/etc/sysctl.d/99-zz-paictl.conf"
)
