package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/layout"
)

// check applies the rules for the quick-start file. Validate applies the rules for the generated files, for example about overlapping networks.
func (q *QuickStart) check() Findings {
	r := &reporter{file: q.doc.File, doc: q.doc}
	if len(q.Machines) == 0 {
		r.fail(fieldPath{"machines"}, "quick-start/no-machines", "there are no machines", "list at least one address, such as - 10.0.0.1")
	}
	q.checkMachines(r)
	q.checkMasters(r)
	q.checkSSH(r)
	q.checkNetwork(r)
	q.checkGPU(r)
	q.checkServices(r)
	return r.findings
}

func (q *QuickStart) checkMachines(r *reporter) {
	byIP, byName := map[string]int{}, map[string]int{}
	for i, m := range q.Machines {
		p := fieldPath{"machines", i}
		ip := p
		if !m.plain {
			ip = p.With("hostip")
		}
		if m.HostIP == "" {
			r.fail(ip, "quick-start/hostip", "the machine has no address", "add hostip: 10.0.0.1")
			continue
		}
		r.failIf(badIPv4(m.HostIP), ip, "quick-start/hostip", "write the machine's IPv4 address; names go to hostname")
		if j, ok := byIP[m.HostIP]; ok {
			r.fail(ip, "quick-start/duplicate-hostip", fmt.Sprintf("%s is already machines[%d]%s", m.HostIP, j, lineOf(q.doc, fieldPath{"machines", j})), "remove one of the two")
		} else {
			byIP[m.HostIP] = i
		}
		if m.Hostname != "" {
			message, remedy := badHostname(m.Hostname)
			r.failIf(message, p.With("hostname"), "quick-start/hostname", remedy)
			if j, ok := byName[m.Hostname]; ok {
				r.fail(p.With("hostname"), "quick-start/duplicate-hostname",
					fmt.Sprintf("%s is already the name of machines[%d]%s", m.Hostname, j, lineOf(q.doc, fieldPath{"machines", j})), "give each machine a different name")
			} else {
				byName[m.Hostname] = i
			}
		}
		checkLabelsAndTaints(r, p, m.Labels, m.Taints)
		checkRoles(r, p.With("roles"), m.Roles, DefaultRoles().Roles)
		if q.doc.Has(p.With("ssh-port")...) {
			r.failIf(badPort(m.SSHPort), p.With("ssh-port"), "quick-start/ssh-port", "the usual port is 22")
		}
		if m.SSHJumpHost != "" {
			r.failIf(badJumpHosts(m.SSHJumpHost), p.With("ssh-jump-host"), "quick-start/ssh-jump-host", "write user@gateway:22; several, outermost first, separated by commas")
		}
	}
	checkForeignNames(r, "machines", "quick-start/hostname", len(q.Machines), func(i int) (string, string) { return q.Machines[i].Hostname, q.Machines[i].HostIP })
}

// checkForeignNames reports host names that are addresses of other machines, because commands accept both names and addresses.
func checkForeignNames(r *reporter, list, rule string, n int, machine func(i int) (name, address string)) {
	at := map[string]int{}
	for i := range n {
		_, address := machine(i)
		at[address] = i
	}
	for i := range n {
		name, _ := machine(i)
		if j, ok := at[name]; ok && j != i && name != "" {
			r.fail(fieldPath{list, i, "hostname"}, rule, fmt.Sprintf("%s is the address of %s[%d]%s", name, list, j, lineOf(r.doc, fieldPath{list, j})), "give the machine another name")
		}
	}
}

func lineOf(doc *strictyaml.Document, p fieldPath) string {
	line, _, exact := doc.Position(p)
	if !exact {
		return ""
	}
	return fmt.Sprintf(" (line %d)", line)
}

func checkLabelsAndTaints(r *reporter, p fieldPath, labels map[string]string, taints []string) {
	for _, k := range sortedKeys(labels) {
		r.failIf(badLabel(k, labels[k]), p.With("labels", k), "layout/label", "choose another one; labels have a-z, 0-9, -, _ and dots, at most 63 characters, with an optional prefix example.org/")
	}
	first := map[string]int{}
	for i, t := range taints {
		message := badTaint(t)
		r.failIf(message, p.With("taints", i), "layout/taint", taintRemedy)
		if message != "" {
			continue
		}
		key := taintKey(t)
		if j, twice := first[key]; twice {
			r.fail(p.With("taints", i), "layout/taint", fmt.Sprintf("%s has the key and the effect of taints[%d], %s", t, j, taints[j]), "remove one of the two: a node has each pair of key and effect once")
		} else {
			first[key] = i
		}
	}
}

func checkRoles(r *reporter, p fieldPath, roles []string, known map[string]Role) {
	for i, role := range roles {
		if _, ok := known[role]; !ok {
			remedy := "the roles are " + joinKeys(known)
			if near := strictyaml.Nearest(role, sortedKeys(known)); near != "" {
				remedy = fmt.Sprintf("did you mean %q?", near)
			}
			r.fail(p.With(i), "layout/unknown-role", fmt.Sprintf("there is no role %q", role), remedy)
		}
		if slices.Index(roles, role) < i {
			r.fail(p.With(i), "layout/duplicate-role", fmt.Sprintf("the role %q is listed twice", role), "remove one of the two")
		}
	}
}

