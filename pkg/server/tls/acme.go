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
	// acmeTime limits a request to the CA.
	acmeTime = 30 * time.Second
	// acmeEvery is the time between two checks of the certificates. After a failure, the next check is after acmeAgain. That delay doubles each time,
	// because CAs limit the number of failures.
	acmeEvery = time.Hour
	acmeAgain = time.Minute
	// acmeLook is the interval at which a replica checks whether another replica has received a certificate.
	acmeLook = 2 * time.Second
)

// ACMEOptions configures the CA, and the names in certificates.
type ACMEOptions struct {
	// Directory is the address of the CA. "" means Let's Encrypt.
	Directory string
	// Email is the address to which the CA may send messages.
	Email string
	// Roots verifies the certificate of the CA's server. Nil means the roots of the system.
	Roots *x509.CertPool
	// Names lists the names for certificates. Each name gets a separate certificate.
	Names []string
	Log   *slog.Logger
}

// ACME provides certificates of a public CA. It stores them in a Secret that all replicas share. The Secret also contains the data for the CA's
// challenges, so that each replica can respond to the challenges.
type ACME struct {
	o       ACMEOptions
	manager *autocert.Manager
	cache   *secretCache
	opened  chan struct{} // closed when the authority can connect to the server

	mu     sync.Mutex
	have   map[string]bool
	looked map[string]time.Time
}

// errNoCertificate is the error for a name without a certificate of the CA. The server must not use another certificate instead, because clients
// would begin to trust that certificate.
var errNoCertificate = errors.New("the authority has not signed a certificate for this name yet")

// NewACME returns an ACME. It sends no requests.
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

// Beside returns a source that uses the public CA's certificates for their names. For addresses and names inside the cluster, it uses the
// certificates of another source. The listener calls Beside once, before it accepts connections.
func (a *ACME) Beside(other Source) Source {
	close(a.opened)
	return &beside{a, other}
}

type beside struct {
	*ACME
	other Source
}

// GetCertificate implements Source. It never sends a request to the CA, so clients can't cause such requests.
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

// Protocols returns the protocol of the CA's challenges, which the listener must accept in addition to HTTP.
func (a *ACME) Protocols() []string { return []string{acme.ALPNProto} }

// Answers returns a handler for the port without TLS. It responds to the CA's challenges, and passes other requests to h.
func (a *ACME) Answers(h http.Handler) http.Handler {
	answers := a.manager.HTTPHandler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, _, err := net.SplitHostPort(r.Host); err == nil && slices.Contains(a.o.Names, strings.ToLower(name)) {
			r.Host = name // only the name is checked
		}
		answers.ServeHTTP(w, r)
	})
}

// greeting returns a ClientHello that replaces the ClientHello of a client. All replicas then choose the same kind of certificate for all clients.
func greeting(name string) *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{ServerName: name, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}, SupportedCurves: []tls.CurveID{tls.CurveP256}}
}

// known reports whether a certificate for a name exists. Another replica may have received this certificate.
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

// Tend requests certificates until the context ends. It runs in only one replica. Each replica renews its certificates a month before they expire,
// unless another replica has already renewed them.
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

// Roots parses PEM certificates of CAs. It returns nil if the text is empty.
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
