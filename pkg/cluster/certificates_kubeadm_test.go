package cluster

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/bundletest"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/test/tier"
)

// realMaster holds certificates that the kubeadm of a bundle has created. kubeadm always uses the machine's root. Each command therefore gets a
// separate /etc whose folder kubernetes is the folder of the test.
type realMaster struct {
	t             *testing.T
	root, kubeadm string
}

func newRealMaster(t *testing.T) *realMaster {
	t.Helper()
	tier.More(t, "kubeadm")
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give kubeadm an /etc/kubernetes of its own")
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("needs a mount namespace: %v %s", err, out)
	}
	_, kubeadm := bundletest.Need(t, bundle.KindBinary, "kubeadm")
	m := &realMaster{t: t, root: t.TempDir(), kubeadm: kubeadm}
	m.write("/etc/paictl/kubeadm.yaml", `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 10.9.0.1}
nodeRegistration:
  name: m1
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
certificateValidityPeriod: 10m0s
`)
	m.write("/program", string(phases.RenewProgram()))
	c := " --config " + m.root + "/etc/paictl/kubeadm.yaml"
	m.must("kubeadm init phase certs all" + c + " && kubeadm init phase kubeconfig all" + c)
	return m
}

func (m *realMaster) write(path, text string) {
	m.t.Helper()
	require.NoError(m.t, os.MkdirAll(filepath.Dir(m.root+path), 0o755))
	require.NoError(m.t, os.WriteFile(m.root+path, []byte(text), 0o600))
}

func (m *realMaster) read(path string) []byte {
	m.t.Helper()
	b, err := os.ReadFile(m.root + path)
	require.NoError(m.t, err)
	return b
}

// must runs a command and returns its output. In the command's /etc, only the folder kubernetes is replaced.
func (m *realMaster) must(command string) string {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), "unshare", "--mount", "sh", "-euc", `
mkdir -p "$R/real" "$R/new" "$R/etc/kubernetes"
mount --make-rprivate /
mount --bind /etc "$R/real"
for f in /etc/*; do [ "$f" = /etc/kubernetes ] || ln -sfn "$R/real/${f##*/}" "$R/new/${f##*/}"; done
mkdir -p "$R/new/kubernetes"
mount --bind "$R/etc/kubernetes" "$R/new/kubernetes"
mount --rbind "$R/new" /etc
`+command)
	cmd.Env = []string{"PATH=" + filepath.Dir(m.kubeadm) + ":" + m.root + "/bin:" + os.Getenv("PATH"), "R=" + m.root, "PAICTL_ROOT=" + m.root}
	out, err := cmd.CombinedOutput()
	require.NoError(m.t, err, "%s", out)
	return string(out)
}

func (m *realMaster) renew() string {
	m.t.Helper()
	return m.must("sh " + m.root + "/program 2>/dev/null")
}

// pair returns the certificate in crt. It fails the test if key isn't the key of the certificate.
func (m *realMaster) pair(crt, key []byte) *x509.Certificate {
	m.t.Helper()
	p, err := tls.X509KeyPair(crt, key)
	require.NoError(m.t, err)
	return p.Leaf
}

func (m *realMaster) pki(name string) *x509.Certificate {
	m.t.Helper()
	return m.pair(m.read("/etc/kubernetes/pki/"+name+".crt"), m.read("/etc/kubernetes/pki/"+name+".key"))
}

// expire returns a certificate for the same key. The certificate expired an hour ago.
func (m *realMaster) expire(key []byte, subject pkix.Name) []byte {
	m.t.Helper()
	k := "/etc/kubernetes/pki/ca"
	ca, err := tls.X509KeyPair(m.read(k+".crt"), m.read(k+".key"))
	require.NoError(m.t, err)
	block, _ := pem.Decode(key)
	own, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	require.NoError(m.t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: subject, DNSNames: []string{"m1"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca.Leaf, &own.PublicKey, ca.PrivateKey)
	require.NoError(m.t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestTheRealKubeadmRenewsWhatExpires(t *testing.T) {
	m := newRealMaster(t)
	require.NoError(t, os.Remove(m.root+"/etc/kubernetes/super-admin.conf"))
	assert.Empty(t, m.renew(), "new certificates, however short their life, and one that is missing")

	// Simulate that an hour has passed, which is more than half of the ten minutes.
	const server = "/etc/kubernetes/pki/etcd/server.crt"
	then := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(m.root+server, then, then))
	old := m.pki("etcd/server")
	assert.Equal(t, "renewed etcd-server: it had 0 days left\n", m.renew())
	assert.NotEqual(t, old.SerialNumber, m.pki("etcd/server").SerialNumber)
	assert.Equal(t, old.DNSNames, m.pki("etcd/server").DNSNames)
	assert.Empty(t, m.renew())

	apiserver := m.expire(m.read("/etc/kubernetes/pki/apiserver.key"), pkix.Name{CommonName: "kube-apiserver"})
	m.write("/etc/kubernetes/pki/apiserver.crt", string(apiserver))
	assert.Equal(t, "renewed apiserver: it had 0 days left\n", m.renew())
	assert.Greater(t, m.pki("apiserver").NotAfter, time.Now(), "expired certificates are renewed")
	assert.Equal(t, []string{"m1"}, m.pki("apiserver").DNSNames)
}

func TestTheRealKubeadmMakesTheKubeletANewCertificate(t *testing.T) {
	m := newRealMaster(t)
	m.write("/bin/systemctl", "#!/bin/sh\necho \"systemctl $*\"\n")
	require.NoError(t, os.Chmod(m.root+"/bin/systemctl", 0o700))
	key := m.read("/etc/kubernetes/pki/apiserver.key") // any key will do
	m.write(kubeletCertificate, string(m.expire(key, pkix.Name{CommonName: "system:node:m1", Organization: []string{"system:nodes"}}))+string(key))
	m.write("/etc/kubernetes/kubelet.conf", "users:\n- user:\n    client-certificate: "+kubeletCertificate+"\n")
	path := strings.Replace(m.renew(), "systemctl try-restart --no-block kubelet.service\n", "", 1)
	assert.Equal(t, "renewed the kubelet's certificate, which had expired\n", path)
	b := m.read(kubeletCertificate)
	c := m.pair(b, b)
	assert.Equal(t, "system:node:m1", c.Subject.CommonName)
	assert.Equal(t, []string{"system:nodes"}, c.Subject.Organization)
	assert.Greater(t, time.Until(c.NotAfter), 300*24*time.Hour)
	assert.Empty(t, m.renew())
}
