package v3

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"strconv"

	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

// browserRoutes returns the routes that browsers use to sign in at issuers, and to sign in programs.
func browserRoutes() []server.Route {
	const prefix = api.Prefix + "/signin"
	return []server.Route{
		server.JSON(http.MethodGet, prefix, "open", "Returns the ways to sign in", signInMethods),
		browser(http.MethodPost, prefix+"/oidc/{issuer}", "open", "Sends a browser to an issuer of OpenID Connect", reflect.TypeFor[toIssuerIn](), reflect.TypeFor[api.Go](), toIssuer, wire.CodeNoAPI),
		{Method: http.MethodGet, Path: prefix + "/oidc/{issuer}/return", Rule: "open", Summary: "Finishes a browser's sign-in at an issuer of OpenID Connect", Browser: true, Navigation: true, Media: "text/html; charset=utf-8", Serve: fromIssuer},
		browser(http.MethodPost, prefix+"/password", "open", "Signs a program in by a password that its person types into a browser", reflect.TypeFor[forProgramIn](), reflect.TypeFor[api.Arrival](), forProgram),
		browser(http.MethodPost, prefix+"/approval", "open", "Approves or refuses a program that waits, by the approval that a sign-in for it returned", reflect.TypeFor[approvalIn](), reflect.TypeFor[struct{}](), approve),
		server.JSON(http.MethodGet, prefix+"/device", "token.own", "Returns the program that shows a code and waits for its sign-in", waitsForCode),
		server.JSON(http.MethodPost, prefix+"/device", "token.own", "Approves or refuses the sign-in of a program that shows a code", letIn),
		{Method: http.MethodPost, Path: api.DevicePath, Rule: "open", Summary: "Starts the sign-in of a program without a browser (RFC 8628)", Out: reflect.TypeFor[api.Device](), Serve: newDevice},
	}
}

// browser returns a route for requests of this server's pages with the session of their browser.
func browser(method, path, rule, summary string, in, out reflect.Type, serve func(*server.Call) error, codes ...string) server.Route {
	return server.Route{Method: method, Path: path, Rule: rule, Summary: summary, Browser: true, In: in, Out: out, Errors: append([]string{"IncorrectPasswordError"}, codes...), Serve: serve}
}

func signInMethods(_ context.Context, d *app.Actions, _ *struct{}) (*api.SignInMethods, error) {
	w := d.SignInMethods()
	out := &api.SignInMethods{Password: w.Password, Issuers: []api.Issuer{}, At: w.At}
	for _, i := range w.Issuers {
		out.Issuers = append(out.Issuers, api.Issuer{Name: i.Name, Title: i.Title})
	}
	return out, nil
}

type toIssuerIn struct {
	Issuer string   `path:"issuer"`
	Body   api.Goal `body:"json"`
}

// goal converts the goal of a sign-in that a page requests.
func goal(g *api.Goal) app.Goal {
	out := app.Goal{To: server.Local(g.To), Device: g.Device}
	if p := g.Program; p != nil {
		out.Program = &app.Program{Redirect: p.Redirect, State: p.State, Challenge: p.Challenge, Client: p.Client[:min(len(p.Client), maxClient)]}
	}
	return out
}

func toIssuer(c *server.Call) error {
	in := toIssuerIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	address, err := c.ToIssuer(in.Issuer, goal(&in.Body))
	if err != nil {
		return err
	}
	c.Writer.Header().Set("Cache-Control", "no-store")
	return c.JSON(api.Go{To: address})
}

func fromIssuer(c *server.Call) error {
	if err := c.Navigated(); err != nil {
		return err
	}
	name, back := c.Request.PathValue("issuer"), c.Request.URL.Query()
	got, goal, err := c.Actions.FromIssuer(c.Context(), name, back, c.Awaited(app.AwayName(back)), agent(c))
	c.DropAwaited(app.AwayName(back))
	switch {
	case err != nil && goal.Page != "":
		e := app.Meaning(err)
		return see(c, goal.Page, url.Values{"errorMessage": {e.Message}})
	case err != nil && c.WantsPage():
		return explain(c, err)
	case err != nil:
		return err
	case goal.Page != "":
		return see(c, goal.Page, url.Values{"user": {got.Name}, "token": {got.Token.Reveal()}, "admin": {strconv.FormatBool(got.Administrator)}, "hasGitHubPAT": {"false"}, "from": {goal.From}})
	case got.Address != "":
		return see(c, got.Address, nil)
	case got.Waiting != nil:
		return askApproval(c, got.Waiting)
	}
	if err := c.KeepSession(got.Token, got.Expires); err != nil {
		return err
	}
	to := goal.To
	if to == "" {
		to = server.SignInPath
	}
	return see(c, to, nil)
}

