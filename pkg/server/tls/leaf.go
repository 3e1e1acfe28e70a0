package tls

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/httpserver"
)

const (
	// leafLife is the lifetime of a server's certificate. renewBefore is how long before its expiry the certificate is replaced.
	leafLife    = 30 * 24 * time.Hour
	renewBefore = 10 * 24 * time.Hour
	// lookEvery is the time between two checks whether the files have changed.
	lookEvery = 10 * time.Second
)

// Source provides the certificate for each connection.
type Source interface {
	GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
}

// PlatformCertificates provides certificates that the platform's CA signs, and replaces them before they expire. It stores the keys only in memory, so each server has
// different keys.
type PlatformCertificates struct {
	authority *Authority
	hosts     []string
	now       func() time.Time

	mu   sync.Mutex
	leaf *tls.Certificate
}

// NewPlatformCertificates returns an Own with its first certificate. hosts lists the names and addresses in the certificate.
func NewPlatformCertificates(a *Authority, hosts []string, now func() time.Time) (*PlatformCertificates, error) {
	o := &PlatformCertificates{authority: a, hosts: hosts, now: now}
	_, err := o.GetCertificate(nil)
	return o, err
}

// GetCertificate implements Source. It returns the same certificate for all names.
func (o *PlatformCertificates) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.now(); o.leaf == nil || now.After(o.leaf.Leaf.NotAfter.Add(-renewBefore)) {
		leaf, err := o.authority.sign(o.hosts, now)
		if err != nil {
			return nil, fmt.Errorf("make the server's certificate: %w", err)
		}
		o.leaf = leaf
	}
	return o.leaf, nil
}

// sign creates a certificate for hosts. The chain includes the CA's certificate, so that users can compare the CA's fingerprint.
func (a *Authority) sign(hosts []string, now time.Time) (*tls.Certificate, error) {
	if len(hosts) == 0 {
		return nil, errNoHosts
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	number, err := serial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: "pai-server"}, NotBefore: now.Add(-backdate), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.Certificate.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// Files provides a certificate from the files tls.crt and tls.key in a folder. Another program may replace the files at any time.
type Files struct {
	folder string
	now    func() time.Time
	failed func(error) // gets errors of newer files; the earlier certificate stays in use

	mu     sync.Mutex
	have   *tls.Certificate
	looked time.Time
	stamp  time.Time
}

// NewFiles returns a Files that has read the files once.
func NewFiles(folder string, now func() time.Time, failed func(error)) (*Files, error) {
	f := &Files{folder: folder, now: now, failed: failed}
	stamp, err := f.changed()
	if err != nil {
		return nil, err
	}
	if f.have, err = f.read(); err != nil {
		return nil, err
	}
	f.stamp, f.looked = stamp, now()
	return f, nil
}

// GetCertificate implements Source. It reads the files again if they have changed.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Sub(f.looked) >= lookEvery {
		f.looked = now
		if err := f.look(); err != nil {
			f.failed(err)
		}
	}
	return f.have, nil
}

func (f *Files) look() error {
	stamp, err := f.changed()
	if err != nil || stamp.Equal(f.stamp) {
		return err
	}
	have, err := f.read()
	if err != nil {
		return err // the pair may be being replaced
	}
	f.have, f.stamp = have, stamp
	return nil
}

// changed returns the time of the latest change to the files.
func (f *Files) changed() (last time.Time, err error) {
	for _, name := range []string{"tls.crt", "tls.key"} {
		info, err := os.Stat(filepath.Join(f.folder, name))
		if err != nil {
			return last, fmt.Errorf("read the server's certificate: %w", err)
		}
		if info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last, nil
}

func (f *Files) read() (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(filepath.Join(f.folder, "tls.crt"), filepath.Join(f.folder, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("read the server's certificate in %s: %w", f.folder, err)
	}
	return &c, nil
}

// Config returns the TLS configuration of a listener. It accepts TLS 1.2 and later, HTTP/2 and 1.1, and the protocols that the source needs. The
// certificates come from the source.
func Config(s Source) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: s.GetCertificate}
	if more, ok := s.(interface{ Protocols() []string }); ok {
		c.NextProtos = append(c.NextProtos, more.Protocols()...)
	}
	return c
}

// Listen returns a listener for TLS connections with the limits b.
func Listen(ctx context.Context, address string, s Source, b httpserver.Options) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(httpserver.Limit(l, b), Config(s)), nil
}
