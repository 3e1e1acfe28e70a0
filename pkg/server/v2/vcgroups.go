package v2

import (
	"net/http"
	"slices"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

// isVC reports whether a group represents the virtual cluster with the same name. OpenPAI creates such a group for each virtual cluster.
func isVC(g *v1.GroupSpec) bool {
	return len(g.VirtualClusters) == 1 && g.VirtualClusters[0].Name == g.Name && !g.Administrator
}

// checkVCs returns an error if no group represents one of the virtual clusters.
func checkVCs(all []app.Group, names []string) error {
	for _, name := range names {
		at := slices.IndexFunc(all, func(g app.Group) bool { return g.Spec.Name == name })
		shown := wire.Shown(name)
		if at < 0 {
			return &wire.Error{Status: http.StatusNotFound, Code: "NoGroupError", Message: "there is no group " + shown + " that grants the virtual cluster", Remedy: "make it with: paictl group add " + shown + " --vc " + shown}
		}
		if !isVC(&all[at].Spec) {
			return &wire.Error{Status: http.StatusBadRequest, Code: "NoVirtualClusterError", Message: "the group " + shown + " doesn't stand for a virtual cluster of its name", Remedy: "put the person into the group itself"}
		}
	}
	return nil
}

// setVCs puts a person into exactly the groups that represent the named virtual clusters. It doesn't change the person's other groups, or the group
// default.
func setVCs(d *app.Actions, s *v1.UserSpec, all []app.Group, names []string) error {
	names, err := besideWord(d, s, all, names, func(g *v1.GroupSpec) bool { return isVC(g) && g.Name != v1.GroupDefault })
	if err != nil {
		return err
	}
	for i := range all {
		if g := &all[i].Spec; isVC(g) && g.Name != v1.GroupDefault {
			s.Groups = without(s.Groups, g.Name)
		}
	}
	for _, name := range names {
		s.Groups = with(s.Groups, name)
	}
	return nil
}

func with(names []string, name string) []string { return append(without(names, name), name) }

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}
