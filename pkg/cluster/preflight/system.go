package preflight

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/diagnose/checks"
)

// checkOS fails for old releases of a tested distribution, and warns about other distributions. paictl is tested on Debian 11 and Ubuntu 20.04 and
// their later releases.
func checkOS(s *Host) []Finding {
	oldest := map[string]float64{"debian": 11, "ubuntu": 20.04}
	name := s.Facts.OSName
	if name == "" {
		name = s.Facts.OS()
	}
	least, known := oldest[s.Facts.OSID]
	if !known {
		return []Finding{s.warn("os", "paictl is not tested on "+name,
			"continue if you know the system; Debian from 11 and Ubuntu from 20.04 are tested")}
	}
	have, err := strconv.ParseFloat(s.Facts.OSVersion, 64)
	if err != nil || have >= least { // Debian's testing has no version yet
		return nil
	}
	return []Finding{s.fail("os", fmt.Sprintf("%s is too old, the oldest supported is %s %v", name, s.Facts.OSID, least),
		"upgrade the system, or remove the machine from layout.yaml")}
}

// checkKernel fails if the kernel is too old. kube-proxy's nftables mode requires 5.13, and the other modes require 5.4. checkKernel also warns
// about 5.x kernels other than 5.4, 5.10 and 5.15, because kubeadm's system verification rejects them.
func checkKernel(s *Host) []Finding {
	major, minor, ok := kernelVersion(s.Facts.Kernel)
	if !ok || major > 5 {
		return nil
	}
	mode, set := s.Cluster.Kubernetes.Extra.KubeProxy["mode"].(string)
	switch {
	case major < 5 || minor < 4:
		return []Finding{s.fail("kernel", fmt.Sprintf("kernel %s is too old, the oldest supported is 5.4", s.Facts.Kernel),
			"install a later kernel of the distribution and reboot, or remove the machine from layout.yaml")}
	case (!set || mode == "nftables") && minor < 13:
		return []Finding{s.fail("kernel", fmt.Sprintf("kube-proxy's nftables mode needs kernel 5.13, the machine has %s", s.Facts.Kernel),
			"set extra.kube-proxy.mode: iptables in kubernetes-configuration.yaml, or install a later kernel and reboot")}
	case minor != 4 && minor != 10 && minor != 15 && !s.ignored("SystemVerification"):
		return []Finding{s.warn("kernel", fmt.Sprintf("kernel %s is not one of the long-term kernels that Kubernetes is tested with", s.Facts.Kernel),
			"install kernel 5.15, or 6.0 or newer, or continue: kubeadm will give the same warning")}
	}
	return nil
}

func kernelVersion(release string) (major, minor int, ok bool) {
	n, err := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return major, minor, err == nil && n == 2
}

func checkArch(s *Host) []Finding {
	if s.Cluster.Bundle == nil || s.Facts.Arch == "" {
		return nil
	}
	want := s.Cluster.Bundle.Manifest().Arch
	if s.Facts.Arch == want {
		return nil
	}
	return []Finding{s.fail("arch", fmt.Sprintf("the machine is %s, the bundle in %s is for %s", s.Facts.Arch, s.Cluster.Bundle.Dir(), want),
		"remove the machine from layout.yaml, or use a bundle that was built for "+s.Facts.Arch)}
}

func checkRoot(s *Host) []Finding {
	if s.Facts.UID == 0 {
		return nil
	}
	return []Finding{s.fail("sudo", fmt.Sprintf("scripts run as user id %d there, not as root", s.Facts.UID),
		"log in as root, or give the login user sudo: echo 'USER ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/paictl")}
}

func checkInit(s *Host) []Finding {
	if init := s.Probe.Value("init"); init != "" && init != "systemd" {
		return []Finding{s.fail("systemd", fmt.Sprintf("process 1 is %s: the kubelet and containerd run as systemd units", init),
			"boot the machine with systemd, or remove it from layout.yaml")}
	}
	return nil
}

