package app

import (
	"context"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// UserChange holds changes to a person. Nil and unset fields change nothing.
type UserChange struct {
	Spec func(*v1.UserSpec) error
	// Extension holds keys that clients store for the person. A null value removes its key.
	Extension people.Extension
	// Password is the new password. Old is the current password, which people must provide when they change their own password.
	Password, Old secret.String
}

// ChangeUser makes several changes to a person. It checks all changes before it makes the first change. It changes the password last, because a new
// password ends the person's sessions.
func (d *Actions) ChangeUser(ctx context.Context, name string, c UserChange) error {
	if err := d.checkChange(ctx, name, c); err != nil {
		return d.audited(ctx, d.ruleOf(name), person(name), nil, err)
	}
	if len(c.Extension) > 0 {
		if err := d.MergeExtension(ctx, name, c.Extension); err != nil {
			return err
		}
	}
	if c.Spec != nil {
		if _, err := d.changeUser(ctx, name, c.Spec); err != nil {
			return err
		}
	}
	if c.Password.IsSet() {
		return d.did(ctx, d.ruleOf(name), person(name), map[string]string{"change": "password"}, func(ctx context.Context) error { return d.app.People.SetPassword(ctx, name, c.Password) })
	}
	return nil
}

func (d *Actions) checkChange(ctx context.Context, name string, c UserChange) error {
	rule := d.ruleOf(name)
	if err := rules.Decide(rule, &d.caller.Subject, person(name)); err != nil {
		return err
	}
	change := c.Spec
	if change == nil {
		change = func(*v1.UserSpec) error { return nil }
	}
	if err := d.app.People.CheckUpdate(name, within(rule, change)); err != nil || !c.Password.IsSet() {
		return err
	}
	if err := people.CheckPassword(name, c.Password); err != nil || name != d.caller.Name {
		return err
	}
	return d.showPassword(ctx, c.Old)
}
