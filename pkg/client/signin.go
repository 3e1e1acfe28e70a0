package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// RefusedError is returned if the server refuses to issue tokens to the user.
type RefusedError struct{ text, code string }

// Error returns the server's message.
func (e *RefusedError) Error() string { return e.text }

// Pair is an access token with its refresh token.
type Pair struct {
	Access, Refresh secret.String
	// Lifetime is how long Access is valid, in seconds.
	Lifetime int
}

// Password signs in with a user's name and password.
func (s *Server) Password(ctx context.Context, name string, password secret.String) (*Pair, error) {
	return s.tokensFor(ctx, url.Values{"grant_type": {api.GrantPassword}, "username": {name}, "password": {password.Reveal()}}, true)
}

// Errors that Await returns.
var (
	// ErrPending means that the sign-in hasn't been confirmed yet. ErrSlow means the same, and also that the client polls too often.
	ErrPending = errors.New("the sign-in of this program has not been confirmed yet")
	ErrSlow    = errors.New("the server gets too many requests")
)

// Code exchanges the code from a browser's sign-in for tokens.
func (s *Server) Code(ctx context.Context, code secret.String, verifier, redirect string) (*Pair, error) {
	return s.tokensFor(ctx, url.Values{"grant_type": {api.GrantCode}, "code": {code.Reveal()}, "code_verifier": {verifier}, "redirect_uri": {redirect}}, true)
}

// NewDevice begins a sign-in with a browser on another machine.
func (s *Server) NewDevice(ctx context.Context) (*api.Device, error) {
	out := &api.Device{}
	return out, explained(s.ask(ctx, form(api.DevicePath, url.Values{"client_id": {s.Client()}}), out))
}

// Waits returns the program that shows a code to the user and waits for the sign-in.
func (s *Server) Waits(ctx context.Context, code string) (*api.Waiting, error) {
	return answered[api.Waiting](ctx, s, get(api.Prefix+"/signin/device", url.Values{"code": {code}}), nil)
}

// LetIn allows or denies the sign-in of the program that shows a code. session is the refresh token of the caller's session.
func (s *Server) LetIn(ctx context.Context, code string, allow bool, session secret.String) error {
	q, err := post(api.Prefix+"/signin/device", nil, api.LetIn{Code: code, Allow: allow, Session: session.Reveal()})
	return s.done(ctx, q, err)
}

// Await gets the tokens of a sign-in that NewDevice began. If it returns ErrPending or ErrSlow, the caller must call it again.
func (s *Server) Await(ctx context.Context, device secret.String) (*Pair, error) {
	pair, err := s.tokensFor(ctx, url.Values{"grant_type": {api.GrantDevice}, "device_code": {device.Reveal()}}, false)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		switch refused.code {
		case "authorization_pending":
			return nil, ErrPending
		case "slow_down":
			return nil, ErrSlow
		}
	}
	return pair, err
}

// Page returns the URL of a web page of the server.
func (s *Server) Page(path string, query url.Values) string {
	return (&url.URL{Scheme: s.base.Scheme, Host: s.base.Host, Path: path, RawQuery: query.Encode()}).String()
}

// Client returns the name and version of this program, as the server shows them to the user.
func (s *Server) Client() string { return "paictl/" + s.version }

// SignInMethods returns the methods that users can use to sign in to the server.
func (s *Server) SignInMethods(ctx context.Context) (*api.SignInMethods, error) {
	out := &api.SignInMethods{}
	q := get(api.Prefix+"/signin", nil)
	q.open = true
	return out, explained(s.ask(ctx, q, out))
}

// As returns a copy of s whose requests contain token.
func (s *Server) As(token secret.String) *Server {
	out := *s
	out.tokens = Fixed(token)
	return &out
}

// Refresh exchanges a refresh token for a new pair of tokens.
func (s *Server) Refresh(ctx context.Context, refresh secret.String) (*Pair, error) {
	return s.tokensFor(ctx, url.Values{"grant_type": {api.GrantRefresh}, "refresh_token": {refresh.Reveal()}}, false)
}

// Revoke ends the session with a refresh token.
func (s *Server) Revoke(ctx context.Context, refresh secret.String) error {
	return explained(s.ask(ctx, form(api.RevokePath, url.Values{"token": {refresh.Reveal()}, "token_type_hint": {"refresh_token"}}), nil))
}

// form returns a request whose body is an encoded HTML form. Its values are secrets.
func form(path string, values url.Values) question {
	return question{method: http.MethodPost, path: path, open: true, body: []byte(values.Encode()), header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}}
}

func (s *Server) tokensFor(ctx context.Context, values url.Values, once bool) (*Pair, error) {
	values.Set("client_id", s.Client())
	q := form(api.TokenPath, values)
	q.once = once
	// The tokens are decoded as strings, because secret.String would decode to its mask.
	out := struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Life    int    `json:"expires_in"`
	}{}
	err := s.ask(ctx, q, &out)
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Status == http.StatusBadRequest {
			return nil, &RefusedError{e.Body.Message, e.Body.Code}
		}
		if e.Status == http.StatusTooManyRequests {
			return nil, hint.Errorf("wait for a few minutes, then try again", "the server takes no more tries to sign in for a while")
		}
	}
	if err != nil {
		return nil, explained(err)
	}
	if out.Access == "" {
		return nil, errors.New("sign in: the server's answer has no token")
	}
	return &Pair{Access: secret.String(out.Access), Refresh: secret.String(out.Refresh), Lifetime: out.Life}, nil
}

// WhoAmI returns the signed-in user with the user's rights.
func (s *Server) WhoAmI(ctx context.Context) (*api.WhoAmI, error) {
	out := &api.WhoAmI{}
	return out, explained(s.ask(ctx, get(api.Prefix+"/whoami", nil), out))
}

// Version returns the version of the server. The request is sent without a token.
func (s *Server) Version(ctx context.Context) (*api.Version, error) {
	out := &api.Version{}
	q := get(api.Prefix+"/version", nil)
	q.open, q.once = true, true
	return out, explained(s.ask(ctx, q, out))
}

var _ json.Marshaler = secret.String("") // so that printing a Pair shows no token
