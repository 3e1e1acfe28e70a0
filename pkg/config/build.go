package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// build creates a configuration from a quick-start file and the facts of the machines by address. facts is nil if no machines were queried. outDir is
// the folder for the configuration.
func (q *QuickStart) build(facts map[string]layout.Facts, outDir string) (*Cluster, Findings) {
	r := &reporter{file: q.doc.File, doc: q.doc}
	portable := func(p string) string { return portablePath(p, q.dir, outDir) }
	c := &Cluster{Dir: outDir, Roles: DefaultRoles(), quick: q}
	c.Layout = layout.Layout{APIVersion: APIVersion, Kind: layout.Kind, SSH: layout.SSH{
		Username: q.SSHUsername, Password: q.SSHPassword, KeyFile: portable(q.SSHKeyFile), SecretName: q.SSHSecretName,
		Port: q.SSHPort, JumpHost: q.SSHJumpHost, KnownHosts: portable(q.SSHKnownHosts),
	}}
	q.addMachines(c, facts, portable)
	q.checkNames(r, facts, c.Layout.MachineList)
	k := &c.Kubernetes.Kubernetes
	k.ClusterName = q.ClusterName
	k.ClusterDNS = q.dnsServers(facts, c)
	k.LoadBalanceIP = q.LoadBalanceIP
	k.Bundle = portable(q.Bundle)
	k.Proxy = q.Proxy
	k.Extra = q.Extra
	c.Services.Cluster.Common.ClusterID = q.ClusterID
	c.Services.Sections = q.sections()
	q.chooseNetworks(r, c)
	c.fillDefaults()
	return c, r.findings
}

// sections returns the sections of services-configuration.yaml. It keeps empty sections, because even an empty section starts its service.
func (q *QuickStart) sections() map[string]any {
	if len(q.Services) == 0 {
		return nil
	}
	out := make(map[string]any, len(q.Services))
	for name, settings := range q.Services {
		if settings == nil {
			settings = map[string]any{}
		}
		out[name] = settings
	}
	return out
}

// nameImages adds settings with the names of images to the sections of the quick-start file. It doesn't override settings in the file.
func (q *QuickStart) nameImages(sections map[string]map[string]any) {
	for name, settings := range sections {
		section := q.Services[name]
		for key, value := range settings {
			if _, has := section[key]; has {
				continue
			}
			if section == nil {
				section = map[string]any{}
			}
			section[key] = value
		}
		if q.Services == nil {
			q.Services = map[string]map[string]any{}
		}
		q.Services[name] = section
	}
}

// portablePath converts a path relative to the quick-start file to a path relative to the generated folder.
func portablePath(p, from, to string) string {
	if p == "" || filepath.IsAbs(p) || p == "~" || strings.HasPrefix(p, "~/") {
		return p
	}
	abs, err1 := filepath.Abs(filepath.Join(from, p))
	base, err2 := filepath.Abs(to)
	if err1 != nil || err2 != nil {
		return filepath.Join(from, p)
	}
	rel, err := filepath.Rel(base, abs)
	if err != nil {
		return abs
	}
	return rel
}

func (q *QuickStart) addMachines(c *Cluster, facts map[string]layout.Facts, portable func(string) string) {
	roles := q.rolesOf()
	skus, assigned := layout.SKUs(facts)
	c.Layout.MachineSKU = skus
	for i, m := range q.Machines {
		sku, ok := assigned[m.HostIP]
		if !ok {
			sku = unknownSKU
			skus[sku] = layout.SKU{Mem: "", OS: "", Discovered: false}
		}
		c.Layout.MachineList = append(c.Layout.MachineList, layout.Machine{
			Hostname: q.hostname(m, facts), HostIP: m.HostIP, SKU: sku, Roles: roles[i],
			Labels: m.Labels, Taints: m.Taints, SSH: m.sshOf(portable),
		})
	}
	q.applyGPU(c)
}