func (q *QuickStart) checkMasters(r *reporter) {
	seen := map[int]bool{}
	for i, name := range q.Masters {
		j := q.machine(name)
		switch {
		case j < 0:
			r.fail(fieldPath{"masters", i}, "quick-start/unknown-master", fmt.Sprintf("%q is not the address or hostname of one of the machines", name), "list the master under machines too")
		case seen[j]:
			r.fail(fieldPath{"masters", i}, "quick-start/duplicate-master", fmt.Sprintf("%q is listed twice", name), "remove one of the two")
		case len(q.Machines[j].Roles) > 0 && !slices.Contains(q.Machines[j].Roles, layout.RoleMaster):
			r.fail(fieldPath{"masters", i}, "quick-start/roles-conflict", fmt.Sprintf("%q has its own roles, but not master", name), "add master to the machine's roles, or remove the roles")
		}
		seen[j] = true
	}
	if q.LoadBalanceIP != "" {
		r.failIf(badIPv4(q.LoadBalanceIP), fieldPath{"load-balance-ip"}, "quick-start/load-balance-ip", "write the address at which all masters' API answers")
	}
}

// machine returns the index of the machine with the given address or host name, or -1 if no machine matches.
func (q *QuickStart) machine(name string) int {
	return slices.IndexFunc(q.Machines, func(m QuickMachine) bool { return name != "" && (m.HostIP == name || m.Hostname == name) })
}

func (q *QuickStart) checkSSH(r *reporter) {
	if q.doc.Has("ssh-port") {
		r.failIf(badPort(q.SSHPort), fieldPath{"ssh-port"}, "quick-start/ssh-port", "the usual port is 22")
	}
	if q.SSHJumpHost != "" {
		r.failIf(badJumpHosts(q.SSHJumpHost), fieldPath{"ssh-jump-host"}, "quick-start/ssh-jump-host", "write user@gateway:22; several, outermost first, separated by commas")
	}
	if q.SSHSecretName == "" {
		return
	}
	if e := validation.IsDNS1123Subdomain(q.SSHSecretName); len(e) > 0 {
		r.fail(fieldPath{"ssh-secret-name"}, "quick-start/ssh-secret-name", fmt.Sprintf("%q is not a valid name for a Kubernetes secret", q.SSHSecretName), "use a-z, 0-9 and -")
	}
	if q.SSHKeyFile == "" {
		r.warn(fieldPath{"ssh-secret-name"}, "quick-start/ssh-secret-name", "names a secret for the key, but there is no key", "add ssh-keyfile-path, or remove this line")
	}
}

func (q *QuickStart) checkNetwork(r *reporter) {
	for i, s := range q.DNS {
		message, remedy := badDNSServer(s)
		p := fieldPath{"dns", i}
		if q.doc.Scalar("dns") != "" {
			p = fieldPath{"dns"}
		}
		r.failIf(message, p, "quick-start/dns", remedy)
	}
	if q.ServiceClusterIPRange != "" {
		r.failIf(badCIDR(q.ServiceClusterIPRange), fieldPath{"service-cluster-ip-range"}, "quick-start/cidr", "the default is "+defaultServiceRange)
	}
	if q.PodCIDR != "" {
		r.failIf(badCIDR(q.PodCIDR), fieldPath{"pod-cidr"}, "quick-start/cidr", "the default is "+defaultPodCIDR)
	}
	if q.ClusterName != "" {
		if e := validation.IsDNS1123Label(q.ClusterName); len(e) > 0 {
			r.fail(fieldPath{"cluster-name"}, "quick-start/cluster-name", fmt.Sprintf("%q is not a name: %s", q.ClusterName, e[0]), "use a-z, 0-9 and -")
		}
	}
	if q.ClusterID != "" {
		r.failIf(badClusterID(q.ClusterID), fieldPath{"cluster-id"}, "quick-start/cluster-id", "use letters, digits, - and _")
	}
}

// checkServices reports keys that can't be services. The charts check the settings in the sections; see Check.
func (q *QuickStart) checkServices(r *reporter) {
	for _, name := range sortedKeys(q.Services) {
		if slices.Contains(reservedSections(), name) {
			r.fail(fieldPath{"services", name}, "quick-start/services", fmt.Sprintf("%q is not a service", name),
				"set it in services-configuration.yaml after it is generated")
		}
	}
}

func reservedSections() []string { return []string{"apiVersion", "kind", "cluster"} }

var simulatedGPU = regexp.MustCompile(`^([1-9][0-9]{0,2})x([A-Za-z0-9][A-Za-z0-9.-]{0,62})$`)

const defaultSimulatedGPU = "8xA100"

func (q *QuickStart) checkGPU(r *reporter) {
	switch q.GPU {
	case "", GPUAuto, GPUNone, GPUSimulate:
	default:
		remedy := "write auto, none or simulate"
		if simulatedGPU.MatchString(q.GPU) {
			remedy = "write gpu: simulate and simulated-gpu: " + q.GPU
		}
		r.fail(fieldPath{"gpu"}, "quick-start/gpu", fmt.Sprintf("%q is not auto, none or simulate", q.GPU), remedy)
	}
	if q.SimulatedGPU == "" {
		return
	}
	if !simulatedGPU.MatchString(q.SimulatedGPU) {
		r.fail(fieldPath{"simulated-gpu"}, "quick-start/simulated-gpu", fmt.Sprintf("%q is not of the form 8xA100", q.SimulatedGPU), "write count, x, model")
	}
	if q.GPU != GPUSimulate {
		r.warn(fieldPath{"simulated-gpu"}, "quick-start/simulated-gpu", "has no effect without gpu: simulate", "add gpu: simulate, or remove this line")
	}
}

func (q *QuickStart) simulated() *layout.GPU {
	text := q.SimulatedGPU
	if text == "" {
		text = defaultSimulatedGPU
	}
	m := simulatedGPU.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	count, _ := strconv.Atoi(m[1])
	return &layout.GPU{Type: m[2], Count: count, Simulated: true}
}
