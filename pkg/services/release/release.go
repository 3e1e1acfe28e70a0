// Package release installs charts with Helm. It is the only package that runs Helm, so
// that its next major version touches nothing else.
// In: a chart and values. Out: a release in the cluster, unchanged where nothing differs.
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
	Repaired  = "repaired" // objects were missing, or an earlier run was cut off
	Unchanged = "unchanged"
)

// Request is a release as it should be.
type Request struct {
	Name      string
	Namespace string
	Chart     *chart.Chart
	Values    map[string]any
	// Upgrade says that the chart may be another one than the release's. Then the definitions in its crds folder are brought up to
	// date as well, and the revision before stays noted until Settle.
	Upgrade bool
	// Downgrade lets definitions lose versions and fields. Without it an upgrade that would do so is refused, and a start leaves them.
	Downgrade bool
}

// Release is one as it is in the cluster.
type Release struct {
	Name      string
	Namespace string
	Chart     string // name
	Version   string // of the chart
	Status    string // Helm's: deployed, failed, pending-install ...
	Revision  int
	Updated   time.Time
	Manifest  string
	Values    map[string]any // those given, without the chart's defaults
	// By is the paictl that wrote the revision, as version.Tag spells it; "" where it is not known.
	By string
}

// Outcome says what Apply did.
type Outcome struct {
	Action   string
	Revision int
	// Previous is the revision that was deployed before, 0 where there was none. Upgrades that no run has seen ready don't count.
	Previous int
	// Unproven is the revision to go back to of a release that this call left unchanged, and whose upgrade no run has seen ready;
	// 0 for others.
	Unproven int
	Manifest string
}

// Change is what Apply would do to one object.
type Change struct {
	Action string `json:"action"` // create, update, delete
	Object string `json:"object"` // Kind namespace/name
	// Diff is a unified diff of the object as YAML; the data of Secrets is masked.
	Diff string `json:"diff,omitempty"`
}

// Plan is what Apply would do.
type Plan struct {
	Action  string   `json:"action"`
	Changes []Change `json:"changes,omitempty"`
	// Kept are definitions of kinds that the chart no longer has. They stay, because all objects of their kinds would go with them.
	Kept []string `json:"kept,omitempty"`
	// Loses says, by definition, which versions and fields objects would no longer have.
	Loses []string `json:"loses,omitempty"`
}

// Manager keeps releases. Each call is safe to repeat after the program was killed in it.
type Manager interface {
	// Get returns the current release, or nil where there is none.
	Get(ctx context.Context, namespace, name string) (*Release, error)
	// List returns the current releases of a namespace, by name; "" means all namespaces.
	List(ctx context.Context, namespace string) ([]Release, error)
	// Render returns the manifests as Apply would send them.
	Render(ctx context.Context, r Request) (string, error)
	// Plan says what Apply would do, and changes nothing.
	Plan(ctx context.Context, r Request) (Plan, error)
	// Apply installs or upgrades. It doesn't wait for pods.
	Apply(ctx context.Context, r Request) (Outcome, error)
	// Outdated returns those of the requested releases that run with another chart. Releases that were never deployed are none of them.
	Outdated(ctx context.Context, requests []Request) ([]Release, error)
	// Settle notes of the current revision that it works and is what this paictl's chart makes of it. It makes no new revision.
	Settle(ctx context.Context, namespace, name string) error
	// Rollback goes back to an earlier revision. Definitions of kinds stay as they are.
	Rollback(ctx context.Context, namespace, name string, revision int) error
	// Uninstall removes the release. Objects that say helm.sh/resource-policy: keep stay.
	// A release that isn't there is no error.
	Uninstall(ctx context.Context, namespace, name string) error
}
