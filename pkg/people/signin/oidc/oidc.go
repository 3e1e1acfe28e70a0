// Package oidc signs in people through an OpenID Connect issuer. It uses the authorization code flow with PKCE, state and nonce. In: an issuer, and
// the parameters that a browser returned. Out: addresses for browsers, and identities for pkg/people/signin.
package oidc

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/secret"
)

// Options configure an issuer and its claims.
type Options struct {
	// Name is the issuer's name in paictl's configuration. Title is the text of its button. Issuer is its URL.
	Name, Title, Issuer string
	ClientID            string
	ClientSecret        secret.String
	// CA holds the PEM certificates of the CAs that may sign the issuer's certificate. "" means the CAs of the system.
	CA string
	// Scopes holds the requested scopes in addition to openid.
	Scopes []string
	Claims Claims
	// Return is the address to which the issuer redirects browsers after a sign-in.
	Return string
	Now    func() time.Time // nil is time.Now
	Log    *slog.Logger     // nil discards the log
}

const (
	// patience limits the time of a request to an issuer.
	patience = 10 * time.Second
	// again is the time after a failed request for the issuer's configuration before the next request. Users then don't wait for an issuer that
	// doesn't respond.
	again = 5 * time.Second
)

// Issuer is an issuer of OpenID Connect. It implements signin.Checker.
type Issuer struct {
	o    Options
	http *http.Client

	mu      sync.Mutex
	known   *oidc.Provider // nil until the issuer's configuration has been read
	failed  error
	retryAt time.Time
}

var _ signin.Checker = (*Issuer)(nil)

// New returns an Issuer. It checks the options without a request, so it succeeds even if the issuer is unavailable. The first sign-in sends the first
// request.
func New(o Options) (*Issuer, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(o.CA)) {
			return nil, errors.New("ca: there is no certificate in it")
		}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: patience}
	return &Issuer{o: o, http: &http.Client{Transport: secure{transport}, CheckRedirect: onlyQuestions, Timeout: patience}}, nil
}

// Name returns the issuer's configured name.
func (i *Issuer) Name() string { return i.o.Name }

// Title returns the text of the issuer's button: the configured Title, or the name if Title is empty.
func (i *Issuer) Title() string { return cmp.Or(i.o.Title, i.o.Name) }

// Refreshes returns true, because Check needs a refresh token.
func (i *Issuer) Refreshes() bool { return true }

// provider returns the configuration that the issuer publishes. It reads the configuration once.
func (i *Issuer) provider() (*oidc.Provider, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.known != nil {
		return i.known, nil
	}
	now := i.o.Now()
	if i.failed != nil && now.Before(i.retryAt) {
		return nil, i.failed
	}
	// The client uses a background context, because it fetches the issuer's keys until the program ends.
	known, err := oidc.NewProvider(oidc.ClientContext(context.Background(), i.http), i.o.Issuer)
	if err == nil {
		err = secureEndpoints(known)
	}
	if err != nil {
		i.failed, i.retryAt = i.away(err), now.Add(again)
		return nil, i.failed
	}
	i.known, i.failed = known, nil
	return known, nil
}

// away logs a connection error of an issuer, and wraps it in people.ErrUnavailable.
func (i *Issuer) away(err error) error {
	i.o.Log.Warn("an issuer can't be reached", "provider", i.o.Name, "error", err.Error())
	return fmt.Errorf("%w: the issuer %s can't be reached: %w", people.ErrUnavailable, i.o.Name, err)
}

// PendingRequest holds the secret values of a browser's authorization request. The caller stores the encrypted PendingRequest until the browser returns.
type PendingRequest struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
}

