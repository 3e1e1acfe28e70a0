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

// Access defines how to connect to registries. Connections use TLS with a certificate that this machine trusts. Plain HTTP is allowed only for
// registries on this machine.
type Access struct {
	// Host is the registry for Username and Password. Other registries use Keychain.
	Host     string
	Username string
	Password secret.String
	// Insecure disables the verification of certificates for registries on this machine.
	Insecure bool
	// Keychain holds the logins for other registries. If Keychain is nil, the logins of docker or podman are used.
	Keychain authn.Keychain
	// Transport sends the requests. If Transport is nil, http.DefaultTransport is used.
	Transport *http.Transport
}

// errPlain is the error of a request that would use plain HTTP to another machine.
var errPlain = errors.New("plain HTTP is only used for registries on this machine")

// guard rejects plain HTTP to other machines. The registry client itself would allow plain HTTP to private addresses, and redirects to plain HTTP for
// a token.
type guard struct{ http.RoundTripper }

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

// Loopback reports whether the registry in a reference is on this machine.
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

// keychain returns the logins. Username and Password apply to Host. Other registries use Keychain, or the logins of docker or podman.
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

func (l login) Resolve(r authn.Resource) (authn.Authenticator, error) {
	if l.access.ours(r.RegistryStr()) {
		return &authn.Basic{Username: l.access.Username, Password: l.access.Password.Reveal()}, nil
	}
	return l.rest.Resolve(r)
}

// ours reports whether Username and Password apply to a registry.
func (a Access) ours(registry string) bool {
	if a.Host == "" || a.Username == "" {
		return false
	}
	own, err := name.NewRegistry(a.Host)
	return err == nil && own.RegistryStr() == registry
}

// explain adds a remedy to an error of a registry. The error contains no password, because errors don't contain headers, and the client sends the
// password in a header.
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
