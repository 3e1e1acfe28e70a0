package vc

import (
	"slices"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

// ChangeSet is a change of virtual clusters in the configuration that a cluster stores.
type ChangeSet struct {
	Changes []Request `json:"changes"`
	// Revision is the revision that the change is based on; 0 is the current one.
	Revision int `json:"revision,omitempty"`
	// Message is the reason, for the history.
	Message string `json:"message,omitempty"`
	// DryRun returns the effect without changing anything.
	DryRun bool `json:"dryRun,omitempty"`
	// Force allows a change even if jobs then continue in a virtual cluster that is deleted, or that keeps no cells.
	Force bool `json:"force,omitempty"`
}

// Names returns the virtual clusters that it changes, by name.
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
	// Changed reports whether the configuration has changed, or would change.
	Changed bool `json:"changed"`
	// Pending reports whether it hasn't changed because it already has the change, and the scheduler doesn't use that
	// yet.
	Pending bool `json:"pending,omitempty"`
	// Installed reports whether the cluster has a scheduler.
	Installed bool `json:"installed"`
	// Applied reports whether the scheduler uses the new configuration.
	Applied bool `json:"applied"`
	// ClusterID and Base are the id and the revision of the configuration that was changed; Revision is the new one, or Base if the change was pending.
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
