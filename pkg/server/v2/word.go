package v2

import (
	"net/http"
	"slices"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/desk"
	"github.com/openpai/paictl/pkg/server/wire"
)

// codeWord is of a change that a provider's word stands against.
const codeWord = "ConflictError"

// stays refuses to take a person out of groups that a provider says they are in: they would stay in them, and keep what these grant.
func stays(d *desk.Desk, name string, all []desk.Group, leaves func(*v1.GroupSpec) bool) error {
	p, err := d.User(name)
	if err != nil {
		return err
	}
	for i := range all {
		if g := &all[i].Spec; leaves(g) && p.ByWord(g) {
			return &wire.Error{Status: http.StatusConflict, Code: codeWord, Message: wire.Shown(p.Name) + " stays in the group " + wire.Shown(g.Name) + ", since the provider of their sign-in says so",
				Remedy: "take them out of it there, or take the provider's group off " + wire.Shown(g.Name) + ", or disable the person"}
		}
	}
	return nil
}

// besideWord are those of the groups named in which a person is to be by name. What a provider says is left to the provider: lists that clients
// read and send back have it, too. Of the groups that a list is of, none may be missing that a provider keeps the person in.
func besideWord(d *desk.Desk, s *v1.UserSpec, all []desk.Group, names []string, of func(*v1.GroupSpec) bool) ([]string, error) {
	if err := stays(d, s.Name, all, func(g *v1.GroupSpec) bool { return of(g) && !slices.Contains(names, g.Name) }); err != nil {
		return nil, err
	}
	p, err := d.User(s.Name)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.Contains(s.Groups, name) && slices.ContainsFunc(all, func(g desk.Group) bool { return g.Spec.Name == name && p.ByWord(&g.Spec) })
	}), nil
}
