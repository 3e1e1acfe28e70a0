// Package preflight checks whether machines meet the requirements of a cluster, and whether members still do.
// In: the wanted cluster, and the output of Probe and of layout's discovery on its machines. Out: findings with remedies. The package has no side
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

// Section is the name of the section with Probe in a script. It is also the name under which a machine's journal records repairs.
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
	// Leader is a healthy control plane machine of the cluster, or the machine on which a cluster would be created if no cluster exists. It is nil if
	// there is no such machine.
	Leader *Node
	// Upgrading means that the run upgrades members to the bundle's release, if Kubernetes supports that step.
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
	// AddAs describes the machine and its roles as arguments of "paictl node add".
	AddAs string
}

// controlPlane returns the control plane machines, sorted by address.
func (c *Cluster) controlPlane() []*Node {
	out := slices.DeleteFunc(slices.Clone(c.Nodes), func(n *Node) bool { return !n.ControlPlane })
	slices.SortFunc(out, func(a, b *Node) int { return layout.CompareAddresses(a.HostIP, b.HostIP) })
	return out
}

// Host is a machine to check: its entry in the layout and its state.
type Host struct {
	*Node
	Cluster *Cluster
	// Selected means that the run covers this host. Control plane hosts are queried even if they aren't selected.
	Selected bool

	Facts layout.Facts
	Probe answer.Answer
	// Asked and Answered are the times at which the round trip began and ended, according to the operator's clock.
	Asked, Answered time.Time
	// Touched means that paictl's phases have already run on this host, so the checks must ignore the traces of these phases. Joined means that the
	// phases made the host a member of a cluster.
	Touched, Joined bool

	// Programs lists the host's Kubernetes programs and their releases.
	Programs []Program
	// Later lists kernel settings in files that override paictl's settings when the machine boots.
	Later []Setting
	// Brings lists the disk space that the files of the run will need on the host.
	Brings []Room
	// Driver holds the findings about NVIDIA's driver, or is nil if the host needs no driver.
	Driver *Driver

	others []*Host          // all hosts that answered, including this one
	at     map[string]*Host // the same hosts, by address in the layout
}

// Program is a Kubernetes program with its release, such as v1.36.3.
type Program struct{ Name, Version string }

// KubeletName is the name of the kubelet in a host's Programs.
const KubeletName = "kubelet"

// Setting is a value for a kernel setting in a file.
type Setting = checks.Setting

// Driver holds the findings about a machine's driver.
type Driver struct {
	Findings []gpudriver.Finding
	// Installs means that the run installs another driver.
	Installs bool
}

// Read returns a host from the sections of its machine's output: "facts" (layout's discovery), Section (the output of Probe), and "journal" (paictl's
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

// has reports whether a path exists on the host. The path must be in kubernetesFiles.
func (s *Host) has(path string) bool {
	_, ok := s.Probe.Row("exists", path)
	return ok
}

// active reports whether a systemd unit is running on the host.
func (s *Host) active(unit string) bool {
	_, ok := s.Probe.Row("active", unit)
	return ok
}

// ignored reports whether the configuration makes kubeadm ignore the check with this name.
func (s *Host) ignored(kubeadmCheck string) bool {
	list := s.Cluster.Kubernetes.Extra.KubeadmIgnorePreflight
	return slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, kubeadmCheck) || strings.EqualFold(x, "all") })
}

// container reports whether the machine is a container, which shares its kernel and clock with another machine.
func (s *Host) container() bool { return s.Facts.Container != "" }

func (s *Host) fail(check, message, remedy string) Finding {
	return Finding{Host: s.Hostname, Check: check, Severity: SeverityError, Message: message, Remedy: remedy}
}

func (s *Host) warn(check, message, remedy string) Finding {
	return Finding{Host: s.Hostname, Check: check, Severity: SeverityWarning, Message: message, Remedy: remedy}
}
