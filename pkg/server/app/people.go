package app

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/people/token"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Me describes the caller and the rights of their token.
type Me struct {
	Name, Email, DisplayName string
	// DefaultVirtualCluster is the virtual cluster of jobs whose files don't name one, or "".
	DefaultVirtualCluster string
	Groups                []string
	Grants                rules.Grants
	Token                 rules.Token
	Expires               *time.Time
	// Claims holds the claims of the token in the form that OpenPAI's clients read.
	Claims token.Claims
}

// WhoAmI returns the caller's name, groups, grants and token.
func (d *Actions) WhoAmI() (*Me, error) {
	if err := rules.Class("token.check", &d.caller.Subject); err != nil {
		return nil, err
	}
	me := &Me{Name: d.caller.Name, Groups: d.caller.Groups, Grants: d.caller.Grants, Token: d.caller.Token, Claims: d.caller.claims}
	if p := d.caller.person; p != nil && p.User != nil {
		me.Email, me.DisplayName, me.DefaultVirtualCluster = p.User.Spec.Email, p.User.Spec.DisplayName, p.User.Spec.DefaultVirtualCluster
	}
	if exp := d.caller.claims.Expires; exp > 0 {
		at := time.Unix(exp, 0).UTC()
		me.Expires = &at
	}
	return me, nil
}

// existingTime limits how long a response about a person waits for the names of existing virtual clusters and storages.
const existingTime = 3 * time.Second

// Existing returns a function that removes virtual clusters and storages that don't exist from grants. If the cluster doesn't respond, the function
// returns the grants unchanged.
func (d *Actions) Existing(ctx context.Context) func(rules.Grants) rules.Grants {
	known := sync.OnceValue(func() *people.Known {
		ctx, cancel := context.WithTimeout(ctx, existingTime)
		defer cancel()
		vcs, storages, err := d.app.Jobs.Grantable(ctx)
		if err != nil {
			return &people.Known{}
		}
		return &people.Known{VirtualClusters: vcs, Storages: storages}
	})
	return func(g rules.Grants) rules.Grants {
		if len(g.VCs)+len(g.Storages) == 0 {
			return g
		}
		return known().Less(g)
	}
}

// SignedIn describes a person who has just signed in, with a new token.
type SignedIn struct {
	Name          string
	Administrator bool
	Token         secret.String
	Expires       time.Time
}

// Limits of the lifetime of a token that a sign-in creates, as in OpenPAI.
const (
	MinLife = time.Minute
	MaxLife = 7 * 24 * time.Hour
)

// SignIn checks a password and creates a token for browsers and for OpenPAI's clients. If life is 0, the token gets the default lifetime.
func (d *Actions) SignIn(ctx context.Context, name string, password secret.String, life time.Duration, client string) (*SignedIn, error) {
	p, err := d.admit(ctx, name, password)
	if err != nil {
		return nil, err
	}
	if life > 0 {
		life = min(max(life, MinLife), MaxLife)
	}
	made, err := d.app.Tokens.Browser(ctx, p, token.New{Lifetime: life, Client: client, Address: d.origin.Address})
	if err != nil {
		return nil, err
	}
	return &SignedIn{p.Name, p.Grants.Administrator, made.Token, made.Record.Expires}, nil
}

// admit checks a password and returns the person. It writes the result and the name to the audit log.
func (d *Actions) admit(ctx context.Context, name string, password secret.String) (*people.Person, error) {
	if !d.SignInMethods().Password {
		return nil, &rules.ForbiddenError{Why: "this cluster has no sign-in by password"}
	}
	p, err := d.app.SignIn.SignIn(ctx, name, password, d.origin.Address)
	if SignInBusy(err) { // no password was tried; the metric of requests counts it, by its status
		return nil, err
	}
	thing := rules.Object{Kind: rules.KindToken}
	if err == nil {
		thing.Owner = p.Name
		d.caller.Subject, d.caller.person = p.Subject(rules.Token{}), p
	}
	// A person may have typed a password into the name field, and the audit log must not contain a password.
	detail := map[string]string{"way": "password"}
	if err == nil && p.Via != "" {
		detail["provider"] = p.Via
	}
	if err != nil && len(name) <= maxName {
		if _, known := d.app.People.Person(name); known == nil {
			detail["name"] = name
		}
	}
	return p, d.auditedAs(ctx, "sign-in", thing, detail, err)
}

