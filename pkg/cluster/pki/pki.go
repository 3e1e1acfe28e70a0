// Package pki makes a CA that replaces another CA.
// In: certificates and keys in PEM, as kubeadm writes them. Out: certificates and keys of the same kinds in PEM. The package doesn't read or write
// files.
package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const (
	certificateBlock = "CERTIFICATE"
	leastRSA         = 2048
	// before is how long before its creation a certificate becomes valid, because clocks of machines may be behind.
	before = time.Hour
	// leaf is the longest lifetime of a signed certificate. kubeadm uses the same lifetime.
	leaf = 366 * 24 * time.Hour
)

// Authority is a CA: a certificate and its key.
type Authority struct {
	Cert *x509.Certificate
	Key  crypto.Signer
}

// Load parses the certificate and the key of a CA. It uses the first certificate in cert. Its errors don't contain the key.
func Load(cert, key []byte) (*Authority, error) {
	certs, err := Parse(cert)
	if err != nil {
		return nil, err
	}
	signer, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	if !certs[0].IsCA {
		return nil, fmt.Errorf("%s is not a certificate authority", certs[0].Subject)
	}
	if !isOf(certs[0], signer) {
		return nil, fmt.Errorf("the key is not that of the certificate of %s", certs[0].Subject)
	}
	return &Authority{certs[0], signer}, nil
}

// CertificateOf returns the first certificate in certs that belongs to a key. Its errors don't contain the key.
func CertificateOf(certs, key []byte) (*x509.Certificate, error) {
	all, err := Parse(certs)
	if err != nil {
		return nil, err
	}
	signer, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if isOf(c, signer) {
			return c, nil
		}
	}
	return nil, fmt.Errorf("the key is not that of the certificate of %s", all[0].Subject)
}

func parseKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the key is not PEM")
	}
	var parsed any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		parsed, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	signer, ok := parsed.(crypto.Signer)
	if err != nil || !ok {
		return nil, errors.New("the key can't be read")
	}
	return signer, nil
}

func isOf(c *x509.Certificate, key crypto.Signer) bool {
	public, ok := key.Public().(interface{ Equal(x crypto.PublicKey) bool })
	return ok && public.Equal(c.PublicKey)
}

// Parse parses the certificates in a PEM text. It returns an error if the text contains no certificate.
func Parse(data []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		block, data = pem.Decode(data)
		if block == nil {
			break
		}
		if block.Type != certificateBlock {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read a certificate: %w", err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("there is no certificate in PEM")
	}
	return out, nil
}

// Encode returns certificates in PEM.
func Encode(certs ...*x509.Certificate) []byte {
	var b bytes.Buffer
	for _, c := range certs {
		_ = pem.Encode(&b, &pem.Block{Type: certificateBlock, Bytes: c.Raw}) // writing to a buffer doesn't fail
	}
	return b.Bytes()
}

// EncodeKey returns a CA's key in a format that kubeadm can read.
func (a *Authority) EncodeKey() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.Key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Successor returns a new CA with the same name, kind of key and lifetime. Its lifetime begins now.
func (a *Authority) Successor(now time.Time) (*Authority, error) {
	key, err := sameKind(a.Cert.PublicKey)
	if err != nil {
		return nil, err
	}
	t := template(a.Cert, now, a.Cert.NotAfter.Sub(a.Cert.NotBefore))
	cert, err := sign(t, key.Public(), &Authority{t, key})
	if err != nil {
		return nil, err
	}
	return &Authority{cert, key}, nil
}

func sameKind(public any) (crypto.Signer, error) {
	switch k := public.(type) {
	case *rsa.PublicKey:
		return rsa.GenerateKey(rand.Reader, max(leastRSA, k.N.BitLen()))
	case *ecdsa.PublicKey:
		curve := k.Curve
		if curve == nil {
			curve = elliptic.P256()
		}
		return ecdsa.GenerateKey(curve, rand.Reader)
	case ed25519.PublicKey:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("keys of kind %T are not known", public)
}

// Cross returns a certificate for the key of successor, signed by this CA. With this certificate, a program that trusts only this CA also accepts
// certificates that successor has signed.
func (a *Authority) Cross(successor *Authority, now time.Time) (*x509.Certificate, error) {
	t := template(successor.Cert, now, a.Cert.NotAfter.Sub(now))
	// Both CAs have the same name. Without different key IDs, OpenSSL would consider the certificate self-signed.
	t.SubjectKeyId, t.AuthorityKeyId = successor.Cert.SubjectKeyId, a.Cert.SubjectKeyId
	return sign(t, successor.Cert.PublicKey, a)
}

// Certify returns a certificate that replaces a certificate of another CA. It has the same key, names and uses as c, and is signed by this CA. Its
// lifetime is the lifetime of c, but at most leaf. It expires no later than this CA.
func (a *Authority) Certify(c *x509.Certificate, now time.Time) (*x509.Certificate, error) {
	return sign(template(c, now, min(c.NotAfter.Sub(c.NotBefore), leaf, a.Cert.NotAfter.Sub(now))), c.PublicKey, a)
}

// Signed reports whether the key of the first certificate has signed the second certificate.
func Signed(by, c *x509.Certificate) bool {
	return bytes.Equal(c.RawIssuer, by.RawSubject) && c.CheckSignatureFrom(by) == nil
}

func template(c *x509.Certificate, now time.Time, life time.Duration) *x509.Certificate {
	return &x509.Certificate{
		RawSubject: c.RawSubject, Subject: c.Subject, NotBefore: now.Add(-before).UTC(), NotAfter: now.Add(life).UTC(),
		KeyUsage: c.KeyUsage, ExtKeyUsage: c.ExtKeyUsage, UnknownExtKeyUsage: c.UnknownExtKeyUsage,
		BasicConstraintsValid: true, IsCA: c.IsCA, MaxPathLen: c.MaxPathLen, MaxPathLenZero: c.MaxPathLenZero,
		DNSNames: c.DNSNames, IPAddresses: c.IPAddresses, EmailAddresses: c.EmailAddresses, URIs: c.URIs,
	}
}

func sign(t *x509.Certificate, public crypto.PublicKey, by *Authority) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	t.SerialNumber = serial.Add(serial, big.NewInt(1))
	der, err := x509.CreateCertificate(rand.Reader, t, by.Cert, public, by.Key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", t.Subject, err)
	}
	return x509.ParseCertificate(der)
}
