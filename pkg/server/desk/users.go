package desk

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Person is a person as far as the caller sees them: where View.Whole is not set, name and e-mail address are all that may be told.
type Person struct {
	*people.Person
	View rules.UserView
}

// Users are all people, by name.
func (d *Desk) Users() ([]Person, error) {
	if err := rules.Class("user.list", &d.caller.Subject); err != nil {
		return nil, err
	}
	var out []Person
	for _, p := range d.shop.People.Users() {
		out = append(out, Person{p, rules.ViewUser(&d.caller.Subject, p.Name)})
	}
	return out, nil
}

// User is one of them.
func (d *Desk) User(name string) (*Person, error) {
	if err := rules.Class("user.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	p, err := d.shop.People.Person(name)
	if err != nil {
		return nil, err
	}
	return &Person{p, rules.ViewUser(&d.caller.Subject, p.Name)}, nil
}

// person is a person as a thing.
func person(name string) rules.Thing {
	return rules.Thing{Kind: rules.KindUser, Owner: name, Name: name}
}

// AddUser adds a person. With check it finds out what is wrong alone.
func (d *Desk) AddUser(ctx context.Context, n people.NewUser, check bool) (p *Person, err error) {
	if err := rules.Class("user.manage", &d.caller.Subject); err != nil {
		return nil, d.audited(ctx, "user.manage", person(n.Name), map[string]string{"change": "add"}, err)
	}
	if check {
		return nil, d.shop.People.CheckNew(n)
	}
	made, err := d.shop.People.Add(ctx, n)
	if err := d.audited(ctx, "user.manage", person(n.Name), map[string]string{"change": "add"}, err); err != nil {
		return nil, err
	}
	return &Person{made, rules.UserView{Whole: true, Extension: true}}, nil
}

// errChanged is of a change of something that is another one by now.
var errChanged = &wire.Error{Status: http.StatusConflict, Code: "ConflictError", Message: "someone else has changed it meanwhile", Remedy: "look at it again, and repeat the change"}

// UpdateUser makes a person another one. Of themselves people change e-mail address, displayed name and public keys.
func (d *Desk) UpdateUser(ctx context.Context, name string, was, now v1.UserSpec) (*Person, error) {
	rule := "user.manage"
	if !d.caller.Grants.Administrator && d.caller.Name == name {
		rule = "user.change.self"
	}
	made, err := d.updateUser(ctx, rule, name, was, now)
	if err := d.audited(ctx, rule, person(name), nil, err); err != nil {
		return nil, err
	}
	return &Person{made, rules.ViewUser(&d.caller.Subject, name)}, nil
}

func (d *Desk) updateUser(ctx context.Context, rule, name string, was, now v1.UserSpec) (*people.Person, error) {
	if err := rules.Decide(rule, &d.caller.Subject, person(name)); err != nil {
		return nil, err
	}
	return d.shop.People.Update(ctx, name, func(spec *v1.UserSpec) error {
		if !reflect.DeepEqual(plain(*spec), plain(was)) {
			return errChanged
		}
		if rule == "user.change.self" {
			allowed := *spec
			allowed.Email, allowed.DisplayName, allowed.SSHKeys = now.Email, now.DisplayName, now.SSHKeys
			if !reflect.DeepEqual(plain(allowed), plain(now)) {
				return &rules.ForbiddenError{Why: "you may change your e-mail address, your displayed name and your public keys; an administrator changes the rest"}
			}
		}
		*spec = now
		return nil
	})
}

// plain makes lists that are empty and lists that aren't there alike.
func plain(s v1.UserSpec) v1.UserSpec {
	s.Groups, s.Identities, s.SSHKeys = append([]string{}, s.Groups...), append([]v1.Identity{}, s.Identities...), append([]v1.SSHKey{}, s.SSHKeys...)
	return s
}

// SetPassword sets a person's password, and ends their sessions. Whoever sets their own shows the old one.
func (d *Desk) SetPassword(ctx context.Context, name string, old, password secret.String) error {
	rule := "user.manage"
	if d.caller.Name == name {
		rule = "user.change.self"
	}
	return d.audited(ctx, rule, person(name), map[string]string{"change": "password"}, d.setPassword(ctx, rule, name, old, password))
}

func (d *Desk) setPassword(ctx context.Context, rule, name string, old, password secret.String) error {
	if err := rules.Decide(rule, &d.caller.Subject, person(name)); err != nil {
		return err
	}
	if rule == "user.change.self" {
		if !old.IsSet() {
			return wire.Bad(`"oldPassword" is required for one's own password`)
		}
		if _, err := d.shop.SignIn.SignIn(ctx, name, old, d.origin.Address); err != nil {
			return err
		}
	}
	return d.shop.People.SetPassword(ctx, name, password)
}

// RemoveUser removes a person. The name stays taken.
func (d *Desk) RemoveUser(ctx context.Context, name string) error {
	err := rules.Class("user.manage", &d.caller.Subject)
	if err == nil {
		err = d.shop.People.Remove(ctx, name)
	}
	return d.audited(ctx, "user.manage", person(name), map[string]string{"change": "remove"}, err)
}

// Group is a group as far as the caller sees it: Whole is what it grants, Members are told to who may ask for them.
type Group struct {
	*v1.Group
	Whole   bool
	Members []string
}

// Extension is what OpenPAI's clients stored with a person, for who may see it.
func (d *Desk) Extension(ctx context.Context, name string) (people.Extension, error) {
	if err := rules.Class("user.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	if !rules.ViewUser(&d.caller.Subject, name).Extension {
		return nil, &rules.ForbiddenError{Why: "what is stored with " + name + " isn't for you"}
	}
	return d.shop.People.Extension(ctx, name)
}

// MergeExtension sets keys of what clients store with a person: one's own, or, for administrators, anyone's.
func (d *Desk) MergeExtension(ctx context.Context, name string, keys people.Extension) error {
	rule := "user.manage"
	if d.caller.Name == name {
		rule = "user.change.self"
	}
	err := rules.Decide(rule, &d.caller.Subject, person(name))
	if err == nil {
		_, err = d.shop.People.MergeExtension(ctx, name, keys)
	}
	return d.audited(ctx, rule, person(name), map[string]string{"change": "extension"}, err)
}

// Members are who is in a group; none of one that isn't there.
func (d *Desk) Members(group string) ([]*people.Person, error) {
	if err := rules.Class("group.members", &d.caller.Subject); err != nil {
		return nil, err
	}
	var out []*people.Person
	for _, name := range d.shop.People.Members(group) {
		if p, err := d.shop.People.Person(name); err == nil {
			out = append(out, p)
		}
	}
	return out, nil
}

// Groups are all groups, by name.
func (d *Desk) Groups() ([]Group, error) {
	if err := rules.Class("group.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	var out []Group
	for _, g := range d.shop.People.Groups() {
		out = append(out, d.shown(g))
	}
	return out, nil
}

// Group is one of them.
func (d *Desk) Group(name string) (*Group, error) {
	if err := rules.Class("group.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	g, err := d.shop.People.Group(name)
	if err != nil {
		return nil, err
	}
	out := d.shown(g)
	return &out, nil
}

func (d *Desk) shown(g *v1.Group) Group {
	out := Group{Group: g, Whole: rules.ViewGroup(&d.caller.Subject, g.Spec.Name)}
	if rules.Class("group.members", &d.caller.Subject) == nil {
		out.Members = d.shop.People.Members(g.Spec.Name)
	}
	return out
}

// PutGroup makes a group, where was is nil, or makes it another one.
func (d *Desk) PutGroup(ctx context.Context, was *v1.GroupSpec, now v1.GroupSpec) (*Group, error) {
	made, err := d.putGroup(ctx, was, now)
	if err := d.audited(ctx, "group.manage", rules.Thing{Kind: rules.KindGroup, Name: now.Name}, nil, err); err != nil {
		return nil, err
	}
	out := d.shown(made)
	return &out, nil
}

func (d *Desk) putGroup(ctx context.Context, was *v1.GroupSpec, now v1.GroupSpec) (*v1.Group, error) {
	if err := rules.Class("group.manage", &d.caller.Subject); err != nil {
		return nil, err
	}
	have, err := d.shop.People.Group(now.Name)
	switch {
	case errors.Is(err, people.ErrNoGroup) && was == nil:
		return d.shop.People.PutGroup(ctx, &v1.Group{Spec: now})
	case err != nil:
		return nil, err
	case was == nil:
		return nil, &wire.Error{Status: http.StatusConflict, Code: "ConflictError", Message: "there is a group " + now.Name + " already"}
	case !sameGroup(&have.Spec, was):
		return nil, errChanged
	}
	next := have.DeepCopy()
	next.Spec = now
	return d.shop.People.PutGroup(ctx, next)
}

func sameGroup(a, b *v1.GroupSpec) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	for _, g := range []*v1.GroupSpec{x, y} {
		g.External, g.VirtualClusters = append([]v1.ExternalGroup{}, g.External...), append([]v1.VCGrant{}, g.VirtualClusters...)
		g.Storages, g.Pages = append([]string{}, g.Storages...), append([]string{}, g.Pages...)
		if g.Extension != nil && len(g.Extension.Raw) == 0 {
			g.Extension = nil
		}
	}
	return reflect.DeepEqual(x, y)
}

// DeleteGroup deletes a group and takes its members out of it.
func (d *Desk) DeleteGroup(ctx context.Context, name string) error {
	err := rules.Class("group.manage", &d.caller.Subject)
	if err == nil {
		err = d.shop.People.DeleteGroup(ctx, name)
	}
	return d.audited(ctx, "group.manage", rules.Thing{Kind: rules.KindGroup, Name: name}, map[string]string{"change": "delete"}, err)
}

// Types of the libraries, for handlers, which don't have those.
type (
	// NewUser is a person to be added.
	NewUser = people.NewUser
	// TokenRecord is what is known of a token.
	TokenRecord = token.Record
)
