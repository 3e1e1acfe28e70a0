package sandbox

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
)

// Etcd returns the URL of an API-only sandbox's etcd, and an HTTP client with the credentials of the sandbox's API server. Tests use this client to
// restore data.
func (s *Sandbox) Etcd() (address string, client *http.Client, err error) {
	if s.state.API == nil {
		return "", nil, errors.New("a sandbox with hosts has its etcd there")
	}
	pair, err := tls.LoadX509KeyPair(s.pki("apiserver-etcd-client.crt"), s.pki("apiserver-etcd-client.key"))
	if err != nil {
		return "", nil, fmt.Errorf("read the certificate for etcd: %w", err)
	}
	ca, err := os.ReadFile(s.pki("etcd-ca.crt"))
	if err != nil {
		return "", nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return "", nil, fmt.Errorf("%s holds no certificate", s.pki("etcd-ca.crt"))
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, Certificates: []tls.Certificate{pair}}
	return endpoint(s.state.API.Ports.Etcd), &http.Client{Transport: &http.Transport{TLSClientConfig: config}}, nil
}
