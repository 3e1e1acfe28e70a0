package openpai

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// here returns the groups that exist in this cluster, and the groups that the platform always creates.
func here(d *people.Directory) map[string]v1.GroupSpec {
	out := map[string]v1.GroupSpec{}
	for _, g := range people.FirstGroups() {
		out[g.Name] = g
	}
	for _, g := range d.Groups() {
		out[g.Spec.Name] = g.Spec
	}
	return out
}

// places maps the groups of this cluster, including the planned groups, to whether the members of OpenPAI's group with the same name may be added. A
// group with the same name may be unrelated, and the members must not get more rights than in OpenPAI.
type places map[string]bool

// join adds a person to groups, and notes the groups that are left out.
func (s *Step) join(names []string, into places) {
	for _, g := range names {
		may, there := into[g]
		switch {
		case may:
			s.user.Groups = append(s.user.Groups, g)
		case there:
			s.note("the group %s is left out, it grants more here than in OpenPAI: paictl group add-member %s %s", g, g, s.Name)
		default:
			s.note("the group %s doesn't exist", g)
		}
	}
}

// noMore reports whether all grants of a group are also grants of another group.
func noMore(g, than *v1.GroupSpec) bool {
	for _, storage := range g.Storages {
		if !slices.Contains(than.Storages, storage) {
			return false
		}
	}
	if than.Administrator {
		return true
	}
	return !g.Administrator && !g.AllVirtualClusters && len(g.Pages) == 0 && !slices.ContainsFunc(g.VirtualClusters, func(vc v1.VCGrant) bool {
		i := slices.IndexFunc(than.VirtualClusters, func(other v1.VCGrant) bool { return other.Name == vc.Name })
		return i < 0 || vc.HostNetwork || rules.Higher("", vc.MaxPriority) != "" || vc.SeeJobs && !than.VirtualClusters[i].SeeJobs
	})
}

// grants returns the grants of an OpenPAI group in the form of this cluster.
func (g *Group) grants(o Options) *v1.GroupSpec {
	spec := &v1.GroupSpec{Name: g.Name, Administrator: g.ACLs.Admin, Storages: compact(g.ACLs.Storages)}
	for _, vc := range compact(g.ACLs.VirtualClusters) {
		spec.VirtualClusters = append(spec.VirtualClusters, v1.VCGrant{Name: vc, SeeJobs: o.SeeJobs})
	}
	return spec
}

// planGroup returns the step for a group. It also records in into whether people may be added to the group.
func planGroup(g *Group, have map[string]v1.GroupSpec, o Options, into places) Step {
	s := Step{Kind: KindGroup, Name: g.Name, Action: Add}
	if !v1.ValidName(g.Name) {
		s.Action = LeaveOut
		s.note("the name must begin and end with a letter or digit, and have at most %d characters", v1.MaxName)
		return s
	}
	spec := g.grants(o)
	if kept, there := have[g.Name]; there {
		s.Action, into[g.Name] = Keep, noMore(&kept, spec)
		s.missing(g, &kept)
		return s
	}
	into[g.Name] = true
	spec.Description = g.Description
	if len(spec.Description) > 1024 {
		spec.Description = strings.ToValidUTF8(spec.Description[:1024], "")
		s.note("the description is cut")
	}
	switch {
	case g.External == "":
	case o.Provider == "":
		s.note("the external name %s is left out: name its provider of sign-ins with --provider", g.External)
	default:
		spec.External = []v1.ExternalGroup{{Provider: o.Provider, Name: g.External}}
	}
	if text, err := json.Marshal(g.Extension); err == nil && len(g.Extension) > 0 {
		spec.Extension = &runtime.RawExtension{Raw: text}
	}
	s.group = spec
	return s
}

func compact(names []string) []string {
	var out []string
	for _, n := range names {
		if n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// missing adds notes about grants that a group had in OpenPAI, but doesn't have in this cluster.
func (s *Step) missing(g *Group, have *v1.GroupSpec) {
	var flags []string
	for _, vc := range compact(g.ACLs.VirtualClusters) {
		if !have.AllVirtualClusters && !slices.ContainsFunc(have.VirtualClusters, func(v v1.VCGrant) bool { return v.Name == vc }) {
			flags = append(flags, "--add-vc "+vc)
		}
	}
	for _, storage := range compact(g.ACLs.Storages) {
		if !slices.Contains(have.Storages, storage) {
			flags = append(flags, "--add-storage "+storage)
		}
	}
	if len(flags) > 0 {
		s.note("it granted more in OpenPAI: paictl group set %s %s", s.Name, strings.Join(flags, " "))
	}
	if g.ACLs.Admin && !have.Administrator {
		s.note("it made administrators in OpenPAI, and doesn't here")
	}
}
