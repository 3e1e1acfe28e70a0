package v3

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"slices"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

// oldestClient is the oldest version of paictl that this server supports.
const oldestClient = "0.1.0"

func signInRoutes(version string) []server.Route {
	return []server.Route{
		server.JSON("GET", api.Prefix+"/version", "open", "Returns the server's name and version", func(context.Context, *app.Actions, *struct{}) (*api.Version, error) {
			return &api.Version{Version: version, OldestClient: oldestClient}, nil
		}),
		server.JSON("GET", api.Prefix+"/whoami", "token.check", "Returns the caller, and the permissions of the token", whoAmI, server.Browser()),
		server.JSON("POST", api.Prefix+"/first", "open", "Creates the first administrator, with a one-time code", first),
		{Method: "POST", Path: api.TokenPath, Rule: "open", Summary: "Issues tokens for a password, a refresh token, or the code of a sign-in (RFC 6749, RFC 8628)", Errors: []string{"authorization_pending", "slow_down", "access_denied", "expired_token", "IncorrectPasswordError"}, Serve: tokens, In: reflect.TypeFor[tokensForm](), Out: reflect.TypeFor[api.Tokens]()},
		{Method: "POST", Path: api.RevokePath, Rule: "open", Summary: "Ends the session of a refresh token (RFC 7009)", Serve: revoke, In: reflect.TypeFor[revokeForm](), Out: reflect.TypeFor[struct{}]()},
	}
}

func whoAmI(ctx context.Context, d *app.Actions, _ *struct{}) (*api.WhoAmI, error) {
	me, err := d.WhoAmI()
	if err != nil {
		return nil, err
	}
	granted := d.Existing(ctx)(me.Grants)
	out := &api.WhoAmI{Name: me.Name, Email: me.Email, DisplayName: me.DisplayName, DefaultVirtualCluster: me.DefaultVirtualCluster, Groups: append([]string{}, me.Groups...),
		Grants: grants(&granted), Token: api.Token{ID: me.Token.ID, Application: me.Token.Application, Expires: me.Expires}}
	for _, s := range me.Token.Scopes {
		out.Token.Scopes = append(out.Token.Scopes, string(s))
	}
	return out, nil
}

func grants(g *rules.Grants) api.Grants {
	out := api.Grants{Administrator: g.Administrator, AllVirtualClusters: g.AllVCs, VirtualClusters: []api.VC{}, Storages: append([]string{}, g.Storages...)}
	for name, vc := range g.VCs {
		out.VirtualClusters = append(out.VirtualClusters, api.VC{Name: name, SeeJobs: vc.SeeJobs, MaxPriority: vc.MaxPriority, HostNetwork: vc.HostNetwork})
	}
	slices.SortFunc(out.VirtualClusters, func(a, b api.VC) int { return cmp.Compare(a.Name, b.Name) })
	for page, granted := range g.Pages {
		if granted {
			out.Pages = append(out.Pages, page)
		}
	}
	slices.Sort(out.Pages)
	return out
}

type tokensIn struct {
	Grant    string        `json:"grant_type"`
	Username string        `json:"username"`
	Password secret.String `json:"password"`
	Refresh  secret.String `json:"refresh_token"`
	Code     secret.String `json:"code"`
	Verifier string        `json:"code_verifier"`
	Redirect string        `json:"redirect_uri"`
	Device   secret.String `json:"device_code"`
	Client   string        `json:"client_id"`
	Scope    string        `json:"scope"`
}

// tokensForm and revokeForm describe requests for the OpenAPI document. The handlers parse the requests as RFC 6749 and RFC 7009 specify.
type tokensForm struct {
	Body tokensIn `body:"form"`
}

type revokeForm struct {
	Body revokeIn `body:"form"`
}

func tokens(c *server.Call) error {
	in := tokensIn{}
	if err := wire.Body(c.Request, &in); err != nil {
		return refused(c, "invalid_request", err)
	}
	client := cmp.Or(in.Client, c.Request.UserAgent())
	client = client[:min(len(client), 64)]
	switch {
	case in.Grant == api.GrantCode && in.Code.IsSet():
		return given(c)(c.Actions.Redeem(c.Context(), in.Code, in.Verifier, in.Redirect, client))
	case in.Grant == api.GrantDevice && in.Device.IsSet():
		return given(c)(c.Actions.Await(c.Context(), in.Device, client))
	case in.Grant == api.GrantPassword && in.Username != "" && in.Password.IsSet():
		return given(c)(c.Actions.Session(c.Context(), in.Username, in.Password, client))
	case in.Grant == api.GrantRefresh && in.Refresh.IsSet():
		return given(c)(c.Actions.Refresh(c.Context(), in.Refresh, client))
	case in.Grant == api.GrantPassword, in.Grant == api.GrantRefresh:
		return refused(c, "invalid_request", wire.Bad("the grant "+in.Grant+" needs username and password, or refresh_token"))
	}
	return refused(c, "unsupported_grant_type", wire.Bad("grant_type must be password, refresh_token, authorization_code or "+api.GrantDevice+", with what belongs to it"))
}

// given returns a function that responds with tokens or with an error.
func given(c *server.Call) func(*app.Tokens, error) error {
	return func(pair *app.Tokens, err error) error {
		if err != nil {
			return notGranted(c, err)
		}
		return c.JSON(api.Tokens{AccessToken: pair.Access.Reveal(), TokenType: "Bearer", ExpiresIn: int(pair.Lifetime.Seconds()), RefreshToken: pair.Refresh.Reveal()})
	}
}

// notGranted responds to a request that gets no tokens. It returns temporary errors unchanged, so that the client retries.
func notGranted(c *server.Call, err error) error {
	switch e := app.Meaning(err); e.Status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusInternalServerError:
		return err
	default:
		return refused(c, app.GrantError(err), e)
	}
}

func refused(c *server.Call, code string, err error) error {
	c.Writer.Header().Set("Cache-Control", "no-store")
	return wire.JSON(c.Writer, c.Request, http.StatusBadRequest, struct {
		api.OAuthError
		Code    string `json:"code"`
		Message string `json:"message"`
	}{api.OAuthError{Error: code, Description: err.Error()}, app.Meaning(err).Code, err.Error()})
}

type revokeIn struct {
	Token secret.String `json:"token"`
	Hint  string        `json:"token_type_hint"`
}

func revoke(c *server.Call) error {
	in := revokeIn{}
	if err := wire.Body(c.Request, &in); err != nil {
		return refused(c, "invalid_request", err)
	}
	if in.Token.IsSet() {
		if err := c.Actions.EndSession(c.Context(), in.Token); err != nil {
			return err
		}
	}
	return c.JSON(struct{}{})
}

type firstIn struct {
	Body struct {
		Code     secret.String `json:"code"`
		Username string        `json:"username"`
		Password secret.String `json:"password"`
	} `body:"json"`
}

func first(ctx context.Context, d *app.Actions, in *firstIn) (*api.First, error) {
	name, err := d.First(ctx, in.Body.Code, in.Body.Username, in.Body.Password)
	return &api.First{Name: name}, err
}
