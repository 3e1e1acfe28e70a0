package token

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// direct is tokens by a kubeconfig, past the server.
type direct struct {
	*kube.Cluster
	people *people.Directory
	tokens *token.Service
}

// Create implements Tokens.
func (d *direct) Create(ctx context.Context, user string, n api.NewToken) (*api.IssuedToken, error) {
	if user == "" {
		return nil, cmdutil.Usagef("--user is needed with a kubeconfig: a token is a person's")
	}
	p, err := d.people.Person(user)
	if err != nil {
		return nil, err
	}
	if p.Disabled {
		return nil, hint.Errorf("let them in with: paictl user enable "+p.Name, "%s is disabled, and so are their tokens", p.Name)
	}
	scopes, err := rules.ParseScopes(n.Scopes)
	if err != nil {
		return nil, err
	}
	if slices.Contains(scopes, rules.ScopeAdmin) && !p.Grants.Administrator {
		return nil, fmt.Errorf("--scope admin is for administrators, and %s is none", p.Name)
	}
	made, err := d.tokens.Application(ctx, p, token.New{Label: n.Label, Scopes: scopes, Life: time.Duration(n.Seconds) * time.Second, Client: "paictl"})
	if err != nil {
		return nil, err
	}
	return &api.IssuedToken{Token: made.Token.Reveal(), Record: record(&made.Record)}, nil
}

// record returns the data of a token in the form that is printed.
func record(r *token.Record) api.TokenRecord {
	out := api.TokenRecord{ID: r.ID, User: r.User, Kind: string(r.Kind), Label: r.Label, Client: r.Client, Address: r.Address, Created: r.Created}
	for _, s := range r.Scopes {
		out.Scopes = append(out.Scopes, string(s))
	}
	if !r.Expires.IsZero() {
		out.Expires = &r.Expires
	}
	if !r.Used.IsZero() {
		out.Used = &r.Used
	}
	return out
}

// List implements Tokens.
func (d *direct) List(_ context.Context, user string) ([]api.TokenRecord, error) {
	if user != "" {
		if _, err := d.people.Person(user); err != nil {
			return nil, err
		}
	}
	out := []api.TokenRecord{}
	for _, r := range d.tokens.Of(user) {
		out = append(out, record(&r))
	}
	return out, nil
}

// Revoke implements Tokens.
func (d *direct) Revoke(ctx context.Context, user, id string) error {
	err := d.tokens.Revoke(ctx, user, id)
	if errors.Is(err, token.ErrNone) {
		return none(id, err)
	}
	return err
}

func none(id string, err error) error {
	return hint.Wrap(fmt.Errorf("%s: %w", id, err), "see the ids with: paictl token list")
}

// RotateKeys implements Tokens.
func (d *direct) RotateKeys(ctx context.Context, revoke bool) error {
	return d.tokens.RotateKeys(ctx, revoke)
}

// server has the server's tokens of the user who has signed in.
type server struct{ *client.Server }

// Explain implements Tokens: the server's errors say already what to do.
func (*server) Explain(err error) error { return err }

// Create implements Tokens.
func (s *server) Create(ctx context.Context, user string, n api.NewToken) (*api.IssuedToken, error) {
	if user != "" {
		me, err := s.WhoAmI(ctx)
		if err != nil {
			return nil, err
		}
		if me.Name != user {
			return nil, hint.Errorf("let "+user+" make it; or use the cluster's kubeconfig: --kubeconfig FILE", "who has signed in makes tokens for themselves alone")
		}
	}
	return s.NewToken(ctx, n)
}

// List implements Tokens.
func (s *server) List(ctx context.Context, user string) ([]api.TokenRecord, error) {
	out, err := s.TokenRecords(ctx, user)
	if err != nil {
		return nil, err
	}
	return out.Items, nil
}

// Revoke implements Tokens.
func (s *server) Revoke(ctx context.Context, user, id string) error {
	if user != "" {
		all, err := s.List(ctx, user)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(r api.TokenRecord) bool { return r.ID == id }) {
			return none(id, token.ErrNone)
		}
	}
	return s.RevokeToken(ctx, id)
}

// RotateKeys implements Tokens.
func (*server) RotateKeys(context.Context, bool) error {
	return client.Absent("a new key to sign with")
}
