package app

import (
	"context"
	"net/http"
	"reflect"
	"strconv"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Person is a person with a View, which determines the fields that the caller may read. If View.Whole is false, the response may contain only the
// name and the e-mail address.
type Person struct {
	*people.Person
	View rules.UserView
}

// Users returns all people, sorted by name.
func (d *Actions) Users() ([]Person, error) {
	if err := rules.Class("user.list", &d.caller.Subject); err != nil {
		return nil, err
	}
	var out []Person
	for _, p := range d.app.People.Users() {
		out = append(out, Person{p, rules.ViewUser(&d.caller.Subject, p.Name)})
	}
	return out, nil
}

// User returns the person with the given name.
func (d *Actions) User(name string) (*Person, error) {
	if err := rules.Class("user.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	p, err := d.app.People.Person(name)
	if err != nil {
		return nil, err
	}
	return &Person{p, rules.ViewUser(&d.caller.Subject, p.Name)}, nil
}

func person(name string) rules.Object {
	return rules.Object{Kind: rules.KindUser, Owner: name, Name: name}
}

// AddUser adds a person. If check is true, it only validates the request.
func (d *Actions) AddUser(ctx context.Context, n people.NewUser, check bool) (p *Person, err error) {
	if err := rules.Class("user.manage", &d.caller.Subject); err != nil {
		return nil, d.audited(ctx, "user.manage", person(n.Name), map[string]string{"change": "add"}, err)
	}
	if check {
		return nil, d.app.People.CheckNew(n)
	}
	var made *people.Person
	err = d.did(ctx, "user.manage", person(n.Name), map[string]string{"change": "add"}, func(ctx context.Context) (err error) {
		made, err = d.app.People.Add(ctx, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Person{made, rules.UserView{Whole: true, Extension: true}}, nil
}

// ErrChanged is the error for a change of an object that has changed since the caller read it.
var ErrChanged = &wire.Error{Status: http.StatusConflict, Code: "ConflictError", Message: "someone else has changed it since you read it", Remedy: "look at it again, and repeat the change"}

// UpdateUser replaces the spec of a person. It returns ErrChanged if the spec no longer equals was. People may change only their own e-mail address,
// displayed name, public keys and default virtual cluster.
func (d *Actions) UpdateUser(ctx context.Context, name string, was, now v1.UserSpec) (*Person, error) {
	return d.changeUser(ctx, name, func(spec *v1.UserSpec) error {
		if !reflect.DeepEqual(plain(*spec), plain(was)) {
			return ErrChanged
		}
		*spec = now
		return nil
	})
}

func (d *Actions) changeUser(ctx context.Context, name string, change func(*v1.UserSpec) error) (*Person, error) {
	rule := d.ruleOf(name)
	var made *people.Person
	err := d.did(ctx, rule, person(name), nil, func(ctx context.Context) (err error) {
		if err = rules.Decide(rule, &d.caller.Subject, person(name)); err == nil {
			made, err = d.app.People.Update(ctx, name, d.withDefault(ctx, name, within(rule, change)))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Person{made, rules.ViewUser(&d.caller.Subject, name)}, nil
}

// ruleOf returns the rule for a change of a person. The rule is user.change.self for a caller who isn't an administrator and changes their own data.
// Otherwise the rule is user.manage, which allows only administrators.
func (d *Actions) ruleOf(name string) string {
	if !d.caller.Grants.Administrator && d.caller.Name == name {
		return "user.change.self"
	}
	return "user.manage"
}

// within wraps a change. Under the rule user.change.self, the returned change fails if it changes fields that people may not change themselves.
func within(rule string, change func(*v1.UserSpec) error) func(*v1.UserSpec) error {
	return func(spec *v1.UserSpec) error {
		allowed := *spec.DeepCopy()
		if err := change(spec); err != nil || rule != "user.change.self" {
			return err
		}
		allowed.Email, allowed.DisplayName, allowed.SSHKeys = spec.Email, spec.DisplayName, spec.SSHKeys
		allowed.DefaultVirtualCluster = spec.DefaultVirtualCluster
		if !reflect.DeepEqual(plain(allowed), plain(*spec)) {
			return &rules.ForbiddenError{Why: "you may change your e-mail address, your displayed name, your public keys and your default virtual cluster; an administrator changes the rest"}
		}
		return nil
	}
}

// withDefault wraps a change. The returned change fails if it sets a default virtual cluster that doesn't exist, or that isn't granted to the person. A
// default that loses its grant later stays: jobs that need it are rejected until the person chooses another one.
func (d *Actions) withDefault(ctx context.Context, name string, change func(*v1.UserSpec) error) func(*v1.UserSpec) error {
	return func(spec *v1.UserSpec) error {
		was := spec.DefaultVirtualCluster
		err := change(spec)
		if vc := spec.DefaultVirtualCluster; err != nil || vc == was || vc == "" {
			return err
		}
		p, err := d.app.People.Person(name)
		if err != nil {
			return err
		}
		// This comes first: the error for a name that doesn't exist lists all names.
		if !p.Grants.MayUse(spec.DefaultVirtualCluster) {
			return &rules.ForbiddenError{Why: "no group grants " + name + " the virtual cluster " + wire.Shown(spec.DefaultVirtualCluster)}
		}
		vcs, _, err := d.app.Jobs.Grantable(ctx)
		if err != nil {
			return err
		}
		return (&people.Known{VirtualClusters: vcs}).Exists(spec.DefaultVirtualCluster)
	}
}

// plain returns a spec with empty lists instead of nil lists, so that both compare equal.
func plain(s v1.UserSpec) v1.UserSpec {
	s.Groups, s.Identities, s.SSHKeys = append([]string{}, s.Groups...), append([]v1.Identity{}, s.Identities...), append([]v1.SSHKey{}, s.SSHKeys...)
	return s
}

// SetPassword sets a person's password, and ends the person's sessions. People who set their own password must provide the old password.
func (d *Actions) SetPassword(ctx context.Context, name string, old, password secret.String) error {
	rule := "user.manage"
	if d.caller.Name == name && !d.caller.Operator {
		rule = "user.change.self"
	}
	return d.did(ctx, rule, person(name), map[string]string{"change": "password"}, func(ctx context.Context) error {
		return d.setPassword(ctx, rule, name, old, password)
	})
}

func (d *Actions) setPassword(ctx context.Context, rule, name string, old, password secret.String) error {
	if err := rules.Decide(rule, &d.caller.Subject, person(name)); err != nil {
		return err
	}
	if rule == "user.change.self" {
		if err := d.showPassword(ctx, old); err != nil {
			return err
		}
	}
	return d.app.People.SetPassword(ctx, name, password)
}

// showPassword checks the password that the cluster stores for the caller. It doesn't accept a directory's password. Otherwise users could set a
// password, and still sign in after their removal from the directory.
func (d *Actions) showPassword(ctx context.Context, password secret.String) error {
	if !password.IsSet() {
		return wire.Bad(`"oldPassword" is required to change your own password`)
	}
	return d.app.SignIn.VerifyOwn(ctx, d.caller.Name, password, d.origin.Address)
}

// RemoveUser removes a person and their templates, and stops their jobs. The name can't be used again.
func (d *Actions) RemoveUser(ctx context.Context, name string) error {
	detail := map[string]string{"change": "remove"}
	return d.did(ctx, "user.manage", person(name), detail, func(ctx context.Context) error {
		if err := rules.Class("user.manage", &d.caller.Subject); err != nil {
			return err
		}
		stopped, err := people.RemoveWith(ctx, d.app.People, name, d.app.Jobs.StopAll, d.app.Templates.RemoveOf)
		detail["stopped"] = strconv.Itoa(stopped)
		return err
	})
}

// Extension returns the keys that OpenPAI's clients have stored for a person, if the caller may read the keys.
func (d *Actions) Extension(ctx context.Context, name string) (people.Extension, error) {
	if err := rules.Class("user.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	if !rules.ViewUser(&d.caller.Subject, name).Extension {
		return nil, &rules.ForbiddenError{Why: "you may not read the data that is stored with " + name}
	}
	return d.app.People.Extension(ctx, name)
}

// MergeExtension sets keys that clients store for a person. People may change their own keys, and administrators may change all keys.
func (d *Actions) MergeExtension(ctx context.Context, name string, keys people.Extension) error {
	rule := "user.manage"
	if d.caller.Name == name && !d.caller.Operator {
		rule = "user.change.self"
	}
	return d.did(ctx, rule, person(name), map[string]string{"change": "extension"}, func(ctx context.Context) error {
		if err := rules.Decide(rule, &d.caller.Subject, person(name)); err != nil {
			return err
		}
		_, err := d.app.People.MergeExtension(ctx, name, keys)
		return err
	})
}

// Library types for HTTP handlers, which don't import the libraries.
type (
	// NewUser describes a person to add.
	NewUser = people.NewUser
	// Tokens holds the tokens of a session.
	Tokens = token.Pair
	// TokenRecord is the record of a token.
	TokenRecord = token.Record
)