// checkCommands returns one finding for all missing commands. The remedy installs their packages.
func checkCommands(s *Host) []Finding {
	var missing, packages []string
	for _, row := range s.Probe.All("missing") {
		for _, p := range programs() {
			if len(row) == 0 || row[0] != p.command {
				continue
			}
			missing = append(missing, p.command)
			if !slices.Contains(packages, p.debian) {
				packages = append(packages, p.debian)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	slices.Sort(packages)
	message := "programs are missing on the machine: " + strings.Join(missing, ", ")
	if missing[0] == "iptables" && len(missing) == 1 {
		message = "neither iptables nor nft is on the machine; the CNI plugins need one of them"
	}
	switch manager := s.Probe.Value("packages"); manager {
	case "apt-get":
		list := strings.Join(packages, " ")
		return []Finding{s.fail("commands", message, "apt-get install -y "+list).FixedBy("p_packages " + list)}
	case "":
		return []Finding{s.fail("commands", message, "install them")}
	default:
		return []Finding{s.fail("commands", message, manager+" install "+strings.Join(missing, " ")+" (the packages' names may differ)")}
	}
}

// checkMemory fails if the machine has too little memory. kubeadm requires 1,700 MiB on the control plane. On a worker, the kubelet, containerd,
// kube-proxy and the network's daemon need almost 700 MiB.
func checkMemory(s *Host) []Finding {
	if s.Facts.MemKiB == 0 {
		return nil
	}
	need := int64(700)
	what := "a worker"
	if s.ControlPlane {
		if s.ignored("Mem") {
			return nil
		}
		need, what = 1700, "the control plane"
	}
	if have := s.Facts.MemKiB >> 10; have < need {
		return []Finding{s.fail("memory", fmt.Sprintf("%d MiB of memory, %s needs %d MiB", have, what, need),
			"give the machine more memory, or another role in layout.yaml")}
	}
	return nil
}

func checkCPUs(s *Host) []Finding {
	if !s.ControlPlane || s.Facts.VCores == 0 || s.Facts.VCores >= 2 || s.ignored("NumCPU") {
		return nil
	}
	return []Finding{s.fail("cpu", "the machine has one processor; kubeadm requires two on the control plane",
		"give the machine a second processor, or add NumCPU to extra.kubeadm-ignore-preflight-errors in kubernetes-configuration.yaml")}
}

// checkSwap only warns about swap, because the phase base disables swap.
func checkSwap(s *Host) []Finding {
	fails, set := s.Cluster.Kubernetes.Extra.Kubelet["failSwapOn"].(bool)
	if s.Facts.SwapKiB == 0 || set && !fails {
		return nil
	}
	return []Finding{s.warn("swap", fmt.Sprintf("%s of swap are in use; the phase base switches it off, and its lines in /etc/fstab", checks.Size(s.Facts.SwapKiB)),
		"nothing to do; to keep it, set extra.kubelet.failSwapOn: false in kubernetes-configuration.yaml")}
}

// checkModules fails if the kernel doesn't have a required module. It ignores modules whose state is unknown.
func checkModules(s *Host) []Finding {
	var absent []string
	for _, row := range s.Probe.All("module") {
		if len(row) == 2 && row[1] == "absent" {
			absent = append(absent, row[0])
		}
	}
	if len(absent) == 0 {
		return nil
	}
	remedy := "apt-get install -y linux-modules-extra-$(uname -r), or boot the distribution's own kernel"
	if s.Facts.OSID == "debian" {
		remedy = "apt-get install -y linux-image-" + s.Facts.Arch + " and reboot into it"
	}
	if s.container() {
		remedy = "load them on the machine that runs this container: modprobe -a " + strings.Join(absent, " ")
	}
	return []Finding{s.fail("modules", fmt.Sprintf("kernel %s has no module %s", s.Facts.Kernel, strings.Join(absent, ", ")), remedy)}
}

// checkCgroup fails if the machine uses cgroup v1, unless the kubelet's settings allow it. The kubelet rejects cgroup v1 since 1.35. checkCgroup
// also fails if required controllers are disabled.
func checkCgroup(s *Host) []Finding {
	v1 := s.Facts.Cgroup == "v1" || s.Facts.Cgroup == "hybrid"
	k := s.Cluster.Kubernetes
	fails, set := k.Extra.Kubelet["failCgroupV1"].(bool)
	_, minor, ok := kernelVersion(strings.TrimPrefix(k.Version, "v"))
	if v1 && ok && minor >= 35 && (!set || fails) {
		return []Finding{s.fail("cgroup", fmt.Sprintf("the machine uses cgroup v1, which the kubelet of %s refuses", k.Version),
			"boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line, or set extra.kubelet.failCgroupV1: false in kubernetes-configuration.yaml")}
	}
	row, ok := s.Probe.Row("controllers")
	if !ok || len(row) == 0 {
		return nil
	}
	have := strings.Fields(row[0])
	var missing []string
	for _, c := range []string{"cpu", "cpuset", "memory", "pids"} {
		if !slices.Contains(have, c) {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []Finding{s.fail("cgroup", "the kernel has disabled the cgroup controllers "+strings.Join(missing, ", "),
		"remove cgroup_disable from the kernel's command line (a Raspberry Pi needs cgroup_enable=memory) and reboot")}
}
