package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
)

// Untrusted describes a server whose certificate isn't signed by one of the system's CAs.
type Untrusted struct {
	// Authority is the CA that signed the server's certificate. The certificate is otherwise valid: it is for the server's name, and hasn't
	// expired.
	Authority *x509.Certificate
}

// Fingerprint returns the SHA-256 fingerprint of the CA in the usual form for comparison: pairs of hex digits, separated by colons.
func (u *Untrusted) Fingerprint() string { return Fingerprint(u.Authority.Raw) }

// PEM returns the CA's certificate in the PEM format.
func (u *Untrusted) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: u.Authority.Raw})
}

// Fingerprint returns the SHA-256 fingerprint of a certificate: pairs of uppercase hex digits, separated by colons.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	var pairs []string
	for _, b := range sum {
		pairs = append(pairs, strings.ToUpper(hex.EncodeToString([]byte{b})))
	}
	return strings.Join(pairs, ":")
}

// ParseFingerprint parses a fingerprint with or without colons, in upper or lower case. It returns the fingerprint in the form of Fingerprint.
func ParseFingerprint(text string) (string, error) {
	clean := strings.ToLower(strings.NewReplacer(":", "", " ", "").Replace(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), "sha256:")))
	raw, err := hex.DecodeString(clean)
	if err != nil || len(raw) != sha256.Size {
		return "", hint.Errorf("copy the fingerprint that \"paictl service start -n rest-server\" printed", "%q is not a fingerprint: a fingerprint has 64 hex digits", text)
	}
	var pairs []string
	for _, b := range raw {
		pairs = append(pairs, strings.ToUpper(hex.EncodeToString([]byte{b})))
	}
	return strings.Join(pairs, ":"), nil
}

// UntrustedCertificate reads the certificate of a server without sending a request. It returns nil if the system trusts the certificate.
func UntrustedCertificate(ctx context.Context, at *url.URL) (*Untrusted, error) {
	address := at.Host
	if at.Port() == "" {
		address = net.JoinHostPort(at.Hostname(), "443")
	}
	untrusted := (*Untrusted)(nil)
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: at.Hostname(),
		InsecureSkipVerify: true, //nolint:gosec // it is verified below; nothing is sent over the connection
		VerifyConnection: func(c tls.ConnectionState) (err error) {
			untrusted, err = look(c.PeerCertificates, at.Hostname())
			return err
		},
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, unreachable(at.Host, err)
	}
	return untrusted, conn.Close()
}

// look finds the CA among the certificates that a server sent. It returns nil if the system trusts the server's certificate.
func look(chain []*x509.Certificate, host string) (*Untrusted, error) {
	if len(chain) == 0 {
		return nil, errors.New("it shows no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	verify := func(roots *x509.CertPool) error {
		_, err := chain[0].Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: between})
		return err
	}
	err := verify(nil)
	if err == nil {
		return nil, nil
	}
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); !unknown {
		return nil, err
	}
	last := chain[len(chain)-1]
	if !last.IsCA || !bytes.Equal(last.RawSubject, last.RawIssuer) || last.CheckSignatureFrom(last) != nil {
		return nil, fmt.Errorf("it doesn't show its authority, which must be given with --ca FILE: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(last)
	if err := verify(roots); err != nil {
		return nil, err
	}
	return &Untrusted{Authority: last}, nil
}
