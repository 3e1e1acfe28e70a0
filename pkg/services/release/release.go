// Package release installs charts with Helm. Only this package uses Helm, so Helm's next major version affects only this package. In: a chart and
// values. Out: a release in the cluster. A release without differences isn't changed.
package release

import (
	"context"
	"time"

	"helm.sh/helm/v3/pkg/chart"
)

// These are the actions of an Outcome.
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
	// Upgrade allows a chart that differs from the release's chart. An upgrade also updates the definitions in the chart's folder crds. The record of the
	// previous revision remains until Settle.
	Upgrade bool
	// Downgrade allows changes of definitions that remove versions or fields. Without Downgrade, an upgrade with such a change fails, and a start keeps
	// such definitions.
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
	// By is the version of paictl that created the revision, in the form of version.Tag. By is "" if the version is unknown.
	By string
}

// Outcome is the result of Apply.
type Outcome struct {
	Action   string
	Revision int
	// Previous is the number of the previously deployed revision, or 0. Upgrades that were never ready are skipped.
	Previous int
	// Unproven is the revision for a rollback. Unproven is set if this call didn't change the release and the last upgrade hasn't been ready yet.
	// Otherwise, Unproven is 0.
	Unproven int
	Manifest string
}

// Change is a change that Apply would make to an object.
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
	// Kept lists the custom resource definitions that the chart no longer contains. These definitions stay in the cluster, because removing a definition
	// removes all objects of its kind.
	Kept []string `json:"kept,omitempty"`
	// Loses lists the versions and fields that objects would lose, by definition.
	Loses []string `json:"loses,omitempty"`
}

// Manager manages releases. An interrupted call can be repeated safely.
type Manager interface {
	// Get returns the current release with the given name, or nil.
	Get(ctx context.Context, namespace, name string) (*Release, error)
	// List returns the current releases of a namespace, sorted by name. The namespace "" means all namespaces.
	List(ctx context.Context, namespace string) ([]Release, error)
	// Render returns the manifests that Apply would send.
	Render(ctx context.Context, r Request) (string, error)
	// Plan returns the changes that Apply would make. Plan changes nothing.
	Plan(ctx context.Context, r Request) (Plan, error)
	// Apply installs or upgrades a release. Apply doesn't wait for pods.
	Apply(ctx context.Context, r Request) (Outcome, error)
	// Outdated returns the requested releases that were deployed with another chart. Outdated omits releases that were never deployed.
	Outdated(ctx context.Context, requests []Request) ([]Release, error)
	// Settle records that the current revision works and that it was created from this paictl's chart. Settle doesn't create a revision.
	Settle(ctx context.Context, namespace, name string) error
	// Rollback restores an earlier revision. Rollback doesn't change custom resource definitions.
	Rollback(ctx context.Context, namespace, name string, revision int) error
	// Uninstall removes the release. Uninstall keeps objects with the annotation helm.sh/resource-policy: keep. Uninstall returns no error if the
	// release doesn't exist.
	Uninstall(ctx context.Context, namespace, name string) error
}
