package engine

import (
	"fmt"
	"slices"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
)

// Spec describes the desired cluster. It contains the configuration, resolved per node, and the bundle. A Spec is immutable.
type Spec struct {
	Config *config.Cluster
	Bundle *bundle.Bundle
	Nodes  []*Node
}

// labelWorker is OpenPAI's label for machines that run jobs.
const labelWorker = "pai-worker"

// Node is one machine of the cluster, with the settings of its roles.
type Node struct {
	layout.Machine
	Target       ssh.Target
	ControlPlane bool
	// Worker means that the machine runs jobs. In a cluster of one machine, the master runs jobs.
	Worker bool
	Labels map[string]string
	Taints []string
}

// NewSpec resolves a configuration for each node. The bundle may be nil for runs that install nothing.
func NewSpec(c *config.Cluster, b *bundle.Bundle) (*Spec, error) {
	s := &Spec{Config: c, Bundle: b}
	if err := s.checkVersion(); err != nil {
		return nil, err
	}
	for _, m := range c.Layout.MachineList {
		n := &Node{
			Machine: m, Target: c.Target(m), ControlPlane: c.IsControlPlane(m),
			Labels: c.LabelsOf(m), Taints: c.TaintsOf(m),
		}
		n.Worker = !n.ControlPlane || n.Labels[labelWorker] == "true"
		s.Nodes = append(s.Nodes, n)
	}
	if len(s.ControlPlane()) == 0 {
		return nil, hint.Errorf("give one machine of layout.yaml the role master",
			"no machine runs the control plane")
	}
	return s, nil
}

// ControlPlane returns the nodes of the control plane, sorted by address.
func (s *Spec) ControlPlane() []*Node {
	var out []*Node
	for _, n := range s.Nodes {
		if n.ControlPlane {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, ByAddress)
	return out
}

// Master returns the control plane node with the given address, or nil.
func (s *Spec) Master(address string) *Node {
	for _, n := range s.ControlPlane() {
		if n.HostIP == address {
			return n
		}
	}
	return nil
}

// Node returns the node with the given host name or address, or an error if the layout doesn't contain it.
func (s *Spec) Node(name string) (*Node, error) {
	for _, n := range s.Nodes {
		if n.Hostname == name || n.HostIP == name {
			return n, nil
		}
	}
	return nil, unknown(name)
}

func unknown(name string) error {
	if name == "" {
		return hint.Errorf("paictl node list -p DIR shows the machines of the layout", "the name of a machine is empty")
	}
	return hint.Errorf("paictl node list -p DIR shows the machines of the layout", "%s is not a machine of the layout", name)
}

// CheckLimit returns an error if a name in --limit is neither the name nor the address of a machine.
func CheckLimit(l *layout.Layout, names []string) error {
	for _, name := range names {
		if !l.Has(name) {
			return unknown(name)
		}
	}
	return nil
}

// Artifacts returns the artifacts of a kind in the bundle that the node needs.
func (s *Spec) Artifacts(n *Node, kind string) []bundle.Artifact {
	var out []bundle.Artifact
	for _, a := range s.Bundle.List(kind) {
		unused := kind == bundle.KindImage && a.Name == VIPProgram && s.Config.Kubernetes.Kubernetes.APIVIP == ""
		if a.NeededBy(n.ControlPlane, n.Worker) && !unused {
			out = append(out, a)
		}
	}
	return out
}

// Image returns the reference that nodes use for an image in the bundle.
func (s *Spec) Image(name string) (string, error) {
	a, ok := s.Bundle.Lookup(bundle.KindImage, name)
	if !ok {
		return "", hint.Errorf("build the bundle again: paictl bundle build", "the bundle in %s has no image %q", s.Bundle.Dir(), name)
	}
	return a.Image, nil
}

// ConfiguredEndpoint returns the configured HOST:PORT of the API. It ignores the cluster's state.
func (s *Spec) ConfiguredEndpoint() string {
	return s.Config.Endpoint()
}

// OwnEndpoint returns the HOST:PORT of a control plane machine's own API server.
func (s *Spec) OwnEndpoint(n *Node) string { return s.AtPort(n.HostIP) }

// AtPort returns host with the port of the API.
func (s *Spec) AtPort(host string) string {
	return fmt.Sprintf("%s:%d", host, s.Config.Kubernetes.Kubernetes.APIServerPort)
}

// VIPProgram is the name of the program that assigns the API's virtual address to one of the masters.
const VIPProgram = "pai-api-vip"

// ByAddress orders two nodes by their addresses.
func ByAddress(a, b *Node) int { return layout.CompareAddresses(a.HostIP, b.HostIP) }
