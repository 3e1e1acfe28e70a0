package vc

import (
	"slices"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

// ChangeSet is a set of changes to virtual clusters in the stored configuration.
type ChangeSet struct {
	Changes []Request `json:"changes"`
	// Revision is the revision on which the change is based. 0 means the current revision.
	Revision int `json:"revision,omitempty"`
	// Message describes the change in the history.
	Message string `json:"message,omitempty"`
	// DryRun returns only the effect and changes nothing.
	DryRun bool `json:"dryRun,omitempty"`
	// Force allows a change even if jobs continue in a virtual cluster that is deleted or loses all cells.
	Force bool `json:"force,omitempty"`
}

// Names returns the names of the changed virtual clusters, sorted and without duplicates.
func (o *ChangeSet) Names() []string {
	var out []string
	for i := range o.Changes {
		out = append(out, o.Changes[i].Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Outcome is the effect of a change set.
type Outcome struct {
	DryRun bool `json:"dryRun"`
	// Changed reports whether the configuration changed, or would change in a dry run.
	Changed bool `json:"changed"`
	// Pending means that the configuration already contained the changes, but the scheduler doesn't use them yet.
	Pending bool `json:"pending,omitempty"`
	// Installed reports whether the cluster has a scheduler.
	Installed bool `json:"installed"`
	// Applied reports whether the scheduler uses the new configuration.
	Applied bool `json:"applied"`
	// ClusterID and Base are the id and the revision of the original configuration. Revision is the new revision, or Base if
	// the change was pending.
	ClusterID  string `json:"clusterId"`
	Base       int    `json:"base"`
	Revision   int    `json:"revision,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	// Note explains why the effect on gangs is unknown.
	Note string `json:"note,omitempty"`
	// Problem is the scheduler's problem with the configuration before the change.
	Problem string          `json:"problem,omitempty"`
	Effect  *api.Validation `json:"effect,omitempty"`
	// Refused explains why the change needs force. Remedy is the remedy.
	Refused  string              `json:"refused,omitempty"`
	Remedy   string              `json:"remedy,omitempty"`
	Diff     string              `json:"diff,omitempty"`
	Warnings strictyaml.Findings `json:"warnings,omitempty"`
}
