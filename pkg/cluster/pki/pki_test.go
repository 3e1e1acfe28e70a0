package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/runnable"
)

func made(t *testing.T, key crypto.Signer, now time.Time) *Authority {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "kubernetes"}, DNSNames: []string{"kubernetes"}, NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(9, 0, 0),
		KeyUsage: x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	cert, err := sign(template, key.Public(), &Authority{template, key})
	require.NoError(t, err)
	return &Authority{cert, key}
}

func TestASuccessorIsTrustedByThoseWhoTrustTheOldAuthority(t *testing.T) {
	now := time.Now()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	for name, key := range map[string]crypto.Signer{"RSA": rsaKey, "ECDSA": ecKey} {
		t.Run(name, func(t *testing.T) {
			old := made(t, key, now)
			next, err := old.Successor(now)
			require.NoError(t, err)
			assert.IsType(t, key, next.Key)
			assert.Equal(t, old.Cert.RawSubject, next.Cert.RawSubject)
			assert.False(t, same(old.Cert, next.Cert))
			assert.InDelta(t, 10*365*24, next.Cert.NotAfter.Sub(now).Hours(), 100)
			cross, err := old.Cross(next, now)
			require.NoError(t, err)
			assert.True(t, same(cross, next.Cert))
			assert.True(t, Signed(old.Cert, cross))

			leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			require.NoError(t, err)
			leaf, err := sign(&x509.Certificate{
				Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: now.AddDate(0, -1, 0), NotAfter: now.AddDate(0, 11, 0),
				DNSNames: []string{"kubernetes"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
				ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
			}, leafKey.Public(), old)
			require.NoError(t, err)
			again, err := next.Certify(leaf, now)
			require.NoError(t, err)
			assert.True(t, same(leaf, again), "the key stays")
			assert.Equal(t, leaf.IPAddresses, again.IPAddresses)
			assert.False(t, again.IsCA)
			assert.True(t, Signed(next.Cert, again))
			assert.False(t, Signed(old.Cert, again))

			check := func(root *x509.Certificate, between ...*x509.Certificate) error {
				o := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), DNSName: "kubernetes"}
				o.Roots.AddCert(root)
				for _, c := range between {
					o.Intermediates.AddCert(c)
				}
				_, err := again.Verify(o)
				return err
			}
			require.NoError(t, check(next.Cert))
			require.NoError(t, check(next.Cert, cross), "who trusts the new one isn't led astray")
			require.NoError(t, check(old.Cert, cross), "who trusts the old one follows the chain")
			require.Error(t, check(old.Cert))
			assert.Equal(t, old.Cert.SubjectKeyId, cross.AuthorityKeyId)
			openssl(t, Encode(old.Cert), Encode(cross), Encode(again))
		})
	}
}

// openssl verifies a certificate with OpenSSL, which builds chains differently from Go.
func openssl(t *testing.T, root, between, leaf []byte) {
	t.Helper()
	program := runnable.Need(t, "openssl")
	dir := t.TempDir()
	for name, data := range map[string][]byte{"root": root, "between": between, "leaf": leaf} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	out, err := exec.CommandContext(t.Context(), program, "verify", "-CAfile", filepath.Join(dir, "root"), "-untrusted", filepath.Join(dir, "between"), filepath.Join(dir, "leaf")).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestAuthoritiesAreReadAndWritten(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	a := made(t, key, time.Now())
	pem, err := a.EncodeKey()
	require.NoError(t, err)
	got, err := Load(Encode(a.Cert), pem)
	require.NoError(t, err)
	assert.True(t, a.Cert.Equal(got.Cert))

	other, err := a.Successor(time.Now())
	require.NoError(t, err)
	_, err = Load(Encode(other.Cert, a.Cert), pem)
	require.ErrorContains(t, err, "the key is not that of the certificate of CN=kubernetes")
	own, err := CertificateOf(Encode(other.Cert, a.Cert), pem)
	require.NoError(t, err)
	assert.True(t, a.Cert.Equal(own), "the second one is the key's")
	_, err = CertificateOf(Encode(other.Cert), pem)
	require.ErrorContains(t, err, "the key is not that of the certificate of CN=kubernetes")
	for name, bad := range map[string][2]string{
		"no certificate": {"hello", string(pem)}, "no key": {string(Encode(a.Cert)), "hello"},
		"a certificate for a key": {string(Encode(a.Cert)), string(Encode(a.Cert))},
	} {
		_, err := Load([]byte(bad[0]), []byte(bad[1]))
		require.Error(t, err, name)
		_, err = CertificateOf([]byte(bad[0]), []byte(bad[1]))
		require.Error(t, err, name)
	}
}

func same(a, b *x509.Certificate) bool {
	return bytes.Equal(a.RawSubject, b.RawSubject) && bytes.Equal(a.RawSubjectPublicKeyInfo, b.RawSubjectPublicKeyInfo)
}
