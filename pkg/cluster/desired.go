package cluster

import (
	"cmp"

	"github.com/openpai/paictl/pkg/config"
)

// desired is the state to which a run brings the machines: the Spec, and the decisions that depend on the state in which the run finds the
// cluster. It doesn't change: a survey that decides otherwise makes another one.
type desired struct {
	*Spec
	// reached is the address at which the members of a running cluster reach the API, HOST:PORT, if it
	// isn't the configured one; otherwise "".
	reached string
	// selfSigned means that kubelets sign their serving certificates themselves, and unverified that API servers don't verify these: the cluster is
	// an older one that this run doesn't change, or the configuration asks for it.
	selfSigned, unverified bool
	// upgrading means that members may run another release than the bundle's, and are upgraded to it.
	upgrading bool
	// restore makes a new cluster from a backup's parts; nil makes an empty one.
	restore *RestoreParts
	// back means that the bundle's release may be an earlier patch release than theirs.
	back bool
}

// fresh returns the state of a new cluster.
func (s *Spec) fresh() *desired { return &desired{Spec: s} }

// undecided returns the state without the decisions of an earlier survey.
func (d *desired) undecided() *desired {
	return &desired{Spec: d.Spec, upgrading: d.upgrading, back: d.back, restore: d.restore}
}

// endpoint returns the API server's address for all nodes.
func (d *desired) endpoint() string {
	return cmp.Or(d.reached, d.configuredEndpoint())
}

// local reports whether each machine reaches the API through its own proxy.
func (d *desired) local() bool { return d.endpoint() == config.LocalAPI() }
