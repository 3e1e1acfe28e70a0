package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/layout"
)

// subject is a host under examination: what it is meant to be and what it answered.
type subject struct {
	run    *run
	spec   *Spec
	node   *Node
	seen   *facts
	facts  layout.Facts
	probe  answer.Answer
	others []*subject          // all hosts that answered, this one included
	at     map[string]*subject // the same, by address in the layout
	// touched says that phases of paictl have worked here before: what they left must not
	// be held against the host. joined says that it is a member of a cluster by them.
	touched, joined bool
	// asked says that the run is about this host; those of the control plane also answer
	// where it is not.
	asked bool
	// leader is the run's leader.
	leader *Node
}

// hostCheck examines one host.
type hostCheck func(*subject) []Finding

// hostChecks are all checks of single hosts. A host that has joined is not asked again
// whether it is fit to join.
func hostChecks() (always, joining []hostCheck) {
	always = []hostCheck{
		checkArch, checkRoot, checkInit, checkCommands, checkHostname, checkAddress,
		checkMachineID, checkPorts, checkDisk, checkMounts, checkModules, checkCgroup, checkOwner, checkGPU, checkDriver,
		checkEtcHosts, checkSysctl,
	}
	joining = []hostCheck{
		checkOS, checkKernel, checkMemory, checkCPUs, checkSwap, checkTimeSource, checkKubernetes,
		checkRuntime, checkSecurity, checkNetworks, checkReach,
	}
	return always, joining
}

// check examines the nodes that answered, each for itself and all together. It is pure:
// the same answers give the same findings in the same order.
func (r *run) check(w *world, nodes []*Node) []Finding {
	subjects, findings := r.subjects(w, nodes)
	findings = append(findings, w.findings...)
	always, joining := hostChecks()
	for _, s := range subjects {
		if !s.asked {
			continue
		}
		for _, c := range always {
			findings = append(findings, c(s)...)
		}
		if s.joined {
			continue
		}
		if own := s.unrecorded(); own != nil {
			findings = append(findings, own...)
			continue
		}
		for _, c := range joining {
			findings = append(findings, c(s)...)
		}
	}
	findings = append(findings, checkUnique(subjects)...)
	findings = append(findings, checkVersions(subjects)...)
	findings = append(findings, checkClocks(subjects)...)
	r.sortFindings(findings)
	return findings
}

// subjects reads the answers. A host whose answer cannot be read is a finding itself.
func (r *run) subjects(w *world, nodes []*Node) (all []*subject, broken []Finding) {
	broken = []Finding{}
	for _, n := range r.spec.Nodes {
		f := w.facts[n.Hostname]
		if f == nil || r.isAside(n) {
			continue
		}
		s := &subject{run: r, spec: r.spec, node: n, seen: f, probe: f.sections[phasePreflight], asked: slices.Contains(nodes, n), leader: w.leader}
		var err error
		if s.facts, err = layout.ParseFacts(f.sections["facts"].Raw); err != nil {
			broken = append(broken, s.fail("facts", "what the machine answered cannot be read: "+err.Error(),
				"log in there and look at what the shell prints at its start; only the answers may reach its standard output"))
			continue
		}
		if s.probe.Value("end") != "ok" {
			broken = append(broken, s.fail("probe", "the checks on the machine broke off"+exitStatus(s.probe.Failed),
				"run again with --log-file FILE and look there for what the machine's shell said"))
			continue
		}
		for _, j := range f.sections["journal"].All("journal") {
			s.touched = s.touched || len(j) > 0 && j[0] != phasePreflight
		}
		s.joined = s.touched && s.has(memberFile) && s.has("/etc/kubernetes/kubelet.conf")
		all = append(all, s)
	}
	at := map[string]*subject{}
	for _, s := range all {
		at[s.node.HostIP] = s
		s.others, s.at = all, at
	}
	return all, broken
}

func exitStatus(code string) string {
	if code == "" {
		return ""
	}
	return " with exit status " + code
}

// has reports whether one of kubernetesFiles is on the host.
func (s *subject) has(path string) bool {
	_, ok := s.probe.Row("exists", path)
	return ok
}

// active reports whether a systemd unit runs.
func (s *subject) active(unit string) bool {
	_, ok := s.probe.Row("active", unit)
	return ok
}

// ignored reports whether the operator told kubeadm to ignore its check of that name.
func (s *subject) ignored(kubeadmCheck string) bool {
	list := s.spec.Config.Kubernetes.Kubernetes.Extra.KubeadmIgnorePreflight
	return slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, kubeadmCheck) || strings.EqualFold(x, "all") })
}

func (s *subject) fail(check, message, remedy string) Finding {
	return Finding{Host: s.node.Hostname, Check: check, Severity: SeverityError, Message: message, Remedy: remedy}
}

func (s *subject) warn(check, message, remedy string) Finding {
	return Finding{Host: s.node.Hostname, Check: check, Severity: SeverityWarning, Message: message, Remedy: remedy}
}

// fixable adds shell that repairs the finding.
func (f Finding) fixable(shell string) Finding {
	f.Fix, f.Fixable = shell, true
	return f
}

// container reports whether the machine is one whose kernel and clock belong to another.
func (s *subject) container() bool { return s.facts.Container != "" }

// mib renders a size for people: MiB below 10 GiB, GiB above.
func mib(bytes int64) string {
	const gib = 1 << 30
	if bytes < 10*gib {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gib)
}
