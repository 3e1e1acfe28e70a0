package cluster

import (
	"fmt"

	"github.com/openpai/paictl/pkg/bundle"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
)

// Spec is what a cluster shall be: the configuration, resolved per node, and the bundle
// that its programs come from. It does not change during a run.
type Spec struct {
	Config *config.Cluster
	Bundle *bundle.Bundle
	Nodes  []*Node
}

// labelWorker is on the machines on which jobs run, as OpenPAI names it.
const labelWorker = "pai-worker"

// Node is one machine of the cluster, with what its roles mean for it.
type Node struct {
	layout.Machine
	Target       ssh.Target
	ControlPlane bool
	// Worker: jobs run there. On the one machine of a small cluster they do beside the control plane.
	Worker bool
	// First marks the control plane machine on which the cluster is initialised and
	// where cluster-wide work is done.
	First  bool
	Labels map[string]string
	Taints []string
}

// NewSpec resolves a configuration. The bundle may be nil for runs that install nothing.
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
		if n.ControlPlane && s.First() == nil {
			n.First = true
		}
		s.Nodes = append(s.Nodes, n)
	}
	if s.First() == nil {
		return nil, hint.Errorf("give one machine of layout.yaml the role master",
			"no machine runs the control plane")
	}
	return s, nil
}

// First returns the node on which the cluster is initialised.
func (s *Spec) First() *Node {
	for _, n := range s.Nodes {
		if n.First {
			return n
		}
	}
	return nil
}

// ControlPlane returns the nodes that run the control plane, the first one first.
func (s *Spec) ControlPlane() []*Node {
	var out []*Node
	for _, n := range s.Nodes {
		if n.ControlPlane {
			out = append(out, n)
		}
	}
	return out
}

// Node returns the node of that host name or address.
func (s *Spec) Node(name string) (*Node, error) {
	for _, n := range s.Nodes {
		if n.Hostname == name || n.HostIP == name {
			return n, nil
		}
	}
	return nil, hint.Errorf("paictl node list -p DIR shows the machines of the layout",
		"%s is not a machine of the layout", name)
}

// artifacts returns the bundle's artifacts of a kind that the node needs.
func (s *Spec) artifacts(n *Node, kind string) []bundle.Artifact {
	var out []bundle.Artifact
	for _, a := range s.Bundle.List(kind) {
		if a.NeededBy(n.ControlPlane, n.Worker) {
			out = append(out, a)
		}
	}
	return out
}

// image returns the reference by which nodes know one of the bundle's images.
func (s *Spec) image(name string) (string, error) {
	a, ok := s.Bundle.Lookup(bundle.KindImage, name)
	if !ok {
		return "", hint.Errorf("build the bundle again: paictl bundle build", "the bundle in %s has no image %q", s.Bundle.Dir(), name)
	}
	return a.Image, nil
}

// endpoint is the API server's address for all nodes.
func (s *Spec) endpoint() string {
	k := s.Config.Kubernetes.Kubernetes
	ip := k.LoadBalanceIP
	if ip == "" {
		ip = s.First().HostIP
	}
	return fmt.Sprintf("%s:%d", ip, k.APIServerPort)
}
