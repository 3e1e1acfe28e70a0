package user

import (
	"context"
	"errors"
	"fmt"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// server has the users that the server shows to the user who has signed in.
type server struct{ *client.Server }

// Explain implements People: the server's errors say already what to do.
func (*server) Explain(err error) error { return err }

// Me implements People.
func (s *server) Me(ctx context.Context) (string, error) {
	me, err := s.WhoAmI(ctx)
	if err != nil {
		return "", err
	}
	return me.Name, nil
}

// plain returns a user in the form that is printed, without the spec that a change begins with.
func plain(u *User, err error) (*User, error) {
	if err != nil {
		return nil, err
	}
	u.Spec = nil
	return u, nil
}

// Users implements People.
func (s *server) Users(ctx context.Context) ([]User, error) {
	all, err := s.Server.Users(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all.Items {
		all.Items[i].Spec = nil
	}
	return all.Items, nil
}

// User implements People.
func (s *server) User(ctx context.Context, name string) (*User, error) {
	return plain(s.Server.User(ctx, name))
}

func newOne(n people.NewUser) api.NewUser {
	return api.NewUser{Name: n.Name, Email: n.Email, DisplayName: n.DisplayName, Groups: n.Groups, Identities: n.Identities,
		Password: n.Password.Reveal(), TakeOverHistory: n.TakeOver}
}

// exists makes the server's word for it that of people.
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

// Check implements People.
func (s *server) Check(ctx context.Context, users []people.NewUser) []error {
	out := make([]error, len(users))
	for i := range users {
		n := newOne(users[i])
		n.Check = true
		_, err := s.AddUser(ctx, n)
		if e, ok := errors.AsType[*client.Error](err); err != nil && (!ok || e.Status == 403 || e.Status >= 500) {
			return []error{err} // nothing about this person
		}
		out[i] = exists(err)
	}
	return out
}

// Add implements People.
func (s *server) Add(ctx context.Context, n people.NewUser) (*User, error) {
	u, err := plain(s.AddUser(ctx, newOne(n)))
	return u, exists(err)
}

// again is how often a change is made once more because another one came between.
const again = 5

func changedMeanwhile(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Body.Code == client.CodeConflict
}

// Update implements People.
func (s *server) Update(ctx context.Context, name string, change func(*v1.UserSpec) error) (*User, error) {
	for try := 0; ; try++ {
		was, err := s.Server.User(ctx, name)
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
		u, err := plain(s.PutUser(ctx, api.UserChange{Was: *was.Spec, Spec: *now}))
		if err == nil || try >= again || !changedMeanwhile(err) {
			return u, err
		}
	}
}

// SetPassword implements People.
func (s *server) SetPassword(ctx context.Context, name string, old, p secret.String) error {
	return s.PutPassword(ctx, name, old, p)
}

// Remove implements People.
func (s *server) Remove(ctx context.Context, name string) error { return s.RemoveUser(ctx, name) }

// Groups implements People.
func (s *server) Groups(ctx context.Context) ([]Group, error) {
	all, err := s.Server.Groups(ctx)
	if err != nil {
		return nil, err
	}
	return all.Items, nil
}

// ChangeGroup implements People.
func (s *server) ChangeGroup(ctx context.Context, name string, isNew bool, change func(*v1.GroupSpec) error) (*Group, error) {
	for try := 0; ; try++ {
		c := api.GroupChange{Spec: v1.GroupSpec{Name: name}}
		if !isNew {
			was, err := s.Group(ctx, name)
			if err != nil {
				return nil, err
			}
			c.Was = &was.GroupSpec
			c.Spec = *was.DeepCopy()
		}
		if err := change(&c.Spec); err != nil {
			return nil, err
		}
		g, err := s.PutGroup(ctx, c)
		switch {
		case err == nil:
			return g, nil
		case isNew && changedMeanwhile(err):
			return nil, fmt.Errorf("%w: the group %s", people.ErrExists, name)
		case try >= again || !changedMeanwhile(err):
			return nil, err
		}
	}
}
