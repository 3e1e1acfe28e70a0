package oidc

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/coreos/go-oidc/v3/oidc"
)

// secure is a transport that blocks requests without TLS, even after a redirect by the issuer.
type secure struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s secure) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := isSecure(r.URL.String()); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	return s.RoundTripper.RoundTrip(r)
}

// maxRedirects is the limit of the standard library.
const maxRedirects = 10

// onlyQuestions follows redirects of GET requests only. Other requests contain secrets, such as a code with the client's secret.
func onlyQuestions(_ *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet {
		return errors.New("it sends on what is sent to it")
	}
	if len(via) >= maxRedirects {
		return errors.New("it redirects too often")
	}
	return nil
}

// isSecure returns an error for an address without TLS.
func isSecure(address string) error {
	u, err := url.Parse(address)
	if err == nil && u.Scheme == "https" && u.Host != "" {
		return nil
	}
	return fmt.Errorf("%s is not an https:// address", plain(address))
}

// secureEndpoints returns an error if any endpoint of the issuer doesn't use TLS, including endpoints that only browsers use.
func secureEndpoints(p *oidc.Provider) error {
	more := struct {
		Keys     string `json:"jwks_uri"`
		Userinfo string `json:"userinfo_endpoint"`
	}{}
	if err := p.Claims(&more); err != nil {
		return err
	}
	at := p.Endpoint()
	err := errors.Join(named("authorization_endpoint", at.AuthURL), named("token_endpoint", at.TokenURL), named("jwks_uri", more.Keys))
	if more.Userinfo != "" {
		err = errors.Join(err, named("userinfo_endpoint", more.Userinfo))
	}
	return err
}

func named(what, address string) error {
	if err := isSecure(address); err != nil {
		return fmt.Errorf("its %s: %w", what, err)
	}
	return nil
}
