package v2

import (
	"net/http"
	"slices"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

// codeWord is the code of the error for a change that contradicts a sign-in provider.
const codeWord = "ConflictError"

// stays returns an error for a change that removes a person from groups of a provider. The provider would keep the person in these groups, with their
// grants.
func stays(d *app.Actions, name string, all []app.Group, leaves func(*v1.GroupSpec) bool) error {
	p, err := d.User(name)
	if err != nil {
		return err
	}
	for i := range all {
		if g := &all[i].Spec; leaves(g) && p.ByWord(g) {
			return &wire.Error{Status: http.StatusConflict, Code: codeWord, Message: wire.Shown(p.Name) + " stays in the group " + wire.Shown(g.Name) + ", since the provider of their sign-in says so",
				Remedy: "remove them from the group there, or remove the provider's group from " + wire.Shown(g.Name) + ", or disable the person"}
		}
	}
	return nil
}

// besideWord returns the names of groups that a person is added to by name. It leaves out groups that the person is in only through a provider,
// because clients read lists with these groups and send them back. It returns an error if names doesn't have a group that of selects and in which a
// provider keeps the person.
func besideWord(d *app.Actions, s *v1.UserSpec, all []app.Group, names []string, of func(*v1.GroupSpec) bool) ([]string, error) {
	if err := stays(d, s.Name, all, func(g *v1.GroupSpec) bool { return of(g) && !slices.Contains(names, g.Name) }); err != nil {
		return nil, err
	}
	p, err := d.User(s.Name)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.Contains(s.Groups, name) && slices.ContainsFunc(all, func(g app.Group) bool { return g.Spec.Name == name && p.ByWord(&g.Spec) })
	}), nil
}
