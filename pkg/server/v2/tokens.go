package v2

import (
	"context"
	"net/http"
	"time"

	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

func tokenRoutes() []server.Route {
	return []server.Route{
		server.JSON(http.MethodPost, prefix+"/authn/basic/login", "open", "Gives a token for a user name and a password", login,
			server.Also(old+"/authn/basic/login", prefix+"/token", prefix+"/tokens", old+"/token", old+"/tokens"), server.Errors("IncorrectPasswordError", "InvalidParametersError")),
		server.JSON(http.MethodDelete, prefix+"/authn/basic/logout", "token.own", "Revokes the token of the request", logout, server.Also(old+"/authn/basic/logout")),
		server.JSON(http.MethodGet, prefix+"/tokens", "token.own", "Lists handles of your tokens, which can only be used to revoke them", tokens, server.Also(prefix+"/token", old+"/token", old+"/tokens")),
		server.JSON(http.MethodPost, prefix+"/tokens/application", "token.own", "Creates a token for programs, and shows it once", newToken, server.Also(prefix+"/token/application", old+"/token/application")),
		server.JSON(http.MethodGet, prefix+"/tokens/check", "token.check", "Returns the claims of a token", check, server.Also(prefix+"/token/check", old+"/token/check")),
		server.JSON(http.MethodDelete, prefix+"/tokens/{token}", "token.own", "Revokes a token", revoke, server.Also(prefix+"/token/{token}", old+"/token/{token}"), server.Errors("NoTokenError")),
	}
}

type loginIn struct {
	Body struct {
		Username   string        `json:"username"`
		Password   secret.String `json:"password"`
		Expiration *int          `json:"expiration"` // seconds
	} `body:"json"`
	Client string `header:"User-Agent"`
}

type session struct {
	User  string `json:"user"`
	Token string `json:"token"`
	Admin bool   `json:"admin"`
}

func login(ctx context.Context, d *app.Actions, in *loginIn) (*session, error) {
	switch {
	case in.Body.Username == "":
		return nil, wire.Bad(`"username" is required`)
	case !in.Body.Password.IsSet():
		return nil, wire.Bad(`"password" is required`)
	}
	life := time.Duration(0)
	if e := in.Body.Expiration; e != nil {
		if *e < 0 || *e > int(app.MaxLife/time.Second) {
			return nil, wire.Bad(`"expiration" must be between 60 and 604800 seconds`)
		}
		life = max(time.Duration(*e)*time.Second, app.MinLife)
	}
	s, err := d.SignIn(ctx, in.Body.Username, in.Body.Password, life, in.Client[:min(len(in.Client), 64)])
	if err != nil {
		return nil, err
	}
	return &session{s.Name, s.Token.Reveal(), s.Administrator}, nil
}

func logout(ctx context.Context, d *app.Actions, _ *struct{}) (*message, error) {
	return &message{Message: "Logout successfully"}, d.Logout(ctx)
}

// tokenList holds the handles of tokens, which have the format of tokens. The portal reads the user and the expiry from a handle. It sends the handle
// to revoke the token.
type tokenList struct {
	Tokens []string `json:"tokens"`
}

func tokens(_ context.Context, d *app.Actions, _ *struct{}) (*tokenList, error) {
	all, err := d.Tokens()
	if err != nil {
		return nil, err
	}
	out := &tokenList{Tokens: []string{}}
	for i := range all {
		out.Tokens = append(out.Tokens, app.Handle(all[i]))
	}
	return out, nil
}

type newTokenIn struct {
	Body struct {
		Label      string   `json:"label"`
		Expiration int      `json:"expiration"` // seconds; 0: until it is revoked
		Scopes     []string `json:"scopes"`
	} `body:"json"`
	Client string `header:"User-Agent"`
}

type application struct {
	Token       string `json:"token"`
	Application bool   `json:"application"`
}

func newToken(ctx context.Context, d *app.Actions, in *newTokenIn) (*application, error) {
	if in.Body.Expiration < 0 || in.Body.Expiration > 100*365*24*3600 {
		return nil, wire.Bad(`"expiration" must be a number of seconds, at most a hundred years`)
	}
	made, err := d.NewToken(ctx, app.NewToken{Label: in.Body.Label, Scopes: in.Body.Scopes, Life: time.Duration(in.Body.Expiration) * time.Second, Client: in.Client[:min(len(in.Client), 64)]})
	if err != nil {
		return nil, err
	}
	return &application{made.Token.Reveal(), true}, nil
}

type revokeIn struct {
	Token string `path:"token"`
}

func revoke(ctx context.Context, d *app.Actions, in *revokeIn) (*message, error) {
	return &message{Message: "revoke successfully"}, d.Revoke(ctx, in.Token)
}

// checked holds the claims of a token, and whether its person is currently an administrator.
type checked struct {
	Username    string `json:"username"`
	Application bool   `json:"application"`
	IssuedAt    int64  `json:"iat,omitempty"`
	Expires     int64  `json:"exp,omitempty"`
	Admin       bool   `json:"admin"`
}

func check(_ context.Context, d *app.Actions, _ *struct{}) (*checked, error) {
	me, err := d.WhoAmI()
	if err != nil {
		return nil, err
	}
	return &checked{me.Name, me.Claims.Application, me.Claims.IssuedAt, me.Claims.Expires, me.Grants.Administrator}, nil
}
