// Package release installs charts with Helm. It is the only package that uses Helm, so that Helm's next major version affects only this
// package.
// In: a chart and values. Out: a release in the cluster, which isn't changed if there is no difference.
package release

import (
	"context"
	"time"

	"helm.sh/helm/v3/pkg/chart"
)

// Actions of an Outcome.
const (
	Installed = "installed"
	Upgraded  = "upgraded"
	Repaired  = "repaired" // objects were missing, or an earlier run was interrupted
	Unchanged = "unchanged"
)

// Request is the desired state of a release.
type Request struct {
	Name      string
	Namespace string
	Chart     *chart.Chart
	Values    map[string]any
	// Upgrade allows a chart that differs from the release's. The definitions in its crds folder are then updated as well, and the
	// previous revision stays recorded until Settle.
	Upgrade bool
	// Downgrade allows definitions to lose versions and fields. Otherwise an upgrade that would remove some fails, and a start doesn't change the
	// definitions.
	Downgrade bool
}

// Release is the current state of a release in the cluster.
type Release struct {
	Name      string
	Namespace string
	Chart     string // name
	Version   string // the version of the chart
	Status    string // Helm's: deployed, failed, pending-install ...
	Revision  int
	Updated   time.Time
	Manifest  string
	Values    map[string]any // the given values, without the chart's defaults
	// By is the version of paictl that wrote the revision, in the form of version.Tag; "" if it is not known.
	By string
}

// Outcome is the result of Apply.
type Outcome struct {
	Action   string
	Revision int
	// Previous is the revision that was deployed before, or 0. It skips upgrades that no run has observed to be ready.
	Previous int
	// Unproven is the revision for a rollback if this call didn't change the release, and no run has observed its last upgrade to be
	// ready; otherwise 0.
	Unproven int
	Manifest string
}

// Change is a change that Apply would make to one object.
type Change struct {
	Action string `json:"action"` // create, update, delete
	Object string `json:"object"` // Kind namespace/name
	// Diff is a unified diff of the object as YAML; the data of Secrets is masked.
	Diff string `json:"diff,omitempty"`
}

// Plan holds the changes that Apply would make.
type Plan struct {
	Action  string   `json:"action"`
	Changes []Change `json:"changes,omitempty"`
	// Kept are the definitions of kinds that the chart no longer has. They aren't removed, because that would remove all objects of
	// their kinds.
	Kept []string `json:"kept,omitempty"`
	// Loses lists, by definition, the versions and fields that objects would no longer have.
	Loses []string `json:"loses,omitempty"`
}

// Manager manages releases. Each call can be repeated safely if the program was killed during it.
type Manager interface {
	// Get returns the current release, or nil if it doesn't exist.
	Get(ctx context.Context, namespace, name string) (*Release, error)
	// List returns the current releases of a namespace, by name; "" means all namespaces.
	List(ctx context.Context, namespace string) ([]Release, error)
	// Render returns the manifests as Apply would send them.
	Render(ctx context.Context, r Request) (string, error)
	// Plan returns the changes that Apply would make, without making them.
	Plan(ctx context.Context, r Request) (Plan, error)
	// Apply installs or upgrades. It doesn't wait for pods.
	Apply(ctx context.Context, r Request) (Outcome, error)
	// Outdated returns the requested releases that run with a different chart. It leaves out releases that were never deployed.
	Outdated(ctx context.Context, requests []Request) ([]Release, error)
	// Settle records that the current revision works and was made from this paictl's chart. It creates no new revision.
	Settle(ctx context.Context, namespace, name string) error
	// Rollback restores an earlier revision. It doesn't change definitions of kinds.
	Rollback(ctx context.Context, namespace, name string, revision int) error
	// Uninstall removes the release. Objects with the annotation helm.sh/resource-policy: keep stay. If the release doesn't exist, it
	// returns no error.
	Uninstall(ctx context.Context, namespace, name string) error
}
