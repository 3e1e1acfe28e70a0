package vc

import (
	"slices"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

// ChangeSet is a set of changes to virtual clusters in the configuration that a cluster stores.
type ChangeSet struct {
	Changes []Request `json:"changes"`
	// Revision is the revision of the configuration that the change is based on. 0 means the current revision.
	Revision int `json:"revision,omitempty"`
	// Message explains the change in the history.
	Message string `json:"message,omitempty"`
	// DryRun means that only the effect is returned and nothing is changed.
	DryRun bool `json:"dryRun,omitempty"`
	// Force allows a change even if jobs then continue in a virtual cluster that is deleted or keeps no cells.
	Force bool `json:"force,omitempty"`
}

// Names returns the names of the virtual clusters that the set changes, sorted and without duplicates.
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
	// Pending reports that the configuration didn't change because it already contains the changes, but that the scheduler doesn't use them yet.
	Pending bool `json:"pending,omitempty"`
	// Installed reports whether the cluster has a scheduler.
	Installed bool `json:"installed"`
	// Applied reports whether the scheduler uses the new configuration.
	Applied bool `json:"applied"`
	// ClusterID and Base are the id and the revision of the configuration that was changed. Revision is the new revision, or Base if the change was
	// pending.
	ClusterID  string `json:"clusterId"`
	Base       int    `json:"base"`
	Revision   int    `json:"revision,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	// Note explains why the effect on gangs isn't known.
	Note string `json:"note,omitempty"`
	// Problem is the scheduler's problem with the configuration before the change.
	Problem string          `json:"problem,omitempty"`
	Effect  *api.Validation `json:"effect,omitempty"`
	// Refused and Remedy explain why the change needs force.
	Refused  string              `json:"refused,omitempty"`
	Remedy   string              `json:"remedy,omitempty"`
	Diff     string              `json:"diff,omitempty"`
	Warnings strictyaml.Findings `json:"warnings,omitempty"`
}
