package cluster

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

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
)

func (l *lab) renewCertificates(limit ...string) *outcome {
	l.t.Helper()
	o, events := l.writing(), &sink{}
	o.Sink, o.Limit = events, limit
	return &outcome{err: RenewCertificates(l.t.Context(), l.spec(), o, 90), events: events.events}
}

func TestCertificatesAreRenewedOnOneMasterAfterTheOther(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 1)
	require.ErrorContains(t, l.renewCertificates().err, "it is no master of the cluster yet")
	l.made()
	for _, name := range []string{"m1", "m2"} {
		l.host(name).write(phases.RenewScript, "[ \"$1\" = 90 ] || exit 9\necho 'renewed apiserver: it had 30 days left'\necho restarted kube-apiserver\necho ran >\"$PAICTL_ROOT/renewed\"\n")
	}
	o := l.renewCertificates()
	require.NoError(t, o.err, "%s", l.story(o))
	var changes []engine.Change
	for _, e := range o.events {
		if e.Kind == engine.EventChanged {
			changes = append(changes, *e.Change)
		}
	}
	assert.Equal(t, "m1 certs renew certificate apiserver it had 30 days left\nm1 certs restart static pod kube-apiserver\n"+
		"m2 certs renew certificate apiserver it had 30 days left\nm2 certs restart static pod kube-apiserver\n", lines(changes))
	assert.Less(t, o.at(engine.EventPhaseDone, "m1", phaseCerts), o.at(engine.EventPhaseStarted, "m2", phaseCerts))

	l.host("m1").write(phases.RenewScript, "echo 'the API server does not come up' >&2\nexit 1\n")
	l.host("m2").remove("/renewed")
	o = l.renewCertificates()
	require.ErrorContains(t, o.err, "renew the certificates of m1")
	require.ErrorContains(t, o.err, "the API server does not come up")
	assert.False(t, l.has("m2", "/renewed"), "the later ones are left as they are")

	require.NoError(t, l.renewCertificates("m2", "w1").err)
	assert.True(t, l.has("m2", "/renewed"))
	require.ErrorContains(t, l.renewCertificates("w1").err, "none of these machines runs the control plane")
}

func TestTheCertificateOfAKubeletsServerIsListedWithItsSigner(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 2)
	now := time.Now()
	l.host("w1").write("/var/lib/kubelet/pki/kubelet.crt", signedBy(t, "w1@1764250732", "w1-ca@1764250732", now.Add(300*24*time.Hour)))
	l.host("w2").write("/var/lib/kubelet/pki/kubelet.crt", signedBy(t, "w2@1764250732", "w2-ca@1764250732", now.Add(300*24*time.Hour)))
	l.host("w2").write("/var/lib/kubelet/pki/kubelet-server-current.pem", signedBy(t, "system:node:w2", "kubernetes", now.Add(200*24*time.Hour)))
	st, err := GetStatus(t.Context(), l.spec(), l.options())
	require.NoError(t, err)
	require.Len(t, st.Certificates, 2)
	w2, w1 := st.Certificates[0], st.Certificates[1]
	assert.Equal(t, []any{"w2", "kubelet-server", "kubernetes", false, 199}, []any{w2.Host, w2.Name, w2.Issuer, w2.SelfSigned, w2.Days}, "not the one that it signed before")
	assert.Equal(t, []any{"w1", "kubelet-server", "w1-ca@1764250732", true, 299}, []any{w1.Host, w1.Name, w1.Issuer, w1.SelfSigned, w1.Days})
}

func signedBy(t *testing.T, name, issuer string, end time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, c, &x509.Certificate{Subject: pkix.Name{CommonName: issuer}}, &key.PublicKey, key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
