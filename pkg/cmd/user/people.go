package user

import (
	"context"
	"errors"
	"fmt"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// The types that -o json prints.
type (
	// User is a person.
	User = api.User
	// Group is a group.
	Group = api.Group
)

// People are the people of a cluster, as its server shows them.
type People struct {
	server   *client.Server
	operator bool
}

// Open connects to the people of a cluster. It doesn't send a request yet.
func Open(f *cmdutil.Factory, fl connection.Flags) (*People, error) {
	w, err := fl.Open(f)
	if err != nil {
		return nil, err
	}
	return &People{w.Server, w.Operator}, nil
}

// Me returns the person who has signed in; "" with a kubeconfig.
func (p *People) Me(ctx context.Context) (string, error) {
	if p.operator {
		return "", nil
	}
	me, err := p.server.WhoAmI(ctx)
	if err != nil {
		return "", err
	}
	return me.Name, nil
}

// printed returns a person without the version of the object, which only changes need.
func printed(u *User, err error) (*User, error) {
	if err != nil {
		return nil, err
	}
	u.Spec = nil
	return u, nil
}

// Users returns all people.
func (p *People) Users(ctx context.Context) ([]User, error) {
	all, err := p.server.Users(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all.Items {
		all.Items[i].Spec = nil
	}
	return all.Items, nil
}

// User returns a person.
func (p *People) User(ctx context.Context, name string) (*User, error) {
	return printed(p.server.User(ctx, name))
}

func newOne(n people.NewUser) api.NewUser {
	return api.NewUser{Name: n.Name, Email: n.Email, DisplayName: n.DisplayName, Groups: n.Groups, Identities: n.Identities,
		Password: n.Password.Reveal(), TakeOverHistory: n.TakeOver}
}

// exists converts the error for a name that is already used to people.ErrExists.
func exists(err error) error {
	if e, ok := errors.AsType[*client.Error](err); ok && e.Body.Code == client.CodeUserExists {
		return hint.Wrap(&existsError{err: e}, hint.Of(err))
	}
	return err
}

// existsError is a people.ErrExists with the server's text.
type existsError struct{ err *client.Error }

func (e *existsError) Error() string { return e.err.Error() }
func (e *existsError) Unwrap() error { return e.err }

// Is implements errors.Is.
func (*existsError) Is(target error) bool { return target == people.ErrExists }

// Check returns the mistakes of several new people, before any of them is added.
func (p *People) Check(ctx context.Context, users []people.NewUser) []error {
	out := make([]error, len(users))
	for i := range users {
		n := newOne(users[i])
		n.Check = true
		_, err := p.server.AddUser(ctx, n)
		if e, ok := errors.AsType[*client.Error](err); err != nil && (!ok || e.Status == 403 || e.Status >= 500) {
			return []error{err} // nothing about this person
		}
		out[i] = exists(err)
	}
	return out
}

// Add adds a person.
func (p *People) Add(ctx context.Context, n people.NewUser) (*User, error) {
	u, err := printed(p.server.AddUser(ctx, newOne(n)))
	return u, exists(err)
}

// again is how often a change is repeated after a conflict.
const again = 5

func conflicts(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Body.Code == client.CodeConflict
}

// Update changes a person. change may be called more than once.
func (p *People) Update(ctx context.Context, name string, change func(*v1.UserSpec) error) (*User, error) {
	for try := 0; ; try++ {
		was, err := p.server.User(ctx, name)
		if err != nil {
			return nil, err
		}
		if was.Spec == nil {
			return nil, hint.Errorf("an administrator can", "you may not change %s", name)
		}
		now := was.Spec.DeepCopy()
		if err := change(now); err != nil {
			return nil, err
		}
		u, err := printed(p.server.PutUser(ctx, api.UserChange{Was: *was.Spec, Spec: *now}))
		if err == nil || try >= again || !conflicts(err) {
			return u, err
		}
	}
}

// SetPassword sets a password. People who set their own must give the old one.
func (p *People) SetPassword(ctx context.Context, name string, old, password secret.String) error {
	return p.server.PutPassword(ctx, name, old, password)
}

// Remove removes a person.
func (p *People) Remove(ctx context.Context, name string) error {
	return p.server.RemoveUser(ctx, name)
}

// Groups returns all groups.
func (p *People) Groups(ctx context.Context) ([]Group, error) {
	all, err := p.server.Groups(ctx)
	if err != nil {
		return nil, err
	}
	return all.Items, nil
}

// Group returns a group.
func (p *People) Group(ctx context.Context, name string) (*Group, error) {
	return p.server.Group(ctx, name)
}

// ChangeGroup creates a group if isNew is set; the group must not exist then. Otherwise it changes an existing group. change may
// be called more than once.
func (p *People) ChangeGroup(ctx context.Context, name string, isNew bool, change func(*v1.GroupSpec) error) (*Group, error) {
	for try := 0; ; try++ {
		c := api.GroupChange{Spec: v1.GroupSpec{Name: name}}
		if !isNew {
			was, err := p.server.Group(ctx, name)
			if err != nil {
				return nil, err
			}
			c.Was = &was.GroupSpec
			c.Spec = *was.DeepCopy()
		}
		if err := change(&c.Spec); err != nil {
			return nil, err
		}
		g, err := p.server.PutGroup(ctx, c)
		switch {
		case err == nil:
			return g, nil
		case isNew && conflicts(err):
			return nil, fmt.Errorf("%w: the group %s", people.ErrExists, name)
		case try >= again || !conflicts(err):
			return nil, err
		}
	}
}

// DeleteGroup deletes a group.
func (p *People) DeleteGroup(ctx context.Context, name string) error {
	return p.server.DeleteGroup(ctx, name)
}