// Begin returns the issuer's address for the redirect of the browser, and the values that Finish needs.
func (i *Issuer) Begin() (address string, ask PendingRequest, err error) {
	p, err := i.provider()
	if err != nil {
		return "", ask, err
	}
	ask = PendingRequest{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	return i.config(p).AuthCodeURL(ask.State, oidc.Nonce(ask.Nonce), oauth2.S256ChallengeOption(ask.Verifier)), ask, nil
}

func (i *Issuer) config(p *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{ClientID: i.o.ClientID, ClientSecret: i.o.ClientSecret.Reveal(), Endpoint: p.Endpoint(), RedirectURL: i.o.Return, Scopes: append([]string{oidc.ScopeOpenID}, i.o.Scopes...)}
}

// Errors of Finish. All other errors wrap people.ErrUnavailable.
var (
	// ErrMismatch means that an issuer's response doesn't belong to the sign-in that this browser began.
	ErrMismatch = errors.New("the answer of the issuer belongs to another sign-in")
	// ErrRefused means that an issuer doesn't confirm the person, or that its response is invalid.
	ErrRefused = errors.New("the issuer doesn't confirm the sign-in")
)

// Finish completes a sign-in with the parameters that a browser returned. It returns the person's identity.
func (i *Issuer) Finish(ctx context.Context, back url.Values, ask PendingRequest) (*signin.Identity, error) {
	if ask.State == "" || subtle.ConstantTimeCompare([]byte(back.Get("state")), []byte(ask.State)) != 1 {
		return nil, ErrMismatch
	}
	p, err := i.provider()
	if err != nil {
		return nil, err
	}
	if err := i.from(p, back); err != nil {
		return nil, err
	}
	if code := back.Get("error"); code != "" {
		return nil, fmt.Errorf("%w: it says %s", ErrRefused, plain(code))
	}
	ctx = oidc.ClientContext(ctx, i.http)
	token, err := i.config(p).Exchange(ctx, back.Get("code"), oauth2.VerifierOption(ask.Verifier))
	if err != nil {
		return nil, i.refused(err)
	}
	id, err := i.verified(ctx, p, token)
	if err != nil {
		return nil, err
	}
	if id == nil {
		return nil, fmt.Errorf("%w: its answer has no ID token", ErrRefused)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(ask.Nonce)) != 1 {
		return nil, ErrMismatch
	}
	return i.identity(ctx, p, token, id)
}

// from returns ErrMismatch if the parameters contain the name of a different issuer. Issuers that support RFC 9207 add their name.
func (i *Issuer) from(p *oidc.Provider, back url.Values) error {
	says := struct {
		Names bool `json:"authorization_response_iss_parameter_supported"`
	}{}
	if err := p.Claims(&says); err != nil {
		return i.away(err)
	}
	if got := back.Get("iss"); got != "" && got != i.o.Issuer || got == "" && says.Names {
		return ErrMismatch
	}
	return nil
}

// verified returns the ID token of a response. It checks the signature, issuer, audience and expiry. It returns nil if the response contains no ID
// token.
func (i *Issuer) verified(ctx context.Context, p *oidc.Provider, token *oauth2.Token) (*oidc.IDToken, error) {
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, nil
	}
	id, err := p.VerifierContext(ctx, &oidc.Config{ClientID: i.o.ClientID, Now: i.o.Now}).Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: its ID token isn't valid: %w", ErrRefused, err)
	}
	return id, nil
}

// refused converts the error of a token request. It distinguishes an issuer that rejects the request from an issuer that can't be reached.
func (i *Issuer) refused(err error) error {
	if said, ok := errors.AsType[*oauth2.RetrieveError](err); ok && said.ErrorCode != "" && said.Response.StatusCode < http.StatusInternalServerError {
		return fmt.Errorf("%w: it says %s", ErrRefused, plain(said.ErrorCode))
	}
	return i.away(err)
}

// plain sanitizes an error code of another program for error messages.
func plain(code string) string {
	for _, r := range code {
		if r < '!' || r > '~' {
			return "something that can't be shown"
		}
	}
	return code[:min(len(code), 64)]
}

// about holds error codes that concern one person. They don't mean that the issuer fails for other people. For example, Dex returns server_error for
// a person who was removed from the directory behind Dex. These codes also don't prove that the person no longer exists, because an invalid request
// of this program returns invalid_request.
var about = []string{"invalid_request", "invalid_scope", "server_error"}

// unrefreshed converts the error of a request with a refresh token. It returns an ErrLost if the issuer may have received the request. An issuer that
// rotates refresh tokens then rejects the token that was sent.
func (i *Issuer) unrefreshed(err error) error {
	said, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case ok && said.ErrorCode == "invalid_grant" && said.Response.StatusCode < http.StatusInternalServerError:
		return signin.ErrGone
	case ok && slices.Contains(about, said.ErrorCode):
		return i.away(fmt.Errorf("%w: it says %s", signin.ErrUnsaid, said.ErrorCode))
	case ok && said.Response.StatusCode < http.StatusInternalServerError, unsent(err):
		return i.away(err)
	}
	return i.away(fmt.Errorf("%w: %w", signin.ErrLost, err))
}

// unsent reports whether a request failed before any data was sent.
func unsent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// Check requests the person's current claims with a refresh token. It may return an identity together with an error; see signin.Checker.
func (i *Issuer) Check(ctx context.Context, subject string, refresh secret.String) (*signin.Identity, error) {
	if !refresh.IsSet() {
		return nil, fmt.Errorf("%w: the issuer %s issued no token with which it can be asked again", people.ErrUnavailable, i.o.Name)
	}
	p, err := i.provider()
	if err != nil {
		return nil, err
	}
	ctx = oidc.ClientContext(ctx, i.http)
	token, err := i.config(p).TokenSource(ctx, &oauth2.Token{RefreshToken: refresh.Reveal()}).Token()
	if err != nil {
		return nil, i.unrefreshed(err)
	}
	// The issuer may already have invalidated the refresh token. So return the next token even if the rest of the check fails.
	kept := &signin.Identity{Provider: i.o.Name, Subject: subject, Refresh: secret.String(token.RefreshToken)}
	id, err := i.verified(ctx, p, token)
	if err == nil && id != nil && id.Subject != subject {
		return nil, signin.ErrGone
	}
	if err != nil {
		return kept, i.away(err)
	}
	now, err := i.identityOf(ctx, p, token, id, subject)
	if err != nil {
		return kept, err
	}
	return now, nil
}
