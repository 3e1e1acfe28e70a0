package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// mounted is a storage of the job, with the name of its volume in the pod and the known facts about the storage.
type mounted struct {
	protocol.Storage
	volume string // name in the pod
	facts  Storage
}

func (m mounted) claim() string {
	if m.facts.Claim != "" {
		return m.facts.Claim
	}
	return m.Name
}

// storages returns the storages that the job names, and the user's default storages if the job requests them.
func (r *renderer) storages() []mounted {
	var out []mounted
	add := func(s protocol.Storage) {
		// Volumes have generated names, because names of claims may be too long for a volume and may contain dots.
		out = append(out, mounted{s, fmt.Sprintf("storage-%d", len(out)), r.Cluster.Storages[s.Name]})
	}
	for _, s := range r.job.Extras.Storages {
		add(s)
	}
	if r.job.Extras.DefaultStorages {
		for _, name := range slices.Sorted(maps.Keys(r.Cluster.Storages)) {
			if r.Cluster.Storages[name].Default {
				add(protocol.Storage{Name: name, MountPath: "/mnt/" + name})
			}
		}
	}
	return out
}

func (r *renderer) checkStorages() {
	if r.Cluster.Storages == nil {
		return
	}
	known := slices.Sorted(maps.Keys(r.Cluster.Storages))
	for i, s := range r.job.Extras.Storages {
		if _, ok := r.Cluster.Storages[s.Name]; !ok {
			r.fail(strictyaml.Path{"extras", "storages", i}, "job/unknown-storage", fmt.Sprintf("the cluster has no storage %q", s.Name), choose(s.Name, "the storages are ", known, "ask the administrator for one (docs/storage.md), or remove the entry"))
		}
	}
}

// choose returns a remedy for an unknown name: a similar known name, the list of known names after lead, or none if there are no known names.
func choose(name, lead string, known []string, none string) string {
	if near := strictyaml.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return none
	}
	const shown = 24
	if n := len(known); n > shown {
		return lead + strings.Join(known[:shown], ", ") + " and " + plural.Of(n-shown, "other")
	}
	return lead + strings.Join(known, ", ")
}
