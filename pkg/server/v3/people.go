package v3

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

func peopleRoutes() []server.Route {
	const user, group, token = api.Prefix + "/users/{user}", api.Prefix + "/groups/{group}", api.Prefix + "/tokens/{token}"
	return []server.Route{
		server.JSON("GET", api.Prefix+"/users", "user.list", "Lists people", users),
		server.JSON("GET", user, "user.read", "Returns a person", getUser, server.Errors("NoUserError")),
		server.JSON("POST", api.Prefix+"/users", "user.manage", "Adds a person", addUser, server.Status(http.StatusCreated), server.Errors("ConflictUserError")),
		server.JSON("PUT", user, "user.change.self", "Replaces a person", putUser, server.Errors("NoUserError", "ConflictError", "RemoveAdminError")),
		server.JSON("PUT", user+"/password", "user.change.self", "Sets a password", putPassword, server.Errors("NoUserError", "IncorrectPasswordError")),
		server.JSON("DELETE", user, "user.manage", "Removes a person; the name stays taken", removeUser, server.Errors("NoUserError", "RemoveAdminError")),
		server.JSON("GET", api.Prefix+"/groups", "group.read", "Lists groups", groups),
		server.JSON("GET", group, "group.read", "Returns a group", getGroup, server.Errors("NoGroupError")),
		server.JSON("PUT", group, "group.manage", "Creates or replaces a group", putGroup, server.Errors("NoGroupError", "ConflictError")),
		server.JSON("DELETE", group, "group.manage", "Deletes a group", deleteGroup, server.Errors("NoGroupError")),
		server.JSON("GET", api.Prefix+"/tokens", "token.own", "Lists your tokens, without their texts", tokenRecords),
		server.JSON("POST", api.Prefix+"/tokens", "token.own", "Creates a token for programs, and shows it once", newToken, server.Status(http.StatusCreated)),
		server.JSON("DELETE", token, "token.own", "Revokes a token", revokeToken, server.Errors("NoTokenError")),
		server.JSON("POST", api.Prefix+"/token-keys", "token.manage", "Creates a new key that signs tokens", rotateKeys, server.Status(http.StatusCreated)),
	}
}

func newUser(p *app.Person, existing func(rules.Grants) rules.Grants) api.User {
	out := api.User{Name: p.Name, Email: p.User.Spec.Email, Groups: []string{}, VCs: []v1.VCGrant{}, Storages: []string{}, Pages: []string{}}
	if !p.View.Whole {
		return out
	}
	granted := existing(p.Grants)
	out.DisplayName, out.Disabled, out.Administrator, out.AllVCs = p.User.Spec.DisplayName, p.Disabled, granted.Administrator, granted.AllVCs
	out.Groups, out.Storages = append(out.Groups, p.Groups...), append(out.Storages, granted.Storages...)
	out.Pages = append(out.Pages, slices.Sorted(maps.Keys(granted.Pages))...)
	for _, name := range slices.Sorted(maps.Keys(granted.VCs)) {
		g := granted.VCs[name]
		out.VCs = append(out.VCs, v1.VCGrant{Name: name, SeeJobs: g.SeeJobs, MaxPriority: g.MaxPriority, HostNetwork: g.HostNetwork})
	}
	out.Identities, out.SSHKeys, out.Created, out.Spec = p.User.Spec.Identities, p.User.Spec.SSHKeys, p.User.CreationTimestamp.Time, &p.User.Spec
	if at := p.User.Status.LastSignIn; at != nil {
		out.LastSignIn = &at.Time
	}
	return out
}

func users(ctx context.Context, d *app.Actions, _ *struct{}) (*api.Users, error) {
	all, err := d.Users()
	if err != nil {
		return nil, err
	}
	out, existing := &api.Users{Items: []api.User{}}, d.Existing(ctx)
	for i := range all {
		out.Items = append(out.Items, newUser(&all[i], existing))
	}
	return out, nil
}

type userIn struct {
	User string `path:"user"`
}

func getUser(ctx context.Context, d *app.Actions, in *userIn) (*api.User, error) {
	return told(ctx, d)(d.User(in.User))
}

func told(ctx context.Context, d *app.Actions) func(p *app.Person, err error) (*api.User, error) {
	return func(p *app.Person, err error) (*api.User, error) {
		if err != nil {
			return nil, err
		}
		out := newUser(p, d.Existing(ctx))
		return &out, nil
	}
}

type addUserIn struct {
	Body api.NewUser `body:"json"`
}

func addUser(ctx context.Context, d *app.Actions, in *addUserIn) (*api.User, error) {
	n := app.NewUser{Name: in.Body.Name, Email: in.Body.Email, DisplayName: in.Body.DisplayName, Groups: in.Body.Groups, Identities: in.Body.Identities,
		Password: secret.String(in.Body.Password), TakeOver: in.Body.TakeOverHistory}
	p, err := d.AddUser(ctx, n, in.Body.Check)
	if err == nil && p == nil {
		return &api.User{Name: in.Body.Name}, nil
	}
	return told(ctx, d)(p, err)
}

type putUserIn struct {
	User string         `path:"user"`
	Body api.UserChange `body:"json"`
}