const unknownSKU = "unknown"

// hostname returns the host name of a machine. It prefers the name in the quick-start file, then the name that the machine reports in lower case, and
// then a name made from the address.
func (q *QuickStart) hostname(m QuickMachine, facts map[string]layout.Facts) string {
	if m.Hostname != "" {
		return m.Hostname
	}
	if f, ok := facts[m.HostIP]; ok {
		return strings.ToLower(f.Hostname)
	}
	return nameFromAddress(m.HostIP)
}

func nameFromAddress(ip string) string { return "ip-" + strings.ReplaceAll(ip, ".", "-") }

// rolesOf returns the roles of each machine. A machine with roles in the file keeps them. Any other machine is a master if it is listed under
// masters, and otherwise a worker. If the file contains no master, the first machine without roles becomes the master. If no worker exists, masters
// without roles in the file are also workers, so that a single machine is a whole cluster.
func (q *QuickStart) rolesOf() [][]string {
	out := make([][]string, len(q.Machines))
	masters := map[int]bool{}
	for _, name := range q.Masters {
		if i := q.machine(name); i >= 0 {
			masters[i] = true
		}
	}
	for i, m := range q.Machines {
		if slices.Contains(m.Roles, layout.RoleMaster) {
			masters[i] = true
		}
	}
	if len(masters) == 0 {
		// Like OpenPAI, choose the first machine, but skip machines with roles in the file.
		if i := slices.IndexFunc(q.Machines, func(m QuickMachine) bool { return len(m.Roles) == 0 }); i >= 0 {
			masters[i] = true
		}
	}
	worker := false
	for i, m := range q.Machines {
		switch {
		case len(m.Roles) > 0:
			out[i] = slices.Clone(m.Roles)
		case masters[i]:
			out[i] = []string{layout.RoleMaster}
		default:
			out[i] = []string{layout.RoleWorker}
		}
		worker = worker || slices.Contains(out[i], layout.RoleWorker)
	}
	for i := range out {
		if !worker && len(q.Machines[i].Roles) == 0 {
			out[i] = append(out[i], layout.RoleWorker)
		}
	}
	return out
}

// applyGPU removes or simulates GPUs. A machine that runs jobs and a machine that doesn't may have the same SKU. Simulation splits such SKUs.
func (q *QuickStart) applyGPU(c *Cluster) {
	mode := cmp.Or(q.GPU, GPUAuto)
	if mode == GPUAuto {
		return
	}
	skus := map[string]layout.SKU{}
	for i := range c.Layout.MachineList {
		m := &c.Layout.MachineList[i]
		s, name := c.Layout.MachineSKU[m.SKU], m.SKU
		s.GPU = nil
		if mode == GPUSimulate && m.HasRole(layout.RoleWorker) {
			s.GPU = q.simulated()
			name = "sim-" + strings.ToLower(fmt.Sprintf("%dx-%s", s.GPU.Count, s.GPU.Type)) + "-" + m.SKU
		}
		skus[name] = s
		m.SKU = name
	}
	c.Layout.MachineSKU = skus
}

// checkNames reports machines with the same host name.
func (q *QuickStart) checkNames(r *reporter, facts map[string]layout.Facts, machines []layout.Machine) {
	byName, byID := map[string]int{}, map[string]int{}
	for i, m := range machines {
		p := fieldPath{"machines", i}
		if message, remedy := badHostname(m.Hostname); message != "" && q.Machines[i].Hostname == "" {
			r.fail(p, "quick-start/hostname", m.HostIP+": "+message, remedy+"; or set hostname for the machine in the quick-start file")
		}
		if j, ok := byName[m.Hostname]; ok {
			if q.Machines[i].Hostname == "" || q.Machines[j].Hostname == "" {
				r.fail(p, "layout/duplicate-hostname", fmt.Sprintf("%s and %s are both called %q", machines[j].HostIP, m.HostIP, m.Hostname),
					"give each machine a different name, for instance with: hostnamectl set-hostname; or set hostname in the quick-start file; one machine may also be listed by two of its addresses")
			}
		} else {
			byName[m.Hostname] = i
		}
		id := facts[m.HostIP].MachineID
		if j, ok := byID[id]; ok && id != "" {
			r.warn(p, "layout/duplicate-machine-id", fmt.Sprintf("%s and %s have the same machine id %s", machines[j].HostIP, m.HostIP, id),
				"machines cloned from one image need: rm /etc/machine-id; systemd-machine-id-setup (cluster up --fix does it)")
		} else {
			byID[id] = i
		}
	}
}

