package checks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func signed(t *testing.T, issuer string, left time.Duration) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "me"}, NotAfter: now.Add(left)}
	der, err := x509.CreateCertificate(rand.Reader, c, &x509.Certificate{Subject: pkix.Name{CommonName: issuer}}, &key.PublicKey, key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestCertificatesAreReportedBeforeTheyExpire(t *testing.T) {
	const day = 24 * time.Hour
	for _, tc := range []struct {
		name, issuer string
		left         time.Duration
		says, remedy string // "" if it is valid for long enough
	}{
		{"apiserver", "kubernetes", 30 * day, "", ""},
		{"apiserver", "kubernetes", 30*day - time.Second, "warning: the certificate apiserver expires in 29 days", "paictl-certificates.service"},
		{"apiserver", "kubernetes", 7 * day, "warning: the certificate apiserver expires in 7 days", "kubeadm certs renew"},
		{"etcd/server", "etcd-ca", 7*day - time.Second, "error: the certificate etcd/server expires in 6 days", "kubeadm certs renew"},
		{"kubelet", "kubernetes", 47 * time.Hour, "error: the certificate kubelet expires in 1 day", "kubectl get csr shows"},
		{"kubelet", "kubernetes", 23*time.Hour + time.Minute, "error: the certificate kubelet expires in 23 hours", "paictl node remove"},
		{"kubelet-server", "kubernetes", 50 * time.Minute, "error: the certificate kubelet-server expires in 50 minutes", "pai-csr-approver"},
		{"kubelet-server", "w1-ca@1764250732", 0, "error: the certificate kubelet-server has expired", "paictl cluster up: the cluster then signs it"},
		{"", "kubernetes", -day, "error: a certificate has expired", "paictl cluster status"},
	} {
		c := ReadCertificate("m1", tc.name, signed(t, tc.issuer, tc.left), now)
		f := c.Check()
		if tc.says == "" {
			assert.Nil(t, f, tc.name)
			continue
		}
		require.NotNil(t, f, tc.says)
		assert.Equal(t, tc.says, f.Severity+": "+f.Message)
		assert.Contains(t, f.Remedy, tc.remedy)
		assert.Equal(t, []string{"m1", "me until " + now.Add(tc.left).Format(time.RFC3339)}, []string{f.Host, f.Evidence})
	}
	c := ReadCertificate("m1", "sa", []byte("no certificate"), now)
	assert.Equal(t, "the certificate sa can't be read: no PEM certificate", c.Check().Message)
}

func TestEachCertificateIsRenewedBySomething(t *testing.T) {
	for by, c := range map[string]Certificate{
		"paictl cluster up":   {Name: CertificateKubeletServer, SelfSigned: true},
		"kubelet":             {Name: CertificateKubelet},
		"certs rotate-ca":     {Name: "etcd/ca", CA: true},
		"timer on the master": {Name: "admin.conf"},
	} {
		assert.Equal(t, by, c.RenewedBy())
	}
}