const maxName = 63

// Session checks a password and begins a session with an access token and a refresh token.
func (d *Actions) Session(ctx context.Context, name string, password secret.String, client string) (*token.Pair, error) {
	p, err := d.admit(ctx, name, password)
	if err != nil {
		return nil, err
	}
	return d.app.Tokens.Session(ctx, p, token.New{Client: client, Address: d.origin.Address})
}

// Refresh exchanges a refresh token for the next tokens of its session. It writes an audit record if the refresh token was used before.
func (d *Actions) Refresh(ctx context.Context, refresh secret.String, client string) (*token.Pair, error) {
	pair, err := d.app.Tokens.Refresh(ctx, refresh, token.New{Client: client, Address: d.origin.Address})
	if reused, ok := errors.AsType[*token.ReusedError](err); ok {
		_ = d.auditedAs(ctx, "reuse", rules.Object{Kind: rules.KindToken, Owner: reused.User}, nil, err)
	}
	return pair, err
}

// EndSession ends the session of a refresh token. It returns no error for an unknown token, as RFC 7009 requires.
func (d *Actions) EndSession(ctx context.Context, refresh secret.String) error {
	err := d.app.Tokens.RevokeRefresh(ctx, refresh)
	if errors.Is(err, token.ErrNone) || errors.Is(err, token.ErrInvalid) {
		return nil
	}
	return d.auditedAs(ctx, "sign-out", rules.Object{Kind: rules.KindToken}, nil, err)
}

// Logout revokes the token of the request.
func (d *Actions) Logout(ctx context.Context) error {
	if err := rules.Class("token.own", &d.caller.Subject); err != nil {
		return err
	}
	err := d.app.Tokens.Revoke(ctx, d.caller.Name, d.caller.text)
	return d.auditedAs(ctx, "sign-out", rules.Object{Kind: rules.KindToken, Owner: d.caller.Name}, nil, err)
}

// EndLast ends the session of the request's token, if any, because the browser begins another session.
func (d *Actions) EndLast(ctx context.Context) error {
	if d.caller.text == "" {
		return nil
	}
	// The caller is already the new user, but the token belongs to the earlier session. So the owner of the token isn't checked.
	err := d.app.Tokens.Revoke(ctx, "", d.caller.text)
	if errors.Is(err, token.ErrNone) {
		return nil
	}
	return d.auditedAs(ctx, "sign-out", rules.Object{Kind: rules.KindToken, Owner: d.caller.claims.Username}, nil, err)
}

// Tokens returns the records of the caller's tokens, the newest first.
func (d *Actions) Tokens() ([]token.Record, error) {
	if err := rules.Decide("token.own", &d.caller.Subject, rules.Object{Kind: rules.KindToken, Owner: d.caller.Name}); err != nil {
		return nil, err
	}
	return d.app.Tokens.Of(d.caller.Name), nil
}

// TokensOf returns the records of another person's tokens, or of all tokens if name is empty.
func (d *Actions) TokensOf(name string) ([]token.Record, error) {
	if err := rules.Class("token.manage", &d.caller.Subject); err != nil {
		return nil, err
	}
	if name != "" {
		if _, err := d.app.People.Person(name); err != nil {
			return nil, err
		}
	}
	return d.app.Tokens.Of(name), nil
}

