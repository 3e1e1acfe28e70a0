package image

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// Access defines how to connect to registries. Connections use TLS with a certificate that this machine trusts. Plain HTTP is only allowed for
// registries on this machine.
type Access struct {
	// Host is the registry to which Username and Password belong. For other registries, the logins of docker or podman are used.
	Host     string
	Username string
	Password secret.String
	// Insecure accepts any certificate of a registry on this machine.
	Insecure bool
	// Keychain holds the logins for other registries. If it is nil, the logins of docker or podman are used.
	Keychain authn.Keychain
	// Transport sends the requests. If it is nil, http.DefaultTransport is used.
	Transport *http.Transport
}

// errPlain is the error for requests that would be sent without TLS to another machine.
var errPlain = errors.New("plain HTTP is only used for registries on this machine")

// guard rejects plain HTTP to other machines. It also rejects requests that the registry client would allow because the address is private, or
// because a registry redirects the client to get a token.
type guard struct{ http.RoundTripper }

// RoundTrip sends a request if it is allowed.
func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !loopback(r.URL.Hostname()) {
		return nil, errPlain
	}
	return g.RoundTripper.RoundTrip(r)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Loopback reports whether the registry of a reference is on this machine.
func Loopback(ref string) bool {
	u, err := url.Parse("//" + ref)
	return err == nil && loopback(u.Hostname())
}

func (a Access) transport(ref name.Reference) http.RoundTripper {
	base := a.Transport
	if base == nil {
		base, _ = http.DefaultTransport.(*http.Transport)
	}
	if a.Insecure && Loopback(ref.Context().RegistryStr()) {
		base = base.Clone()
		base.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // requested, and only for this machine
	}
	return guard{base}
}

// keychain returns the logins. It uses Username and Password for Host, and otherwise Keychain or the logins of docker or podman.
func (a Access) keychain() authn.Keychain {
	rest := a.Keychain
	if rest == nil {
		rest = authn.DefaultKeychain
	}
	return login{access: a, rest: rest}
}

type login struct {
	access Access
	rest   authn.Keychain
}

// Resolve returns the login for a registry.
func (l login) Resolve(r authn.Resource) (authn.Authenticator, error) {
	if l.access.ours(r.RegistryStr()) {
		return &authn.Basic{Username: l.access.Username, Password: l.access.Password.Reveal()}, nil
	}
	return l.rest.Resolve(r)
}

// ours reports whether Username and Password are the login for a registry.
func (a Access) ours(registry string) bool {
	if a.Host == "" || a.Username == "" {
		return false
	}
	own, err := name.NewRegistry(a.Host)
	return err == nil && own.RegistryStr() == registry
}

// explain adds the remedy to an error of a registry. The error contains no password, because the client sends the password in a header, and errors
// don't contain headers.
func (a Access) explain(err error, target string) error {
	host := target
	if ref, perr := name.ParseReference(target); perr == nil {
		host = ref.Context().RegistryStr()
	}
	answer, answered := errors.AsType[*transport.Error](err)
	var unknown x509.UnknownAuthorityError
	switch {
	case answered && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		return hint.Wrap(err, a.loginHint(host))
	case errors.As(err, &unknown):
		return hint.Wrap(err, "put the certificate of "+host+"'s authority where this machine looks for it, or name it: export SSL_CERT_FILE=ca.crt")
	case errors.Is(err, errPlain):
		return hint.Wrap(err, "give "+host+" a certificate")
	}
	return err
}

func (a Access) loginHint(host string) string {
	if a.ours(host) {
		return fmt.Sprintf("check username and password under cluster.docker-registry, and whether %s may push there", a.Username)
	}
	return fmt.Sprintf("log in: docker login %s; or set username and password under cluster.docker-registry", host)
}
