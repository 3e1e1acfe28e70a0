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

// The types of the output of -o json.
type (
	// User is one user of the cluster.
	User = api.User
	// Group is a group of users.
	Group = api.Group
)

// People gives access to the users and groups of a cluster through its server.
type People struct {
	server   *client.Server
	operator bool
}

// Open connects to the server that manages the users of a cluster. It sends no request yet.
func Open(f *cmdutil.Factory, fl connection.Flags) (*People, error) {
	w, err := fl.Open(f)
	if err != nil {
		return nil, err
	}
	return &People{w.Server, w.Operator}, nil
}

// Me returns the name of the user who has signed in. With a kubeconfig, it returns "".
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

// printed returns a user without the Spec field, which is needed only for changes.
func printed(u *User, err error) (*User, error) {
	if err != nil {
		return nil, err
	}
	u.Spec = nil
	return u, nil
}

// Users returns all users.
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

// User returns the user with the given name.
func (p *People) User(ctx context.Context, name string) (*User, error) {
	return printed(p.server.User(ctx, name))
}

func newOne(n people.NewUser) api.NewUser {
	return api.NewUser{Name: n.Name, Email: n.Email, DisplayName: n.DisplayName, Groups: n.Groups, Identities: n.Identities,
		Password: n.Password.Reveal(), TakeOverHistory: n.TakeOver}
}

// exists converts the server's error about an existing name to people.ErrExists. It returns other errors unchanged.
func exists(err error) error {
	if e, ok := errors.AsType[*client.Error](err); ok && e.Body.Code == client.CodeUserExists {
		return hint.Wrap(&existsError{err: e}, hint.Of(err))
	}
	return err
}

// existsError is a people.ErrExists whose text comes from the server.
type existsError struct{ err *client.Error }

func (e *existsError) Error() string { return e.err.Error() }
func (e *existsError) Unwrap() error { return e.err }

// Is reports whether target is people.ErrExists. errors.Is calls it.
func (*existsError) Is(target error) bool { return target == people.ErrExists }

// Check checks several new users before any of them is added. The result contains an error or nil for each user.
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

// Add adds a user. It returns people.ErrExists if the name is already used.
func (p *People) Add(ctx context.Context, n people.NewUser) (*User, error) {
	u, err := printed(p.server.AddUser(ctx, newOne(n)))
	return u, exists(err)
}

// again is how often a change is repeated after a conflict with another change.
const again = 5

func conflicts(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Body.Code == client.CodeConflict
}

// Update changes a user. It may call change more than once.
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

// SetPassword sets the password of a user. Users who change their password must give the old password.
func (p *People) SetPassword(ctx context.Context, name string, old, password secret.String) error {
	return p.server.PutPassword(ctx, name, old, password)
}

// Remove removes a user.
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

// Group returns the group with the given name.
func (p *People) Group(ctx context.Context, name string) (*Group, error) {
	return p.server.Group(ctx, name)
}

// ChangeGroup changes an existing group, or creates a group if isNew is set. In the latter case, the group must not exist yet. It may call
// change more than once.
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