// dnsServers returns the DNS servers in the file. If the file contains none, it returns the servers of the first machine that reports DNS servers,
// beginning with the control plane.
func (q *QuickStart) dnsServers(facts map[string]layout.Facts, c *Cluster) []string {
	if len(q.DNS) > 0 {
		return q.DNS
	}
	for _, m := range append(c.ControlPlane(), c.Layout.MachineList...) {
		if servers := facts[m.HostIP].DNS; len(servers) > 0 {
			return servers
		}
	}
	return []string{}
}

// chooseNetworks sets the ranges of the networks. If the file contains no range, it chooses the first usual range that is free and large enough.
func (q *QuickStart) chooseNetworks(r *reporter, c *Cluster) {
	k := &c.Kubernetes.Kubernetes
	busy := slices.Clone(k.ClusterDNS)
	for _, m := range c.Layout.MachineList {
		busy = append(busy, m.HostIP)
	}
	addresses := parseAll(busy)
	k.ServiceClusterIPRange, k.PodCIDR = q.ServiceClusterIPRange, q.PodCIDR
	if k.ServiceClusterIPRange == "" {
		k.ServiceClusterIPRange = freeRange(serviceRanges(), addresses, k.PodCIDR, 0)
		if k.ServiceClusterIPRange == "" {
			r.fail(fieldPath{"service-cluster-ip-range"}, "network/no-range", "none of the usual service ranges is free", "set service-cluster-ip-range to a range that is not used in your network")
		}
	}
	if k.PodCIDR == "" {
		k.PodCIDR = freeRange(podRanges(), addresses, k.ServiceClusterIPRange, len(q.Machines))
		if k.PodCIDR == "" {
			r.fail(fieldPath{"pod-cidr"}, "network/no-range", fmt.Sprintf("none of the usual pod ranges is free and large enough for %s", plural.Of(len(q.Machines), "machine")), "set pod-cidr to a range that is not used in your network, with a /24 for each machine")
		}
	}
}

func serviceRanges() []string {
	return []string{defaultServiceRange, "10.96.0.0/16", "172.30.0.0/16", "192.168.192.0/18"}
}

func podRanges() []string {
	return []string{defaultPodCIDR, "10.224.0.0/12", "10.192.0.0/11", "172.20.0.0/14", "100.64.0.0/10", "10.0.0.0/9"}
}

// freeRange returns the first range that contains none of the addresses, doesn't overlap other, and has enough addresses for the machines. It
// returns "" if no range fits.
func freeRange(ranges []string, addresses []netip.Addr, other string, machines int) string {
	for _, s := range ranges {
		p := netip.MustParsePrefix(s)
		// Reserve addresses for a quarter more machines.
		if !overlap(s, other) && !slices.ContainsFunc(addresses, p.Contains) && (machines == 0 || nodeBlocks(s) >= machines+machines/4) {
			return s
		}
	}
	return ""
}

func parseAll(addresses []string) []netip.Addr {
	out := make([]netip.Addr, 0, len(addresses))
	for _, s := range addresses {
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, a)
		}
	}
	return out
}

func skuNames(l layout.Layout) []string { return slices.Sorted(maps.Keys(l.MachineSKU)) }
