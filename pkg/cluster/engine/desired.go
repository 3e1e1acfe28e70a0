package engine

import (
	"cmp"

	"github.com/openpai/paictl/pkg/config"
)

// Desired is the state to which a run brings the machines: the Spec, and the decisions that depend on the state in which the run finds the
// cluster. It doesn't change: a survey that decides otherwise makes another one.
type Desired struct {
	*Spec
	// reached is the address at which the members of a running cluster reach the API, HOST:PORT, if it
	// isn't the configured one; otherwise "".
	reached string
	// SelfSigned means that kubelets sign their serving certificates themselves, and unverified that API servers don't verify these: the cluster is
	// an older one that this run doesn't change, or the configuration asks for it.
	SelfSigned, Unverified bool
	// Upgrading means that members may run another release than the bundle's, and are upgraded to it.
	Upgrading bool
	// Restore makes a new cluster from a backup's parts; nil makes an empty one.
	Restore *RestoreParts
	// Back means that the bundle may have an earlier patch release than the members.
	Back bool
}

// Fresh returns the state of a new cluster.
func (s *Spec) Fresh() *Desired { return &Desired{Spec: s} }

// Undecided returns the state without the decisions of an earlier survey.
func (d *Desired) Undecided() *Desired {
	return &Desired{Spec: d.Spec, Upgrading: d.Upgrading, Back: d.Back, Restore: d.Restore}
}

// Endpoint returns the API server's address for all nodes.
func (d *Desired) Endpoint() string {
	return cmp.Or(d.reached, d.ConfiguredEndpoint())
}

// Local reports whether each machine reaches the API through its own proxy.
func (d *Desired) Local() bool { return d.Endpoint() == config.LocalAPI() }
