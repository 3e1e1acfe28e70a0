// Package preflight checks whether machines are fit for a cluster, and whether members still are.
// In: the wanted cluster, and its machines' answers to Probe and to layout's discovery. Out: findings with remedies. The package is pure:
// the same answers give the same findings in the same order.
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

// Section is the name of the section with the Probe in a script, and of a repair's changes in a machine's journal.
const Section = "preflight"

// Cluster describes the cluster to which the machines belong or will belong.
type Cluster struct {
	Nodes      []*Node // in the order of the layout
	Kubernetes *config.KubernetesSpec
	SKUs       map[string]layout.SKU
	// Bundle is the bundle to install; nil if the run installs nothing.
	Bundle *bundle.Bundle
	// Endpoint is the API's address, HOST:PORT.
	Endpoint string
	// Leader is the healthy control plane machine that answers for the cluster, or else the machine on which a cluster would be made; nil if
	// there is no such machine.
	Leader *Node
	// Upgrading means that members are upgraded to the bundle's release, as far as Kubernetes allows it.
	Upgrading bool
	// Back means that the bundle may have an earlier patch release than the members.
	Back bool
	// Sysctls are the kernel settings that the cluster needs.
	Sysctls map[string]string
}

// Node is a machine of the layout.
type Node struct {
	layout.Machine
	ControlPlane bool
	// AddAs describes the machine and its roles as an argument of "paictl node add".
	AddAs string
}

// controlPlane returns the control plane machines, sorted by address.
func (c *Cluster) controlPlane() []*Node {
	out := slices.DeleteFunc(slices.Clone(c.Nodes), func(n *Node) bool { return !n.ControlPlane })
	slices.SortFunc(out, func(a, b *Node) int { return layout.CompareAddresses(a.HostIP, b.HostIP) })
	return out
}

// Host is a machine that is checked: its place in the layout and its answers.
type Host struct {
	*Node
	Cluster *Cluster
	// Selected means that the run covers this host; control plane hosts also answer if they aren't selected.
	Selected bool

	Facts layout.Facts
	Probe answer.Answer
	// Asked and Answered are the times at which the round trip began and ended, by the operator's clock.
	Asked, Answered time.Time
	// Touched means that phases of paictl have worked on this host before, so the checks must ignore their traces. Joined means that these phases
	// made the host a member of a cluster.
	Touched, Joined bool

	// Programs are the host's Kubernetes programs.
	Programs []Program
	// Later holds kernel settings from files that override paictl's settings when the machine boots.
	Later []Setting
	// Brings is the disk space that the run's files will need on the host.
	Brings []Room
	// Driver holds the findings about NVIDIA's driver; nil if the host should have no driver.
	Driver *Driver

	others []*Host          // all hosts that answered, including this one
	at     map[string]*Host // the same hosts, by address in the layout
}

// Program is a Kubernetes program with its release, such as v1.36.3.
type Program struct{ Name, Version string }

// KubeletName is the name of the kubelet among a host's programs.
const KubeletName = "kubelet"

// Setting is a kernel setting in a file.
type Setting = checks.Setting

// Driver holds the problems with a machine's driver, and the warnings about it.
type Driver struct {
	Findings []gpudriver.Finding
	// Installs means that a run installs another driver.
	Installs bool
}

// Read makes a host from the sections of its machine's answer: "facts" (layout's discovery), Section, and "journal" (paictl's record of its work
// on the machine). If the answer can't be parsed, Read returns a nil host and a finding with the reason.
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

// has reports whether a path of kubernetesFiles exists on the host.
func (s *Host) has(path string) bool {
	_, ok := s.Probe.Row("exists", path)
	return ok
}

// active reports whether a systemd unit runs.
func (s *Host) active(unit string) bool {
	_, ok := s.Probe.Row("active", unit)
	return ok
}

// ignored reports whether the operator told kubeadm to ignore the check of this name.
func (s *Host) ignored(kubeadmCheck string) bool {
	list := s.Cluster.Kubernetes.Extra.KubeadmIgnorePreflight
	return slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, kubeadmCheck) || strings.EqualFold(x, "all") })
}

// container reports whether the machine shares its kernel and clock with another machine.
func (s *Host) container() bool { return s.Facts.Container != "" }

func (s *Host) fail(check, message, remedy string) Finding {
	return Finding{Host: s.Hostname, Check: check, Severity: SeverityError, Message: message, Remedy: remedy}
}

func (s *Host) warn(check, message, remedy string) Finding {
	return Finding{Host: s.Hostname, Check: check, Severity: SeverityWarning, Message: message, Remedy: remedy}
}
