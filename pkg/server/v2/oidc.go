package v2

import (
	"net/http"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/desk"
	"github.com/openpai/paictl/pkg/server/wire"
)

// oidcRoutes sign browsers in for clients of OpenPAI, which get the token in the address of their page.
func oidcRoutes() []server.Route {
	return []server.Route{
		{Method: http.MethodGet, Path: prefix + "/authn/oidc/login", Aliases: []string{old + "/authn/oidc/login"}, Rule: "open", Browser: true, Summary: "Sends a browser to an issuer of OpenID Connect, and then to redirect_uri with the token", Status: http.StatusFound, Media: textMedia, Errors: []string{wire.CodeNoAPI}, Serve: oidcLogin},
		{Method: http.MethodGet, Path: prefix + "/authn/oidc/logout", Aliases: []string{old + "/authn/oidc/logout"}, Rule: "open", Browser: true, Summary: "Sends a browser to the page on which people sign in", Status: http.StatusFound, Media: textMedia, Serve: oidcLogout},
	}
}

type oidcLoginIn struct {
	Redirect string `query:"redirect_uri"`
	From     string `query:"from"`
	Provider string `query:"provider"`
}

func oidcLogin(c *server.Call) error {
	in := oidcLoginIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	issuers := c.Desk.Ways().Issuers
	if len(issuers) == 0 {
		return &wire.Error{Status: http.StatusNotFound, Code: wire.CodeNoAPI, Message: "this cluster has no issuer of OpenID Connect"}
	}
	if in.Provider == "" {
		in.Provider = issuers[0].Name
	}
	address, err := c.ToIssuer(in.Provider, desk.Goal{Page: in.Redirect, From: in.From})
	if err != nil {
		return err
	}
	return found(c, address)
}

func oidcLogout(c *server.Call) error { return found(c, server.SignInPath) }

// found sends a browser on.
func found(c *server.Call, to string) error {
	h := c.Writer.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Location", to)
	c.Writer.WriteHeader(http.StatusFound)
	return nil
}
