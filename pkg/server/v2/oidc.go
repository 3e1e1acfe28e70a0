package v2

import (
	"html/template"
	"net/http"
	"slices"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

// oidcRoutes returns the routes that sign in browsers for configured pages. Such a page gets the token in its address, as OpenPAI's portal does.
func oidcRoutes() []server.Route {
	return []server.Route{
		{Method: http.MethodGet, Path: prefix + "/authn/oidc/login", Aliases: []string{old + "/authn/oidc/login"}, Rule: "open", Browser: true, Navigation: true, Summary: "Shows a browser the link to an issuer of OpenID Connect, which returns it to redirect_uri with a token; without redirect_uri, redirects it to the sign-in page", Media: "text/html; charset=utf-8", Errors: []string{wire.CodeNoAPI}, Serve: oidcLogin},
		{Method: http.MethodGet, Path: prefix + "/authn/oidc/logout", Aliases: []string{old + "/authn/oidc/logout"}, Rule: "open", Browser: true, Navigation: true, Summary: "Redirects a browser to the sign-in page", Status: http.StatusFound, Media: textMedia, Serve: oidcLogout},
	}
}

type oidcLoginIn struct {
	Redirect string `query:"redirect_uri"`
	From     string `query:"from"`
	Provider string `query:"provider"`
}

// tokenPage asks the user for confirmation before a page gets a token. Otherwise a browser that is signed in at the issuer would complete the sign-in
// without the user, even from a malicious link.
var tokenPage = template.Must(template.New("token").Parse(server.SignInHead + `<h1>Sign in</h1><p>The page <b>{{.Page}}</b> asks to be signed in as you. It then has all your permissions here.</p>
<p>Continue only if you have come from that page.</p><p><a href="{{.To}}">Sign in with {{.Title}}</a></p></body></html>`))

func oidcLogin(c *server.Call) error {
	in := oidcLoginIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	issuers := c.Actions.SignInMethods().Issuers
	if len(issuers) == 0 {
		return &wire.Error{Status: http.StatusNotFound, Code: wire.CodeNoAPI, Message: "this cluster has no issuer of OpenID Connect"}
	}
	if err := c.Navigated(); err != nil {
		return err
	}
	if in.Redirect == "" {
		return found(c, server.SignInPath)
	}
	if in.Provider == "" {
		in.Provider = issuers[0].Name
	}
	address, err := c.ToIssuer(in.Provider, app.Goal{Page: in.Redirect, From: in.From})
	if err != nil {
		return err
	}
	title := in.Provider
	if at := slices.IndexFunc(issuers, func(i app.IssuerName) bool { return i.Name == in.Provider }); at >= 0 {
		title = issuers[at].Title
	}
	return c.Page(0, tokenPage, "", map[string]any{"Page": in.Redirect, "To": address, "Title": title})
}

func oidcLogout(c *server.Call) error { return found(c, server.SignInPath) }

// found redirects a browser to another address.
func found(c *server.Call, to string) error {
	h := c.Writer.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Location", to)
	c.Writer.WriteHeader(http.StatusFound)
	return nil
}
