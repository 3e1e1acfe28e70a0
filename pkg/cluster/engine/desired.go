package engine

import (
	"cmp"

	"github.com/openpai/paictl/pkg/config"
)

// Desired is the state that a run gives to the machines: the Spec, and decisions that depend on the current state of the cluster. A Desired doesn't
// change; if a later survey makes other decisions, it creates a new Desired.
type Desired struct {
	*Spec
	// reached is the HOST:PORT at which the members of a running cluster reach the API. It is "" if that is the configured address.
	reached string
	// SelfSigned means that kubelets sign their own serving certificates. Unverified means that API servers don't verify these certificates. Both are
	// false unless the configuration asks for self-signed certificates, or the cluster already has them and this run keeps them.
	SelfSigned, Unverified bool
	// Upgrading means that members may run another release than the bundle's release, to which the run upgrades them.
	Upgrading bool
	// Restore holds the parts of the backup from which the run creates a cluster; nil means that the new cluster is empty.
	Restore *RestoreParts
	// Back means that the patch release of the bundle may be older than that of the members.
	Back bool
}

// Fresh returns the desired state for a new cluster.
func (s *Spec) Fresh() *Desired { return &Desired{Spec: s} }

// Undecided returns a copy of the desired state without the decisions of the last survey.
func (d *Desired) Undecided() *Desired {
	return &Desired{Spec: d.Spec, Upgrading: d.Upgrading, Back: d.Back, Restore: d.Restore}
}

// Endpoint returns the HOST:PORT at which all nodes reach the API.
func (d *Desired) Endpoint() string {
	return cmp.Or(d.reached, d.ConfiguredEndpoint())
}

// Local reports whether each machine reaches the API through a proxy on the machine itself.
func (d *Desired) Local() bool { return d.Endpoint() == config.LocalAPI() }
