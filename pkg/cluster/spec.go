package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/openpai/paictl/pkg/bundle"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
)

// Spec is what a cluster shall be: the configuration, resolved per node, and the bundle
// that its programs come from. A run settles the API's address once, after it has looked at
// the machines; the rest does not change.
type Spec struct {
	Config *config.Cluster
	Bundle *bundle.Bundle
	Nodes  []*Node
	// reached is the address at which the members of a running cluster reach the API, HOST:PORT, where it
	// isn't the configured one; "" otherwise.
	reached string
	// selfSigned says that kubelets sign the certificates of their servers themselves, and unverified that API servers don't verify them: the cluster is an
	// older one that this run doesn't move, or the operator wants it so.
	selfSigned, unverified bool
	// upgrading says that members may run another release than the bundle's, to which they are brought.
	upgrading bool
	// back says that the bundle's may be an earlier patch release than theirs.
	back bool
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
		s.Nodes = append(s.Nodes, n)
	}
	if len(s.ControlPlane()) == 0 {
		return nil, hint.Errorf("give one machine of layout.yaml the role master",
			"no machine runs the control plane")
	}
	return s, nil
}

// ControlPlane returns the nodes that run the control plane, by address: their order in
// layout.yaml means nothing.
func (s *Spec) ControlPlane() []*Node {
	var out []*Node
	for _, n := range s.Nodes {
		if n.ControlPlane {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, byAddress)
	return out
}

// master returns the control plane node with that address, nil where there is none.
func (s *Spec) master(address string) *Node {
	for _, n := range s.ControlPlane() {
		if n.HostIP == address {
			return n
		}
	}
	return nil
}

// Node returns the node of that host name or address.
func (s *Spec) Node(name string) (*Node, error) {
	for _, n := range s.Nodes {
		if n.Hostname == name || n.HostIP == name {
			return n, nil
		}
	}
	return nil, unknown(name)
}

func unknown(name string) error {
	return hint.Errorf("paictl node list -p DIR shows the machines of the layout", "%s is not a machine of the layout", name)
}

// CheckLimit reports a name of --limit that no machine has. It needs no bundle, as a Spec does.
func CheckLimit(l *layout.Layout, names []string) error {
	for _, name := range names {
		if !l.Has(name) {
			return unknown(name)
		}
	}
	return nil
}

// artifacts returns the bundle's artifacts of a kind that the node needs.
func (s *Spec) artifacts(n *Node, kind string) []bundle.Artifact {
	var out []bundle.Artifact
	for _, a := range s.Bundle.List(kind) {
		unused := kind == bundle.KindImage && a.Name == vipProgram && s.Config.Kubernetes.Kubernetes.APIVIP == ""
		if a.NeededBy(n.ControlPlane, n.Worker) && !unused {
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
	return cmp.Or(s.reached, s.configuredEndpoint())
}

// configuredEndpoint is the API server's address by the configuration alone.
func (s *Spec) configuredEndpoint() string {
	return s.Config.Endpoint()
}

// local reports whether each machine reaches the API by a proxy of its own.
func (s *Spec) local() bool { return s.endpoint() == config.LocalAPI() }

// ownEndpoint is the address of a control plane machine's own API server.
func (s *Spec) ownEndpoint(n *Node) string { return s.atPort(n.HostIP) }

func (s *Spec) atPort(host string) string {
	return fmt.Sprintf("%s:%d", host, s.Config.Kubernetes.Kubernetes.APIServerPort)
}