// RotateKeys creates a new key that signs tokens. If revoke is true, tokens that earlier keys signed become invalid.
func (d *Actions) RotateKeys(ctx context.Context, revoke bool) error {
	return d.did(ctx, "token.manage", rules.Object{Kind: rules.KindToken}, map[string]string{"change": "keys", "revoke": strconv.FormatBool(revoke)}, func(ctx context.Context) error {
		if err := rules.Class("token.manage", &d.caller.Subject); err != nil {
			return err
		}
		return d.app.Tokens.RotateKeys(ctx, revoke)
	})
}

// Handle returns the handle of a token. A handle can only be used to revoke its token.
func Handle(r token.Record) string { return token.Handle(r) }

// NewToken describes a new application token.
type NewToken struct {
	Label  string
	Scopes []string
	Life   time.Duration // 0: until it is revoked
	Client string
}

// NewToken creates an application token for the caller. The text of the token can't be read again later.
func (d *Actions) NewToken(ctx context.Context, n NewToken) (*token.Issued, error) {
	thing := rules.Object{Kind: rules.KindToken, Owner: d.caller.Name}
	if err := rules.Decide("token.own", &d.caller.Subject, thing); err != nil {
		return nil, d.auditedAs(ctx, "create", thing, nil, err)
	}
	scopes, err := rules.ParseScopes(n.Scopes)
	if err != nil {
		return nil, wire.Bad(err.Error())
	}
	if d.caller.Operator {
		if err := d.mayHave(scopes); err != nil {
			return nil, d.auditedAs(ctx, "create", thing, nil, err)
		}
	}
	if n.Life < 0 || len(n.Label) > maxLabel {
		return nil, wire.Bad("a token's label has at most 200 characters, and its expiration is not negative")
	}
	made, err := d.app.Tokens.Application(ctx, d.caller.person, token.New{Label: n.Label, Scopes: scopes, Lifetime: n.Life, Client: n.Client, Address: d.origin.Address})
	if err := d.auditedAs(ctx, "create", thing, map[string]string{"label": n.Label}, err); err != nil {
		return nil, err
	}
	return made, nil
}

const maxLabel = 200

// mayHave checks the scopes of a token that an operator creates for a person. It returns an error if the person couldn't use the token.
func (d *Actions) mayHave(scopes []rules.Scope) error {
	p, err := d.app.People.Person(d.caller.Name)
	switch {
	case err != nil:
		return err
	case p.Disabled:
		return hint.Errorf("allow it with: paictl user enable "+p.Name, "%s is disabled, and so are their tokens", p.Name)
	case slices.Contains(scopes, rules.ScopeAdmin) && !p.Grants.Administrator:
		return &rules.ForbiddenError{Why: "--scope admin is for administrators, and " + p.Name + " isn't one"}
	}
	return nil
}

// Revoke revokes a token of the caller. text is the token, its handle, or its id. Administrators can also revoke other people's tokens.
func (d *Actions) Revoke(ctx context.Context, text string) error {
	if err := rules.Class("token.own", &d.caller.Subject); err != nil {
		return err
	}
	id, err := token.IDOf(text)
	if err != nil {
		return wire.Bad("that isn't a token")
	}
	user := d.caller.Name
	if d.caller.Grants.Administrator {
		user = ""
	}
	err = d.app.Tokens.Revoke(ctx, user, id)
	return d.auditedAs(ctx, "revoke", rules.Object{Kind: rules.KindToken, Name: id}, nil, err)
}

// SignInBusy reports whether an error means that too many sign-ins are in progress.
func SignInBusy(err error) bool { return errors.Is(err, signin.ErrBusy) }

// First creates the first administrator with the one-time code that "paictl service start" printed.
func (d *Actions) First(ctx context.Context, code secret.String, name string, password secret.String) (string, error) {
	p, err := d.app.People.UseFirst(ctx, code, people.NewUser{Name: name, Password: password})
	thing := rules.Object{Kind: rules.KindUser}
	if err == nil {
		thing.Name = p.Name
	}
	if err := d.auditedAs(ctx, "first-administrator", thing, nil, err); err != nil {
		return "", err
	}
	return p.Name, nil
}
