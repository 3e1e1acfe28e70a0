package engine

import (
	"cmp"

	"github.com/openpai/paictl/pkg/config"
)

// Desired is the state to which a run brings the machines: the Spec, and the decisions that depend on the state in which the run finds the
// cluster. Desired doesn't change: a survey that decides otherwise makes a new one.
type Desired struct {
	*Spec
	// reached is the HOST:PORT at which the members of a running cluster reach the API, or "" if it is the configured address.
	reached string
	// SelfSigned means that kubelets sign their own serving certificates, and Unverified that API servers don't verify these certificates. They
	// can be true only for an older cluster that this run doesn't change, or if the configuration asks for it.
	SelfSigned, Unverified bool
	// Upgrading means that members may run another release than the bundle's, and the run upgrades them to the bundle's release.
	Upgrading bool
	// Restore holds the parts of the backup from which the run makes a new cluster; nil makes an empty cluster.
	Restore *RestoreParts
	// Back means that the bundle may have an earlier patch release than the members.
	Back bool
}

// Fresh returns the state of a new cluster.
func (s *Spec) Fresh() *Desired { return &Desired{Spec: s} }

// Undecided returns the desired state without the decisions of an earlier survey.
func (d *Desired) Undecided() *Desired {
	return &Desired{Spec: d.Spec, Upgrading: d.Upgrading, Back: d.Back, Restore: d.Restore}
}

// Endpoint returns the API server's address for all nodes.
func (d *Desired) Endpoint() string {
	return cmp.Or(d.reached, d.ConfiguredEndpoint())
}

// Local reports whether each machine reaches the API through its own proxy.
func (d *Desired) Local() bool { return d.Endpoint() == config.LocalAPI() }
