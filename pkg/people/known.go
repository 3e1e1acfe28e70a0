package people

import (
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// Known holds the names that groups may grant. If a list is nil, groups may grant any name of that kind.
type Known struct{ VirtualClusters, Storages []string }

// Grants reports whether now grants a virtual cluster or a storage that was doesn't grant. was is nil for a new group.
func Grants(was, now *v1.GroupSpec) bool { return len(newVCs(was, now))+len(newStorages(was, now)) > 0 }

// Check rejects new grants of virtual clusters or storages that don't exist. It doesn't check existing grants, because a deleted virtual cluster must
// not block other changes of the group.
func (k *Known) Check(was, now *v1.GroupSpec) error {
	for _, kind := range []struct {
		field, noun string
		names, have []string
	}{
		{"virtual clusters", "virtual cluster", newVCs(was, now), k.VirtualClusters},
		{"storages", "storage", newStorages(was, now), k.Storages},
	} {
		for _, name := range kind.names {
			if kind.have == nil || slices.Contains(kind.have, name) {
				continue
			}
			remedy := "take one of: " + strings.Join(slices.Sorted(slices.Values(kind.have)), ", ")
			if len(kind.have) == 0 {
				remedy = "make the " + kind.noun + " first"
			}
			if near := strictyaml.Nearest(name, kind.have); near != "" {
				remedy = "did you mean " + near + "?"
			}
			return hint.Wrap(invalid(kind.field, "the cluster has no %s %q", kind.noun, name), remedy)
		}
	}
	return nil
}

// Exists returns an error if the cluster has no virtual cluster of this name.
func (k *Known) Exists(vc string) error {
	return k.Check(nil, &v1.GroupSpec{VirtualClusters: []v1.VCGrant{{Name: vc}}})
}

// Less returns a person's grants without virtual clusters and storages that don't exist.
func (k *Known) Less(g rules.Grants) rules.Grants {
	if k.VirtualClusters != nil {
		g.VCs = maps.Clone(g.VCs)
		maps.DeleteFunc(g.VCs, func(name string, _ rules.VC) bool { return !slices.Contains(k.VirtualClusters, name) })
	}
	if k.Storages != nil {
		g.Storages = slices.DeleteFunc(slices.Clone(g.Storages), func(name string) bool { return !slices.Contains(k.Storages, name) })
	}
	return g
}

func newVCs(was, now *v1.GroupSpec) []string {
	names := func(g *v1.GroupSpec) map[string]bool {
		out := map[string]bool{}
		for i := range g.VirtualClusters {
			out[g.VirtualClusters[i].Name] = true
		}
		return out
	}
	return added(was, now, names)
}

func newStorages(was, now *v1.GroupSpec) []string {
	return added(was, now, func(g *v1.GroupSpec) map[string]bool {
		out := map[string]bool{}
		for _, name := range g.Storages {
			out[name] = true
		}
		return out
	})
}

// added returns the sorted names that now contains and was doesn't contain.
func added(was, now *v1.GroupSpec, names func(*v1.GroupSpec) map[string]bool) []string {
	out := names(now)
	if was != nil {
		had := names(was)
		maps.DeleteFunc(out, func(name string, _ bool) bool { return had[name] })
	}
	return slices.Sorted(maps.Keys(out))
}
