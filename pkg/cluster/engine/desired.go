package engine

import (
	"cmp"

	"github.com/openpai/paictl/pkg/config"
)

// Desired is the state that a run gives to the machines. It consists of the Spec, and of decisions that depend on the current state of the cluster.
// It is immutable. A later survey with other decisions creates a new Desired.
type Desired struct {
	*Spec
	// reached is the HOST:PORT at which members of a running cluster reach the API, or "" if it is the configured address.
	reached string
	// SelfSigned means that kubelets sign their own serving certificates. Unverified means that API servers don't verify these certificates.
	SelfSigned, Unverified bool
	// Upgrading means that the run upgrades members to the release in the bundle.
	Upgrading bool
	// Restore holds the parts of the backup for a new cluster; nil means that the new cluster is empty.
	Restore *RestoreParts
	// Back means that the patch release of the bundle may be older than that of the members.
	Back bool
}

// Fresh returns the desired state for a new cluster.
func (s *Spec) Fresh() *Desired { return &Desired{Spec: s} }

// Undecided returns a copy of d without the decisions of the last survey.
func (d *Desired) Undecided() *Desired {
	return &Desired{Spec: d.Spec, Upgrading: d.Upgrading, Back: d.Back, Restore: d.Restore}
}

// Endpoint returns the HOST:PORT at which all nodes reach the API.
func (d *Desired) Endpoint() string {
	return cmp.Or(d.reached, d.ConfiguredEndpoint())
}

// Local reports whether each machine reaches the API through a proxy on the machine itself.
func (d *Desired) Local() bool { return d.Endpoint() == config.LocalAPI() }
