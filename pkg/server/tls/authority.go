// Package tls provides the certificate of the server. The certificate comes from the platform's own CA, from a public CA by ACME, or from files that
// another program maintains. In: the Secret with the platform's CA, which is created once; names, and the address of a public CA; or a folder with a
// certificate. Out: the certificate for each connection of crypto/tls.
package tls

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

const (
	// Namespace is the namespace of the platform's CA. All servers share one CA, and paictl reads its certificate.
	Namespace = v1.Namespace
	// Secret is the name of the CA's Secret.
	Secret = "web-ca"

	// authorityLife is the lifetime of the CA's certificate. Users configure clients by hand to trust the certificate, so it must not change during
	// the lifetime of a cluster.
	authorityLife = 20 * 365 * 24 * time.Hour
	// backdate is the maximum delay of a client's clock.
	backdate = time.Hour
)

// Authority is the platform's CA, which signs the certificates of servers.
type Authority struct {
	Certificate *x509.Certificate
	key         crypto.Signer
}

// Ensure reads the CA, and creates the CA if it doesn't exist. If several servers call Ensure at the same time, one server creates the CA, and all
// servers use it.
func Ensure(ctx context.Context, client kubernetes.Interface, now time.Time) (*Authority, error) {
	store := client.CoreV1().Secrets(Namespace)
	held, err := store.Get(ctx, Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		var made *corev1.Secret
		if made, err = newSecret(now); err != nil {
			return nil, fmt.Errorf("make the web authority: %w", err)
		}
		held, err = store.Create(ctx, made, metav1.CreateOptions{FieldManager: "paictl"})
		if apierrors.IsAlreadyExists(err) {
			held, err = store.Get(ctx, Secret, metav1.GetOptions{})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the web authority: %w", err)
	}
	return readSecret(held)
}

// Read reads the certificate of the CA. It returns nil if no server has created the CA.
func Read(ctx context.Context, client kubernetes.Interface) (*x509.Certificate, error) {
	held, err := client.CoreV1().Secrets(Namespace).Get(ctx, Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the web authority: %w", err)
	}
	return readCertificate(held)
}

// newSecret returns a Secret with a new CA.
func newSecret(now time.Time) (*corev1.Secret, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := serial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "paictl web authority " + hex.EncodeToString(serial.Bytes()[:4])},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secretKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: Secret, Namespace: Namespace, Labels: map[string]string{v1.LabelPeople: v1.SecretKeys}},
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secretKey}),
		},
	}, nil
}

const remedySecret = "restore it from a backup; or delete it, so that a server makes another, which clients have to trust again"

func readCertificate(s *corev1.Secret) (*x509.Certificate, error) {
	block, _ := pem.Decode(s.Data[corev1.TLSCertKey])
	if block == nil {
		return nil, hint.Errorf(remedySecret, "Secret %s/%s: %s has no certificate", s.Namespace, s.Name, corev1.TLSCertKey)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, hint.Wrap(fmt.Errorf("the Secret %s/%s: %s: %w", s.Namespace, s.Name, corev1.TLSCertKey, err), remedySecret)
	}
	if !c.IsCA {
		return nil, hint.Errorf(remedySecret, "Secret %s/%s: its certificate isn't an authority's", s.Namespace, s.Name)
	}
	return c, nil
}

func readSecret(s *corev1.Secret) (*Authority, error) {
	c, err := readCertificate(s)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(s.Data[corev1.TLSPrivateKeyKey])
	if block == nil {
		return nil, hint.Errorf(remedySecret, "Secret %s/%s: %s has no key", s.Namespace, s.Name, corev1.TLSPrivateKeyKey)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		// The parser's error may contain parts of a private key, so it isn't returned.
		return nil, hint.Errorf(remedySecret, "Secret %s/%s: %s can't be read as a key", s.Namespace, s.Name, corev1.TLSPrivateKeyKey)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok || !samePublic(key.Public(), c.PublicKey) {
		return nil, hint.Errorf(remedySecret, "Secret %s/%s: its key isn't that of its certificate", s.Namespace, s.Name)
	}
	return &Authority{Certificate: c, key: key}, nil
}

func samePublic(a, b crypto.PublicKey) bool {
	is, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && is.Equal(b)
}

func serial() (*big.Int, error) {
	raw := make([]byte, 16)
	if _, err := rand.Read(raw); err != nil {
		return nil, err
	}
	raw[0] |= 0x40 // no leading zeros, and not negative
	raw[0] &= 0x7f
	return new(big.Int).SetBytes(raw), nil
}

// Fingerprint returns the SHA-256 of a certificate in the form that people compare: pairs of hexadecimal digits, separated by colons.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	pairs := make([]string, 0, len(sum))
	for _, b := range sum {
		pairs = append(pairs, strings.ToUpper(hex.EncodeToString([]byte{b})))
	}
	return strings.Join(pairs, ":")
}

// PEM returns a certificate in PEM.
func PEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

var errNoHosts = errors.New("a certificate needs a name or an address")
