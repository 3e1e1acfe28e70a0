package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// Codes of people and groups that commands distinguish.
const (
	CodeUserExists = "ConflictUserError"
	CodeConflict   = "ConflictError"
	CodeNoToken    = "NoTokenError"
)

// change returns a request with a JSON body that changes something.
func change(method, path string, in any) (question, error) {
	q, err := post(path, nil, in)
	q.method = method
	return q, err
}

func userPath(name, more string) string { return api.Prefix + "/users/" + url.PathEscape(name) + more }

func groupPath(name string) string { return api.Prefix + "/groups/" + url.PathEscape(name) }

// answered sends a request, and returns the decoded response.
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

// done sends a request whose response has no body.
func (s *Server) done(ctx context.Context, q question, err error) error {
	if err != nil {
		return err
	}
	return explained(s.ask(ctx, q, nil))
}

// Users returns all people.
func (s *Server) Users(ctx context.Context) (*api.Users, error) {
	return answered[api.Users](ctx, s, get(api.Prefix+"/users", nil), nil)
}

// User returns one person.
func (s *Server) User(ctx context.Context, name string) (*api.User, error) {
	return answered[api.User](ctx, s, get(userPath(name, ""), nil), nil)
}

// AddUser adds a person.
func (s *Server) AddUser(ctx context.Context, n api.NewUser) (*api.User, error) {
	q, err := post(api.Prefix+"/users", nil, n)
	return answered[api.User](ctx, s, q, err)
}

// PutUser changes a person.
func (s *Server) PutUser(ctx context.Context, c api.UserChange) (*api.User, error) {
	q, err := change(http.MethodPut, userPath(c.Spec.Name, ""), c)
	return answered[api.User](ctx, s, q, err)
}

// PutPassword sets a person's password. To change their own password, users must send the old one.
func (s *Server) PutPassword(ctx context.Context, name string, old, password secret.String) error {
	q, err := change(http.MethodPut, userPath(name, "/password"), api.PasswordChange{Password: password.Reveal(), Old: old.Reveal()})
	q.once = true // each wrong one counts
	return s.done(ctx, q, err)
}

// RemoveUser removes a person.
func (s *Server) RemoveUser(ctx context.Context, name string) error {
	q, err := change(http.MethodDelete, userPath(name, ""), nil)
	return s.done(ctx, q, err)
}

// Groups returns all groups.
func (s *Server) Groups(ctx context.Context) (*api.Groups, error) {
	return answered[api.Groups](ctx, s, get(api.Prefix+"/groups", nil), nil)
}

// Group returns one group.
func (s *Server) Group(ctx context.Context, name string) (*api.Group, error) {
	return answered[api.Group](ctx, s, get(groupPath(name), nil), nil)
}

// PutGroup creates or changes a group.
func (s *Server) PutGroup(ctx context.Context, c api.GroupChange) (*api.Group, error) {
	q, err := change(http.MethodPut, groupPath(c.Spec.Name), c)
	return answered[api.Group](ctx, s, q, err)
}

// DeleteGroup deletes a group.
func (s *Server) DeleteGroup(ctx context.Context, name string) error {
	q, err := change(http.MethodDelete, groupPath(name), nil)
	return s.done(ctx, q, err)
}

// TokenRecords returns the records of the user's tokens, of another person's, or of all people's.
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

// NewToken makes an application token for the user.
func (s *Server) NewToken(ctx context.Context, n api.NewToken) (*api.IssuedToken, error) {
	q, err := post(api.Prefix+"/tokens", nil, n)
	return answered[api.IssuedToken](ctx, s, q, err)
}

// RotateKeys makes a new key that tokens are signed with. With revoke, tokens signed with an earlier key become invalid.
func (s *Server) RotateKeys(ctx context.Context, revoke bool) error {
	q, err := post(api.Prefix+"/token-keys", nil, api.KeyRotation{Revoke: revoke})
	return s.done(ctx, q, err)
}

// RevokeToken ends a token, by its id.
func (s *Server) RevokeToken(ctx context.Context, id string) error {
	q, err := change(http.MethodDelete, api.Prefix+"/tokens/"+url.PathEscape(id), nil)
	return s.done(ctx, q, err)
}
