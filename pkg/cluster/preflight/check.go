package preflight

// Check is one check of preflight.
type Check struct {
	// ID is the name of the check. The names of its findings are equal or more specific.
	ID string
	// Examines describes what the check examines.
	Examines string
	// Joining means that the check determines whether a machine can join. Such a check skips members.
	Joining bool
	// Host checks one host. All checks all responding hosts together. Exactly one of the two functions is set.
	Host func(*Host) []Finding
	All  func([]*Host) []Finding
}

// Checks returns all checks.
func Checks() []Check {
	return []Check{
		{ID: "os", Examines: "the distribution and its release", Joining: true, Host: checkOS},
		{ID: "kernel", Examines: "the kernel's version", Joining: true, Host: checkKernel},
		{ID: "arch", Examines: "the processor's architecture, compared with the bundle's", Host: checkArch},
		{ID: "sudo", Examines: "whether scripts run as root", Host: checkRoot},
		{ID: "systemd", Examines: "whether process 1 is systemd", Host: checkInit},
		{ID: "commands", Examines: "programs that paictl, kubeadm and the kubelet call", Host: checkCommands},
		{ID: "hostname", Examines: "the machine's own name, compared with the layout's", Host: checkHostname},
		{ID: "address", Examines: "addresses of interfaces, compared with the layout's", Host: checkAddress},
		{ID: "machine-id", Examines: "whether the machine has an id", Host: checkMachineID},
		{ID: "unique", Examines: "the same machine listed twice, copied machines, shared names", All: checkUnique},
		{ID: "clock", Examines: "differences between clocks", All: checkClocks},
		{ID: "time-source", Examines: "what synchronizes the clock", Host: checkTimeSource},
		{ID: "memory", Examines: "the size of the memory", Joining: true, Host: checkMemory},
		{ID: "cpu", Examines: "the number of processors", Joining: true, Host: checkCPUs},
		{ID: "swap", Examines: "whether swap is in use", Joining: true, Host: checkSwap},
		{ID: "disk", Examines: "room and inodes in file systems", Host: checkDisk},
		{ID: "overlay", Examines: "whether the file system of containers can carry overlays", Joining: true, Host: checkOverlay},
		{ID: "link", Examines: "links to folders that don't exist", Host: checkLinks},
		{ID: "mount", Examines: "folders that are read-only or mounted noexec", Host: checkMounts},
		{ID: "modules", Examines: "modules of the kernel", Host: checkModules},
		{ID: "cgroup", Examines: "the version and the controllers of cgroups", Host: checkCgroup},
		{ID: "sysctl", Examines: "kernel settings that would change at the next boot", Host: checkSysctl},
		{ID: "etc-hosts", Examines: "whether cloud-init rewrites /etc/hosts", Host: checkEtcHosts},
		{ID: "dns", Examines: "the machine's name servers and search domains, compared with the limits of pods", Host: checkDNS},
		{ID: "port", Examines: "programs that listen on the cluster's ports", Host: checkPorts},
		{ID: "network", Examines: "addresses and routes within the networks of pods and services", Joining: true, Host: checkNetworks},
		{ID: CheckVIP, Examines: "whether the API's virtual address is in a network of the master, and free", Host: checkVIP},
		{ID: "reach", Examines: "whether the machine reaches the control plane", Joining: true, Host: checkReach},
		{ID: "security", Examines: "firewalls and SELinux", Joining: true, Host: checkSecurity},
		{ID: "runtime", Examines: "other container runtimes", Joining: true, Host: checkRuntime},
		{ID: "kubernetes", Examines: "a Kubernetes that paictl did not install", Joining: true, Host: checkKubernetes},
		{ID: "cluster", Examines: "which cluster a member belongs to", Host: checkOwner},
		{ID: "version", Examines: "the version of Kubernetes on members, compared with the bundle's", All: checkVersions},
		{ID: "gpu", Examines: "the GPUs, compared with the layout's", Host: checkGPU},
		{ID: "gpu-driver", Examines: "what prevents the installation of NVIDIA's driver", Host: checkDriver},
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
