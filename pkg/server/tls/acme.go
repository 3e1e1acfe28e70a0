package tls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
	"k8s.io/client-go/kubernetes"
)

const (
	// acmeTime bounds a request to the CA.
	acmeTime = 30 * time.Second
	// acmeEvery is how often certificates are checked; after a failure they are checked again after acmeAgain, which doubles each time, because CAs
	// limit the number of failures.
	acmeEvery = time.Hour
	acmeAgain = time.Minute
	// acmeLook is how often a replica checks whether another one has received a certificate.
	acmeLook = 2 * time.Second
)

// ACMEOptions describe the CA, and the names of certificates.
type ACMEOptions struct {
	// Directory is the address of the CA; "" is Let's Encrypt.
	Directory string
	// Email is the address that the CA may write to.
	Email string
	// Roots verify the CA's own certificate; nil means the system's roots.
	Roots *x509.CertPool
	// Each of the names gets a certificate, and no other name does.
	Names []string
	Log   *slog.Logger
}

// ACME provides certificates of a public CA. It stores them in a Secret that all replicas share, so that each replica can also respond to the CA's
// challenges.
type ACME struct {
	o       ACMEOptions
	manager *autocert.Manager
	cache   *secretCache
	opened  chan struct{} // closed when the authority can connect to the server

	mu     sync.Mutex
	have   map[string]bool
	looked map[string]time.Time
}

// errNoCertificate is the error for a name that the CA hasn't signed for yet. The server must not use another certificate, because clients would
// begin to trust it.
var errNoCertificate = errors.New("the authority has not signed a certificate for this name yet")

// NewACME makes the source. It doesn't send requests until Tend runs.
func NewACME(client kubernetes.Interface, o ACMEOptions) *ACME {
	names := make([]string, len(o.Names))
	for i, name := range o.Names {
		names[i] = strings.ToLower(name)
	}
	o.Names = names
	a := &ACME{o: o, cache: &secretCache{client: client}, opened: make(chan struct{}), have: map[string]bool{}, looked: map[string]time.Time{}}
	a.manager = &autocert.Manager{
		Prompt: autocert.AcceptTOS, HostPolicy: autocert.HostWhitelist(names...), Cache: a.cache, Email: o.Email,
		Client: &acme.Client{DirectoryURL: o.Directory, UserAgent: "pai-server", HTTPClient: &http.Client{Timeout: acmeTime,
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12}}}},
	}
	return a
}

// Beside returns a source that uses the public CA's certificates for their names, and the certificates of another source for addresses and names
// inside the cluster. The listener calls it once, when it begins to listen.
func (a *ACME) Beside(other Source) Source {
	close(a.opened)
	return &beside{a, other}
}

type beside struct {
	*ACME
	other Source
}

// GetCertificate implements Source. A client's connection never makes it send a request to the CA.
func (a *beside) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if !slices.Contains(a.o.Names, name) {
		return a.other.GetCertificate(hello)
	}
	if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
		return a.manager.GetCertificate(hello)
	}
	if !a.known(name) {
		return nil, errNoCertificate
	}
	return a.manager.GetCertificate(greeting(name))
}

// Protocols returns the CA's protocol, which connections need in addition to HTTP.
func (a *ACME) Protocols() []string { return []string{acme.ALPNProto} }

// Answers returns a handler for the port without TLS, which a CA may use, too.
func (a *ACME) Answers(h http.Handler) http.Handler {
	answers := a.manager.HTTPHandler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, _, err := net.SplitHostPort(r.Host); err == nil && slices.Contains(a.o.Names, strings.ToLower(name)) {
			r.Host = name // only the name is checked
		}
		answers.ServeHTTP(w, r)
	})
}

// greeting returns a ClientHello that makes all replicas choose the same kind of certificate, for any client.
func greeting(name string) *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{ServerName: name, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}, SupportedCurves: []tls.CurveID{tls.CurveP256}}
}

// known reports whether a name has a certificate, including one that another replica received.
func (a *ACME) known(name string) bool {
	a.mu.Lock()
	look := !a.have[name] && time.Since(a.looked[name]) > acmeLook
	if look {
		a.looked[name] = time.Now()
	}
	have := a.have[name]
	a.mu.Unlock()
	if !look {
		return have
	}
	ctx, cancel := context.WithTimeout(context.Background(), acmeLook)
	defer cancel()
	if _, err := a.cache.Get(ctx, name); err != nil {
		return false
	}
	a.note(name)
	return true
}

func (a *ACME) note(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.have[name] = true
}

// Tend requests certificates until the context ends. Only one replica runs it. Each replica renews its certificates a month
// before they expire, unless another replica has done so.
func (a *ACME) Tend(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-a.opened: // before that, each challenge would fail, and the authority counts failures
	}
	pause, said := acmeAgain, map[string]time.Time{}
	for {
		wait := acmeEvery
		for _, name := range a.o.Names {
			c, err := a.manager.GetCertificate(greeting(name))
			if err != nil {
				a.o.Log.ErrorContext(ctx, "get a certificate", "name", name, "directory", a.o.Directory, "error", err.Error(), "again", pause.String())
				wait = pause
				continue
			}
			a.note(name)
			if end := c.Leaf.NotAfter; !said[name].Equal(end) {
				said[name] = end
				a.o.Log.InfoContext(ctx, "there is a certificate", "name", name, "until", end)
			}
		}
		if wait == pause {
			pause = min(2*pause, acmeEvery)
		} else {
			pause = acmeAgain
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// Roots parses CA certificates in PEM. It returns nil if the text is empty.
func Roots(text string) (*x509.CertPool, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		return nil, fmt.Errorf("there is no certificate in it")
	}
	return pool, nil
}