func putUser(ctx context.Context, d *app.Actions, in *putUserIn) (*api.User, error) {
	if in.Body.Spec.Name != in.User {
		return nil, wire.Bad("a person keeps the name")
	}
	return told(ctx, d)(d.UpdateUser(ctx, in.User, in.Body.Was, in.Body.Spec))
}

type putPasswordIn struct {
	User string             `path:"user"`
	Body api.PasswordChange `body:"json"`
}

func putPassword(ctx context.Context, d *app.Actions, in *putPasswordIn) (*struct{}, error) {
	return &struct{}{}, d.SetPassword(ctx, in.User, secret.String(in.Body.Old), secret.String(in.Body.Password))
}

func removeUser(ctx context.Context, d *app.Actions, in *userIn) (*struct{}, error) {
	return &struct{}{}, d.RemoveUser(ctx, in.User)
}

func newGroup(g *app.Group) api.Group {
	out := api.Group{GroupSpec: v1.GroupSpec{Name: g.Spec.Name, Description: g.Spec.Description}, Members: append([]string{}, g.Members...)}
	if g.Whole {
		out.GroupSpec, out.Created = g.Spec, g.CreationTimestamp.Time
	}
	return out
}

func groups(_ context.Context, d *app.Actions, _ *struct{}) (*api.Groups, error) {
	all, err := d.Groups()
	if err != nil {
		return nil, err
	}
	out := &api.Groups{Items: []api.Group{}}
	for i := range all {
		out.Items = append(out.Items, newGroup(&all[i]))
	}
	return out, nil
}

type groupIn struct {
	Group string `path:"group"`
}

func getGroup(_ context.Context, d *app.Actions, in *groupIn) (*api.Group, error) {
	g, err := d.Group(in.Group)
	if err != nil {
		return nil, err
	}
	out := newGroup(g)
	return &out, nil
}

type putGroupIn struct {
	Group string          `path:"group"`
	Body  api.GroupChange `body:"json"`
}

func putGroup(ctx context.Context, d *app.Actions, in *putGroupIn) (*api.Group, error) {
	if in.Body.Spec.Name != in.Group {
		return nil, wire.Bad("a group keeps its name")
	}
	g, err := d.PutGroup(ctx, in.Body.Was, in.Body.Spec)
	if err != nil {
		return nil, err
	}
	out := newGroup(g)
	return &out, nil
}

func deleteGroup(ctx context.Context, d *app.Actions, in *groupIn) (*struct{}, error) {
	return &struct{}{}, d.DeleteGroup(ctx, in.Group)
}

func newRecord(r *app.TokenRecord) api.TokenRecord {
	out := api.TokenRecord{ID: r.ID, User: r.User, Kind: string(r.Kind), Label: r.Label, Client: r.Client, Address: r.Address, Created: r.Created}
	for _, s := range r.Scopes {
		out.Scopes = append(out.Scopes, string(s))
	}
	for at, to := range map[*time.Time]**time.Time{&r.Expires: &out.Expires, &r.Used: &out.Used} {
		if !at.IsZero() {
			*to = at
		}
	}
	return out
}

type tokensOfIn struct {
	User string `query:"user"`
	All  bool   `query:"all"`
}

func tokenRecords(_ context.Context, d *app.Actions, in *tokensOfIn) (*api.TokenRecords, error) {
	ask := d.Tokens
	if in.All || in.User != "" && in.User != d.Name() {
		ask = func() ([]app.TokenRecord, error) { return d.TokensOf(in.User) }
	}
	all, err := ask()
	if err != nil {
		return nil, err
	}
	out := &api.TokenRecords{Items: []api.TokenRecord{}}
	for i := range all {
		out.Items = append(out.Items, newRecord(&all[i]))
	}
	return out, nil
}

type newTokenIn struct {
	Body   api.NewToken `body:"json"`
	Client string       `header:"User-Agent"`
}

// longest is the maximum lifetime of a token that expires, in seconds.
const longest = 100 * 365 * 24 * 3600

func newToken(ctx context.Context, d *app.Actions, in *newTokenIn) (*api.IssuedToken, error) {
	if in.Body.Seconds < 0 || in.Body.Seconds > longest {
		return nil, wire.Bad(`"seconds" must be between 0 and a hundred years`)
	}
	made, err := d.NewToken(ctx, app.NewToken{Label: in.Body.Label, Scopes: in.Body.Scopes, Life: time.Duration(in.Body.Seconds) * time.Second, Client: in.Client[:min(len(in.Client), 64)]})
	if err != nil {
		return nil, err
	}
	return &api.IssuedToken{Token: made.Token.Reveal(), Record: newRecord(&made.Record)}, nil
}

type rotateKeysIn struct {
	Body api.KeyRotation `body:"json"`
}

func rotateKeys(ctx context.Context, d *app.Actions, in *rotateKeysIn) (*struct{}, error) {
	return &struct{}{}, d.RotateKeys(ctx, in.Body.Revoke)
}

type tokenIn struct {
	Token string `path:"token"`
}

func revokeToken(ctx context.Context, d *app.Actions, in *tokenIn) (*struct{}, error) {
	return &struct{}{}, d.Revoke(ctx, in.Token)
}