// agent returns the beginning of the browser's name, for the list of tokens.
func agent(c *server.Call) string {
	name := c.Request.UserAgent()
	return name[:min(len(name), maxClient)]
}

// maxClient limits the length of a program's name that is stored with its token.
const maxClient = 64

// see redirects a browser to an address, and adds keys to the query of the address.
func see(c *server.Call, to string, more url.Values) error {
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	if len(more) > 0 {
		q := u.Query()
		for k, v := range more {
			q[k] = v
		}
		u.RawQuery = q.Encode()
	}
	h := c.Writer.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Location", u.String())
	c.Writer.WriteHeader(http.StatusSeeOther)
	return nil
}

type forProgramIn struct {
	Body struct {
		Username string        `json:"username"`
		Password secret.String `json:"password"`
		Goal     api.Goal      `json:"goal"`
	} `body:"json"`
}

func forProgram(c *server.Call) error {
	in := forProgramIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	if in.Body.Username == "" || !in.Body.Password.IsSet() {
		return wire.Bad(`"username" and "password" are required`)
	}
	got, err := c.Actions.SignInFor(c.Context(), in.Body.Username, in.Body.Password, goal(&in.Body.Goal), agent(c))
	if err != nil {
		return err
	}
	c.Writer.Header().Set("Cache-Control", "no-store")
	out := api.Arrival{To: got.Address}
	if w := got.Waiting; w != nil {
		out.Waiting = shownWaiting(w)
	}
	return c.JSON(out)
}

func shownWaiting(w *app.Waiting) *api.Waiting {
	return &api.Waiting{Name: w.Name, Client: w.Client, Address: w.Address, Began: w.Began, Approval: w.Approval.Reveal()}
}

type approvalIn struct {
	Body struct {
		Approval secret.String `json:"approval"`
		Allow    bool          `json:"allow"`
	} `body:"json"`
}

func approve(c *server.Call) error {
	in := approvalIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	if err := c.Actions.Approve(c.Context(), in.Body.Approval, in.Body.Allow); err != nil {
		return err
	}
	return c.JSON(struct{}{})
}

type waitsIn struct {
	Code string `query:"code"`
}

func waitsForCode(ctx context.Context, d *app.Actions, in *waitsIn) (*api.Waiting, error) {
	w, err := d.Waits(ctx, in.Code)
	if err != nil {
		return nil, err
	}
	return shownWaiting(w), nil
}

// letInBody is like api.LetIn, but its session is a secret.
type letInBody struct {
	Code    string        `json:"code"`
	Allow   bool          `json:"allow"`
	Session secret.String `json:"session"`
}

type letInIn struct {
	Body letInBody `body:"json"`
}

func letIn(ctx context.Context, d *app.Actions, in *letInIn) (*struct{}, error) {
	return &struct{}{}, d.LetIn(ctx, in.Body.Code, in.Body.Allow, in.Body.Session)
}

type deviceIn struct {
	Client string        `json:"client_id"`
	Scope  string        `json:"scope"`
	Secret secret.String `json:"client_secret"`
}

func newDevice(c *server.Call) error {
	in := deviceIn{}
	if err := wire.Body(c.Request, &in); err != nil {
		return refused(c, "invalid_request", err)
	}
	d, err := c.Actions.NewDevice(c.Context(), in.Client[:min(len(in.Client), maxClient)])
	if err != nil {
		return err
	}
	at := d.At
	if at == "" {
		at = "https://" + c.Request.Host
	}
	c.Writer.Header().Set("Cache-Control", "no-store")
	return c.JSON(api.Device{DeviceCode: d.Code.Reveal(), UserCode: d.User, VerificationURI: at + api.DevicePage, VerificationComplete: at + api.DevicePage + "?user_code=" + d.User,
		ExpiresIn: int(d.Life.Seconds()), Interval: int(d.Interval.Seconds())})
}
