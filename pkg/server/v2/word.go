package v2

import (
	"net/http"
	"slices"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

// codeWord is the error code for a change that contradicts a sign-in provider.
const codeWord = "ConflictError"

// stays returns an error if a change removes a person from a group to which a sign-in provider adds the person. The person would remain in the group.
// leaves selects the groups that the person would leave.
func stays(d *app.Actions, name string, all []app.Group, leaves func(*v1.GroupSpec) bool) error {
	p, err := d.User(name)
	if err != nil {
		return err
	}
	for i := range all {
		if g := &all[i].Spec; leaves(g) && p.InProviderGroup(g) {
			return &wire.Error{Status: http.StatusConflict, Code: codeWord, Message: wire.Shown(p.Name) + " stays in the group " + wire.Shown(g.Name) + ", since the provider of their sign-in says so",
				Remedy: "remove them from the group there, or remove the provider's group from " + wire.Shown(g.Name) + ", or disable the person"}
		}
	}
	return nil
}

// besideWord returns names without the groups that the person is in only through a provider. Clients read lists that contain these groups, and send
// the lists back. besideWord returns an error if of selects a group to which a provider adds the person, and names doesn't contain that group.
func besideWord(d *app.Actions, s *v1.UserSpec, all []app.Group, names []string, of func(*v1.GroupSpec) bool) ([]string, error) {
	if err := stays(d, s.Name, all, func(g *v1.GroupSpec) bool { return of(g) && !slices.Contains(names, g.Name) }); err != nil {
		return nil, err
	}
	p, err := d.User(s.Name)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.Contains(s.Groups, name) && slices.ContainsFunc(all, func(g app.Group) bool { return g.Spec.Name == name && p.InProviderGroup(&g.Spec) })
	}), nil
}
