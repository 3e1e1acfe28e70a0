// Package preflight checks whether machines meet the requirements of a cluster, and whether members still meet them.
// In: the desired cluster, and the output of Probe and of layout's discovery on its machines. Out: findings with remedies. The package has no side
// effects: the same input results in the same findings in the same order.
package preflight

import (
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/gpudriver"
	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/layout"
)

// Section is the name of Probe's section in a script. In a machine's journal, repairs have the same name.
const Section = "preflight"

// Cluster describes the cluster to which the machines belong or will belong.
type Cluster struct {
	Nodes      []*Node // in the order of the layout
	Kubernetes *config.KubernetesSpec
	SKUs       map[string]layout.SKU
	// Bundle is the bundle to install, or nil if the run installs nothing.
	Bundle *bundle.Bundle
	// Endpoint is the HOST:PORT of the API.
	Endpoint string
	// Leader is a healthy master of the cluster. If no cluster exists, it is the machine that would create the cluster. It is nil without such a
	// machine.
	Leader *Node
	// Upgrading means that the run upgrades members to the bundle's release. Kubernetes must support that upgrade.
	Upgrading bool
	// Back means that the patch release of the bundle may be older than that of the members.
	Back bool
	// Sysctls holds the kernel settings that the cluster needs.
	Sysctls map[string]string
}

// Node is a machine of the layout.
type Node struct {
	layout.Machine
	ControlPlane bool
	// AddAs contains the machine and its roles as arguments for "paictl node add".
	AddAs string
}

func (c *Cluster) controlPlane() []*Node {
	out := slices.DeleteFunc(slices.Clone(c.Nodes), func(n *Node) bool { return !n.ControlPlane })
	slices.SortFunc(out, func(a, b *Node) int { return layout.CompareAddresses(a.HostIP, b.HostIP) })
	return out
}

// Host is a machine to check. It holds the machine's entry in the layout and its state.
type Host struct {
	*Node
	Cluster *Cluster
	// Selected means that the run covers this host. Masters are queried even if they aren't selected.
	Selected bool

	Facts layout.Facts
	Probe answer.Answer
	// QueriedAt and Answered are the times at which the query began and ended, according to the operator's clock.
	QueriedAt, Answered time.Time
	// Touched means that paictl's phases have already run on this host, so the checks must ignore their traces. Joined means that the phases made the
	// host a member of a cluster.
	Touched, Joined bool

	// Programs lists the host's Kubernetes programs and their releases.
	Programs []Program
	// Later lists kernel settings in files that override paictl's settings when the machine boots.
	Later []Setting
	// Needs lists the disk space that the run's files will need on the host.
	Needs []Space
	// Driver holds the findings about NVIDIA's driver. It is nil if the host needs no driver.
	Driver *Driver

	others []*Host          // all hosts that answered, including this one
	at     map[string]*Host // the same hosts, by address in the layout
}

// Program is a Kubernetes program with its release, such as v1.36.3.
type Program struct{ Name, Version string }

// KubeletName is the name of the kubelet in a host's Programs.
const KubeletName = "kubelet"

// Setting is a kernel setting in a file.
type Setting = checks.Setting

// Driver holds the findings about a machine's driver.
type Driver struct {
	Findings []gpudriver.Finding
	// Installs means that the run installs another driver.
	Installs bool
}

// Read parses a machine's output into a host. The sections are "facts" (layout's discovery), Section (the output of Probe), and "journal" (paictl's
// record of its work on the machine). If it can't parse the output, it returns nil and a finding with the reason.
func Read(c *Cluster, n *Node, sections map[string]answer.Answer) (*Host, *Finding) {
	s := &Host{Node: n, Cluster: c, Probe: sections[Section], Selected: true}
	var err error
	if s.Facts, err = layout.ParseFacts(sections["facts"].Raw); err != nil {
		f := s.fail("facts", "the machine's answer is not readable: "+err.Error(),
			"log in there and check what the shell prints when it starts; it must print nothing to standard output")
		return nil, &f
	}
	if s.Probe.Value("end") != "ok" {
		f := s.fail("probe", "the checks on the machine were aborted"+exitStatus(s.Probe.Failed),
			"run again with --log-file FILE and read the output of the machine's shell there")
		return nil, &f
	}
	for _, j := range sections["journal"].All("journal") {
		s.Touched = s.Touched || len(j) > 0 && j[0] != Section
	}
	s.Joined = s.Touched && s.has(paths.Member) && s.has("/etc/kubernetes/kubelet.conf")
	return s, nil
}

func exitStatus(code string) string {
	if code == "" {
		return ""
	}
	return " with exit status " + code
}

// has reports whether a path exists on the host. path must be in kubernetesFiles.
func (s *Host) has(path string) bool {
	_, ok := s.Probe.Row("exists", path)
	return ok
}

func (s *Host) active(unit string) bool {
	_, ok := s.Probe.Row("active", unit)
	return ok
}

func (s *Host) ignored(kubeadmCheck string) bool {
	list := s.Cluster.Kubernetes.Extra.KubeadmIgnorePreflight
	return slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, kubeadmCheck) || strings.EqualFold(x, "all") })
}

// container reports whether the machine is a container. A container shares its kernel and clock with another machine.
func (s *Host) container() bool { return s.Facts.Container != "" }

func (s *Host) fail(check, message, remedy string) Finding {
	return Finding{Host: s.Hostname, Check: check, Severity: SeverityError, Message: message, Remedy: remedy}
}

func (s *Host) warn(check, message, remedy string) Finding {
	return Finding{Host: s.Hostname, Check: check, Severity: SeverityWarning, Message: message, Remedy: remedy}
}
