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
	// Upgrade allows a chart that differs from the release's chart. In this case, the definitions in the chart's folder crds are also updated, and
	// the previous revision remains recorded until Settle.
	Upgrade bool
	// Downgrade allows definitions to lose versions and fields. Without it, an upgrade that would remove versions or fields fails, and a start
	// doesn't change such definitions.
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
	// By is the version of paictl that wrote the revision, in the form of version.Tag. It is "" if the version isn't known.
	By string
}

// Outcome is the result of Apply.
type Outcome struct {
	Action   string
	Revision int
	// Previous is the revision that was deployed before, or 0. Upgrades that no run has observed to be ready are skipped.
	Previous int
	// Unproven is the revision for a rollback if this call didn't change the release, and no run has observed the release's last upgrade to be
	// ready. Otherwise it is 0.
	Unproven int
	Manifest string
}

// Change is a change that Apply would make to one object.
type Change struct {
	Action string `json:"action"` // create, update, delete
	Object string `json:"object"` // Kind namespace/name
	// Diff is a unified diff of the object in YAML. The data of Secrets is masked.
	Diff string `json:"diff,omitempty"`
}

// Plan describes the changes that Apply would make.
type Plan struct {
	Action  string   `json:"action"`
	Changes []Change `json:"changes,omitempty"`
	// Kept lists the custom resource definitions that the chart no longer contains. They aren't removed, because that would remove all objects of
	// their kinds.
	Kept []string `json:"kept,omitempty"`
	// Loses lists the versions and fields that objects would lose, by definition.
	Loses []string `json:"loses,omitempty"`
}

// Manager manages releases. If the program was killed during a call, the call can be repeated safely.
type Manager interface {
	// Get returns the current release, or nil if there is no release with this name.
	Get(ctx context.Context, namespace, name string) (*Release, error)
	// List returns the current releases of a namespace, sorted by name. "" means all namespaces.
	List(ctx context.Context, namespace string) ([]Release, error)
	// Render returns the manifests as Apply would send them.
	Render(ctx context.Context, r Request) (string, error)
	// Plan returns the changes that Apply would make. It changes nothing.
	Plan(ctx context.Context, r Request) (Plan, error)
	// Apply installs or upgrades a release. It doesn't wait for pods.
	Apply(ctx context.Context, r Request) (Outcome, error)
	// Outdated returns the requested releases that run with another chart. It omits releases that were never deployed.
	Outdated(ctx context.Context, requests []Request) ([]Release, error)
	// Settle records that the current revision works, and that it was made from the chart of this paictl. It doesn't create a revision.
	Settle(ctx context.Context, namespace, name string) error
	// Rollback restores an earlier revision. It doesn't change custom resource definitions.
	Rollback(ctx context.Context, namespace, name string, revision int) error
	// Uninstall removes the release. Objects with the annotation helm.sh/resource-policy: keep are kept. If the release doesn't exist, Uninstall
	// returns no error.
	Uninstall(ctx context.Context, namespace, name string) error
}
