package preflight

// Check is one check of preflight.
type Check struct {
	// ID is the name of the check. The names of its findings are equal or more specific.
	ID string
	// Looks describes what the check examines.
	Looks string
	// Joining means that the check determines whether a machine can join. Such a check skips members.
	Joining bool
	// Host checks one host. All checks all responding hosts together. Exactly one of the two functions is set.
	Host func(*Host) []Finding
	All  func([]*Host) []Finding
}

// Checks returns all checks.
func Checks() []Check {
	return []Check{
		{ID: "os", Looks: "the distribution and its release", Joining: true, Host: checkOS},
		{ID: "kernel", Looks: "the kernel's version", Joining: true, Host: checkKernel},
		{ID: "arch", Looks: "the processor's architecture, compared with the bundle's", Host: checkArch},
		{ID: "sudo", Looks: "whether scripts run as root", Host: checkRoot},
		{ID: "systemd", Looks: "whether process 1 is systemd", Host: checkInit},
		{ID: "commands", Looks: "programs that paictl, kubeadm and the kubelet call", Host: checkCommands},
		{ID: "hostname", Looks: "the machine's own name, compared with the layout's", Host: checkHostname},
		{ID: "address", Looks: "addresses of interfaces, compared with the layout's", Host: checkAddress},
		{ID: "machine-id", Looks: "whether the machine has an id", Host: checkMachineID},
		{ID: "unique", Looks: "the same machine listed twice, copied machines, shared names", All: checkUnique},
		{ID: "clock", Looks: "differences between clocks", All: checkClocks},
		{ID: "time-source", Looks: "what synchronizes the clock", Host: checkTimeSource},
		{ID: "memory", Looks: "the size of the memory", Joining: true, Host: checkMemory},
		{ID: "cpu", Looks: "the number of processors", Joining: true, Host: checkCPUs},
		{ID: "swap", Looks: "whether swap is in use", Joining: true, Host: checkSwap},
		{ID: "disk", Looks: "room and inodes in file systems", Host: checkDisk},
		{ID: "overlay", Looks: "whether the file system of containers can carry overlays", Joining: true, Host: checkOverlay},
		{ID: "link", Looks: "links to folders that don't exist", Host: checkLinks},
		{ID: "mount", Looks: "folders that are read-only or mounted noexec", Host: checkMounts},
		{ID: "modules", Looks: "modules of the kernel", Host: checkModules},
		{ID: "cgroup", Looks: "the version and the controllers of cgroups", Host: checkCgroup},
		{ID: "sysctl", Looks: "kernel settings that would change at the next boot", Host: checkSysctl},
		{ID: "etc-hosts", Looks: "whether cloud-init rewrites /etc/hosts", Host: checkEtcHosts},
		{ID: "dns", Looks: "the machine's name servers and search domains, compared with the limits of pods", Host: checkDNS},
		{ID: "port", Looks: "programs that listen on the cluster's ports", Host: checkPorts},
		{ID: "network", Looks: "addresses and routes within the networks of pods and services", Joining: true, Host: checkNetworks},
		{ID: CheckVIP, Looks: "whether the API's virtual address is in a network of the master, and free", Host: checkVIP},
		{ID: "reach", Looks: "whether the machine reaches the control plane", Joining: true, Host: checkReach},
		{ID: "security", Looks: "firewalls and SELinux", Joining: true, Host: checkSecurity},
		{ID: "runtime", Looks: "other container runtimes", Joining: true, Host: checkRuntime},
		{ID: "kubernetes", Looks: "a Kubernetes that paictl did not install", Joining: true, Host: checkKubernetes},
		{ID: "cluster", Looks: "which cluster a member belongs to", Host: checkOwner},
		{ID: "version", Looks: "the version of Kubernetes on members, compared with the bundle's", All: checkVersions},
		{ID: "gpu", Looks: "the GPUs, compared with the layout's", Host: checkGPU},
		{ID: "gpu-driver", Looks: "what prevents the installation of NVIDIA's driver", Host: checkDriver},
	}
}

// Run checks hosts before a run changes them. It first checks each host, and then all hosts together. Findings that don't prevent the run become
// warnings. The findings are in the order of Sort.
func Run(c *Cluster, hosts []*Host) []Finding {
	findings := Examine(c, hosts)
	for i := range findings {
		if findings[i].Advice {
			findings[i].Severity = SeverityWarning
		}
	}
	c.Sort(findings)
	return findings
}

// Examine performs the same checks as Run, with severities for a running cluster.
func Examine(c *Cluster, hosts []*Host) []Finding {
	at := map[string]*Host{}
	for _, s := range hosts {
		at[s.HostIP] = s
		s.others, s.at = hosts, at
	}
	findings := []Finding{}
	lost := map[*Host]bool{}
	for _, s := range hosts {
		if s.Selected && !s.Joined {
			own := s.unrecorded()
			lost[s] = own != nil
			findings = append(findings, own...)
		}
	}
	for _, check := range Checks() {
		found := []Finding{}
		if check.All != nil {
			found = check.All(hosts)
		}
		for _, s := range hosts {
			if check.Host == nil || !s.Selected || check.Joining && (s.Joined || lost[s]) {
				continue
			}
			for _, f := range check.Host(s) {
				f.Host = s.Hostname
				found = append(found, f)
			}
		}
		for _, f := range found {
			f.By = check.ID
			findings = append(findings, f)
		}
	}
	c.Sort(findings)
	return findings
}
