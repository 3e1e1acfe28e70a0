package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// Error codes for users, groups and tokens that commands handle differently.
const (
	CodeUserExists = "ConflictUserError"
	CodeConflict   = "ConflictError"
	CodeNoToken    = "NoTokenError"
)

// change returns a request with a method and a JSON body. Unlike a request from get, it isn't repeated if its response is lost.
func change(method, path string, in any) (question, error) {
	q, err := post(path, nil, in)
	q.method = method
	return q, err
}

func userPath(name, more string) string { return api.Prefix + "/users/" + url.PathEscape(name) + more }

func groupPath(name string) string { return api.Prefix + "/groups/" + url.PathEscape(name) }

// answered sends a request, and returns the decoded response. If err isn't nil, it only returns err.
func answered[T any](ctx context.Context, s *Server, q question, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	out := new(T)
	if err := explained(s.ask(ctx, q, out)); err != nil {
		return nil, err
	}
	return out, nil
}

// done sends a request whose response has no body. If err isn't nil, it only returns err.
func (s *Server) done(ctx context.Context, q question, err error) error {
	if err != nil {
		return err
	}
	return explained(s.ask(ctx, q, nil))
}

// Users returns all users.
func (s *Server) Users(ctx context.Context) (*api.Users, error) {
	return answered[api.Users](ctx, s, get(api.Prefix+"/users", nil), nil)
}

// User returns the user with a name.
func (s *Server) User(ctx context.Context, name string) (*api.User, error) {
	return answered[api.User](ctx, s, get(userPath(name, ""), nil), nil)
}

// AddUser adds a user, and returns the new user.
func (s *Server) AddUser(ctx context.Context, n api.NewUser) (*api.User, error) {
	q, err := post(api.Prefix+"/users", nil, n)
	return answered[api.User](ctx, s, q, err)
}

// PutUser changes the user that the change names, and returns the changed user.
func (s *Server) PutUser(ctx context.Context, c api.UserChange) (*api.User, error) {
	q, err := change(http.MethodPut, userPath(c.Spec.Name, ""), c)
	return answered[api.User](ctx, s, q, err)
}

// PutPassword sets a user's password. Users who change their own password must also send the old password.
func (s *Server) PutPassword(ctx context.Context, name string, old, password secret.String) error {
	q, err := change(http.MethodPut, userPath(name, "/password"), api.PasswordChange{Password: password.Reveal(), Old: old.Reveal()})
	q.once = true // each wrong one counts
	return s.done(ctx, q, err)
}

// RemoveUser removes the user with a name.
func (s *Server) RemoveUser(ctx context.Context, name string) error {
	q, err := change(http.MethodDelete, userPath(name, ""), nil)
	return s.done(ctx, q, err)
}

// Groups returns all groups.
func (s *Server) Groups(ctx context.Context) (*api.Groups, error) {
	return answered[api.Groups](ctx, s, get(api.Prefix+"/groups", nil), nil)
}

// Group returns the group with a name.
func (s *Server) Group(ctx context.Context, name string) (*api.Group, error) {
	return answered[api.Group](ctx, s, get(groupPath(name), nil), nil)
}

// PutGroup creates or changes a group.
func (s *Server) PutGroup(ctx context.Context, c api.GroupChange) (*api.Group, error) {
	q, err := change(http.MethodPut, groupPath(c.Spec.Name), c)
	return answered[api.Group](ctx, s, q, err)
}

// DeleteGroup deletes the group with a name.
func (s *Server) DeleteGroup(ctx context.Context, name string) error {
	q, err := change(http.MethodDelete, groupPath(name), nil)
	return s.done(ctx, q, err)
}

// TokenRecords returns the records of tokens: those of the signed-in user, those of another user, or those of all users.
func (s *Server) TokenRecords(ctx context.Context, user string, all bool) (*api.TokenRecords, error) {
	query := url.Values{}
	if user != "" {
		query.Set("user", user)
	}
	if all {
		query.Set("all", "true")
	}
	return answered[api.TokenRecords](ctx, s, get(api.Prefix+"/tokens", query), nil)
}

// NewToken makes an application token for the signed-in user.
func (s *Server) NewToken(ctx context.Context, n api.NewToken) (*api.IssuedToken, error) {
	q, err := post(api.Prefix+"/tokens", nil, n)
	return answered[api.IssuedToken](ctx, s, q, err)
}

// RotateKeys makes a new key for signing tokens. With revoke, all tokens that were signed with earlier keys become invalid.
func (s *Server) RotateKeys(ctx context.Context, revoke bool) error {
	q, err := post(api.Prefix+"/token-keys", nil, api.KeyRotation{Revoke: revoke})
	return s.done(ctx, q, err)
}

// RevokeToken makes the token with an ID invalid.
func (s *Server) RevokeToken(ctx context.Context, id string) error {
	q, err := change(http.MethodDelete, api.Prefix+"/tokens/"+url.PathEscape(id), nil)
	return s.done(ctx, q, err)
}
