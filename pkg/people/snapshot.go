package people

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// AnnotationSessions is an annotation of a User with a number that increases when all sessions of the person end. Sessions with a lower number have
// ended.
const AnnotationSessions = "paictl.openpai.org/sessions"

// AnnotationFrom is an annotation of a User with the name of the system from which the User was imported.
const AnnotationFrom = "paictl.openpai.org/from"

// AnnotationTaken is an annotation that lists the imported data of such a User. If the annotation is missing, the import was interrupted.
const AnnotationTaken = "paictl.openpai.org/taken"

// snapshot is the state of all people at one moment.
type snapshot struct {
	version    int64 // the version of the stores
	people     map[string]*Person
	sorted     []*Person
	byUID      map[types.UID]*Person
	byIdentity map[v1.Identity]*Person
	taken      map[string]*v1.User // by folded name, removed people included
	groups     []*v1.Group
	byGroup    map[string]*v1.Group
	members    map[string][]string
	ignored    map[string]string
}

func newSnapshot(users map[string]*v1.User, groups map[string]*v1.Group, badUsers, badGroups map[string]string) *snapshot {
	s := &snapshot{
		people: map[string]*Person{}, byUID: map[types.UID]*Person{}, byIdentity: map[v1.Identity]*Person{}, taken: map[string]*v1.User{},
		byGroup: map[string]*v1.Group{}, members: map[string][]string{}, ignored: map[string]string{},
	}
	maps.Copy(s.ignored, badUsers)
	maps.Copy(s.ignored, badGroups)
	for _, g := range groups {
		s.byGroup[g.Spec.Name] = g
	}
	for _, name := range slices.Sorted(maps.Keys(s.byGroup)) {
		s.groups = append(s.groups, s.byGroup[name])
	}
	// If two people have the same identity, the older person keeps it.
	elders := slices.SortedFunc(maps.Values(users), func(a, b *v1.User) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	for _, u := range elders {
		s.add(u)
	}
	s.sorted = slices.SortedFunc(maps.Values(s.people), func(a, b *Person) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range s.sorted {
		for _, g := range p.Groups {
			s.members[g] = append(s.members[g], p.Name)
		}
	}
	return s
}

func (s *snapshot) add(u *v1.User) {
	if elder := s.taken[v1.FoldName(u.Spec.Name)]; elder != nil {
		s.ignored[u.Name] = "spec.name: it differs from " + elder.Spec.Name + " in case only"
		return
	}
	for _, id := range u.Spec.Identities {
		if other := s.byIdentity[id]; other != nil {
			s.ignored[u.Name] = "spec.identities: " + id.Subject + " of " + id.Provider + " is " + other.Name
			return
		}
	}
	s.taken[v1.FoldName(u.Spec.Name)] = u
	if u.Spec.Removed {
		return
	}
	p := newPerson(u, s.groups)
	s.people[p.Name], s.byUID[p.UID] = p, p
	for _, id := range u.Spec.Identities {
		s.byIdentity[id] = p
	}
}

// newPerson returns a person with the person's groups and grants. groups holds all groups of the cluster, sorted by name.
func newPerson(u *v1.User, groups []*v1.Group) *Person {
	p := &Person{Name: u.Spec.Name, UID: u.UID, Disabled: u.Spec.Disabled, User: u, Sessions: sessions(u), Unconfirmed: gone(u)}
	p.Grants.VCs, p.Grants.Pages = map[string]rules.VC{}, map[string]bool{}
	for _, g := range groups {
		if isIn(u, g) {
			p.Groups = append(p.Groups, g.Spec.Name)
			grant(&p.Grants, &g.Spec)
		}
	}
	return p
}

// sessions returns the lowest number of a valid session of the user.
func sessions(u *v1.User) int64 {
	n, err := strconv.ParseInt(u.Annotations[AnnotationSessions], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// isIn reports whether a user is in a group, by name or through a provider.
func isIn(u *v1.User, g *v1.Group) bool {
	return slices.Contains(u.Spec.Groups, g.Spec.Name) || byWord(u, &g.Spec)
}

// InProviderGroup reports whether the person is in a group through a provider. A change of the person's own groups can't end that membership.
func (p *Person) InProviderGroup(g *v1.GroupSpec) bool { return byWord(p.User, g) }

func byWord(u *v1.User, g *v1.GroupSpec) bool {
	for _, want := range g.External {
		for _, have := range u.Status.External {
			if have.Provider == want.Provider && slices.Contains(have.Groups, want.Name) && linked(u, have) {
				return true
			}
		}
	}
	return false
}

// linked reports whether a provider's answer belongs to one of the user's identities.
func linked(u *v1.User, e v1.External) bool {
	return slices.Contains(u.Spec.Identities, v1.Identity{Provider: e.Provider, Subject: e.Subject})
}

// gone reports whether a user has identities but no provider confirms any of them.
func gone(u *v1.User) bool {
	for _, id := range u.Spec.Identities {
		if !slices.ContainsFunc(u.Status.External, func(e v1.External) bool { return e.Gone && e.Provider == id.Provider && e.Subject == id.Subject }) {
			return false
		}
	}
	return len(u.Spec.Identities) > 0
}

func grant(to *rules.Grants, g *v1.GroupSpec) {
	to.Administrator = to.Administrator || g.Administrator
	to.AllVCs = to.AllVCs || g.AllVirtualClusters
	for _, vc := range g.VirtualClusters {
		have, there := to.VCs[vc.Name]
		if !there {
			have.MaxPriority = vc.MaxPriority
		}
		to.VCs[vc.Name] = rules.VC{
			SeeJobs: have.SeeJobs || vc.SeeJobs, HostNetwork: have.HostNetwork || vc.HostNetwork, MaxPriority: rules.Higher(have.MaxPriority, vc.MaxPriority),
		}
	}
	for _, storage := range g.Storages {
		if !slices.Contains(to.Storages, storage) {
			to.Storages = append(to.Storages, storage)
		}
	}
	for _, page := range g.Pages {
		to.Pages[page] = true
	}
}
