package cluster

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/pki"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

const (
	kubeletPEM  = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	kcmManifest = "/etc/kubernetes/manifests/kube-controller-manager.yaml"
)

// caLab is a lab whose machines have certificates that can be verified, as kubeadm creates them.
type caLab struct {
	*lab
	old map[string]*pki.Authority
}

func newKeyPEM(t testing.TB) (crypto.Signer, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// issue returns a certificate that the CA by has signed. If by is nil, the certificate is self-signed.
func issue(t testing.TB, c *x509.Certificate, key crypto.Signer, by *pki.Authority) *x509.Certificate {
	t.Helper()
	c.SerialNumber, c.NotBefore, c.NotAfter, c.BasicConstraintsValid = big.NewInt(7), time.Now().Add(-time.Hour), time.Now().AddDate(1, 0, 0), true
	parent, signer := c, key
	if by != nil {
		parent, signer = by.Cert, by.Key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	require.NoError(t, err)
	out, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return out
}

func withAuthorities(t testing.TB, masters, workers int) *caLab {
	t.Helper()
	l := &caLab{newLab(t, masters, workers), map[string]*pki.Authority{}}
	l.made()
	files := map[string][]byte{}
	for name, cn := range map[string]string{kubernetesCA: "kubernetes", "etcd/ca": "etcd-ca", "front-proxy-ca": "front-proxy-ca"} {
		key, text := newKeyPEM(t)
		cert := issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: cn}, IsCA: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}, key, nil)
		l.old[name] = &pki.Authority{Cert: cert, Key: key}
		files[authorityCert(name)], files[authorityKey(name)] = pki.Encode(cert), text
	}
	for _, n := range l.spec().Nodes {
		l.certify(n, files)
	}
	require.NoError(t, os.WriteFile(l.cluster+"/published-client-ca-file}", files[authorityCert(kubernetesCA)], 0o600))
	require.NoError(t, os.WriteFile(l.cluster+"/published-requestheader-client-ca-file}", files[authorityCert("front-proxy-ca")], 0o600))
	l.rest()
	return l
}

func (l *caLab) certify(n *engine.Node, files map[string][]byte) {
	l.t.Helper()
	h := l.host(n.Hostname)
	leaf := func(by string, c *x509.Certificate, use x509.ExtKeyUsage) (cert, key []byte) {
		c.ExtKeyUsage, c.KeyUsage = []x509.ExtKeyUsage{use}, x509.KeyUsageDigitalSignature
		signer, text := newKeyPEM(l.t)
		return pki.Encode(issue(l.t, c, signer, l.old[by])), text
	}
	require.NoError(l.t, os.RemoveAll(h.root+"/var/lib/kubelet/pki")) // the fake kubelet's files aren't certificates
	ca := base64.StdEncoding.EncodeToString(files[authorityCert(kubernetesCA)])
	cert, key := leaf(kubernetesCA, &x509.Certificate{Subject: pkix.Name{CommonName: "system:node:" + n.Hostname, Organization: []string{"system:nodes"}}}, x509.ExtKeyUsageClientAuth)
	h.write("/var/lib/kubelet/pki/kubelet-client-1.pem", string(cert)+string(key))
	require.NoError(l.t, os.Symlink("kubelet-client-1.pem", h.root+kubeletPEM))
	h.write("/etc/kubernetes/kubelet.conf", h.read("/etc/kubernetes/kubelet.conf")+"    certificate-authority-data: "+ca+"\n    client-certificate: "+kubeletPEM+"\n")
	h.write(authorityCert(kubernetesCA), string(files[authorityCert(kubernetesCA)]))
	if !n.ControlPlane {
		return
	}
	for _, pattern := range []string{"/*.crt", "/etcd/*.crt"} { // the fake kubeadm's files aren't certificates
		there, err := filepath.Glob(h.root + pkiDir + pattern)
		require.NoError(l.t, err)
		for _, f := range there {
			require.NoError(l.t, os.Remove(f))
		}
	}
	for path, data := range files {
		h.write(path, string(data))
	}
	for path, of := range map[string]string{"apiserver": kubernetesCA, "apiserver-kubelet-client": kubernetesCA, "apiserver-etcd-client": "etcd/ca", "etcd/server": "etcd/ca", "front-proxy-client": "front-proxy-ca"} {
		use := x509.ExtKeyUsageClientAuth
		if strings.HasSuffix(path, "server") {
			use = x509.ExtKeyUsageServerAuth
		}
		cert, key := leaf(of, &x509.Certificate{Subject: pkix.Name{CommonName: path}, DNSNames: []string{"kubernetes"}, IPAddresses: []net.IP{net.ParseIP(n.HostIP)}}, use)
		h.write(pkiDir+"/"+path+".crt", string(cert))
		h.write(pkiDir+"/"+path+".key", string(key))
	}
	cert, key = leaf(kubernetesCA, &x509.Certificate{Subject: pkix.Name{CommonName: "kubernetes-admin", Organization: []string{"system:masters"}}}, x509.ExtKeyUsageClientAuth)
	h.write(phases.AdminKubeconfig, h.read(phases.AdminKubeconfig)+"    certificate-authority-data: "+ca+"\n    client-certificate-data: "+base64.StdEncoding.EncodeToString(cert)+
		"\n    client-key-data: "+base64.StdEncoding.EncodeToString(key)+"\n")
	h.write(kcmManifest, h.read(kcmManifest)+"    - --cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt\n")
	// The real script restarts the components that are due, and waits for each component.
	h.write(phases.RenewScript, `d=$PAICTL_ROOT/var/lib/paictl/certificates/due
for f in "$d"/*; do
	[ -f "$f" ] || continue
	rm "$f"
	echo "restarted ${f##*/}"
done
`)
}

func (l *caLab) rotate(how AuthorityOptions, edit ...func(*engine.Options)) *outcome {
	l.t.Helper()
	so, events := sshtest.Options(l.t, l.servers()...), &sink{}
	if c := l.crash.Load(); c != nil {
		so.NetDial = c.dial
	}
	client := ssh.NewClient(so)
	defer func() { _ = client.Close() }()
	o := l.options()
	o.Dialer, o.Sink = client, events
	for _, e := range edit {
		e(&o)
	}
	how.Wait = cmp.Or(how.Wait, time.Millisecond)
	cs, err := RotateAuthorities(l.t.Context(), l.spec(), o, how)
	return &outcome{changes: cs, err: err, events: events.events}
}

var confData = regexp.MustCompile(`(certificate-authority|client-certificate)-data: (\S+)`)

func (l *caLab) parse(host, path, field string) []*x509.Certificate {
	l.t.Helper()
	data := []byte(l.host(host).read(path))
	if field != "" {
		for _, m := range confData.FindAllStringSubmatch(string(data), -1) {
			if m[1] == field {
				data = engine.Decoded(m[2])
			}
		}
	}
	certs, err := pki.Parse(data)
	require.NoError(l.t, err, "%s %s", host, path)
	return certs
}

// settled checks that all machines trust only the same new CAs, and that these CAs have signed the certificates of the existing keys.
func (l *caLab) settled(hosts ...string) {
	l.t.Helper()
	isNew := func(name string, c *x509.Certificate) *x509.Certificate {
		ca := l.parse("m1", authorityCert(name), "")
		require.Len(l.t, ca, 1)
		assert.False(l.t, ca[0].Equal(l.old[name].Cert), "%s is the old one", name)
		assert.True(l.t, pki.Signed(ca[0], c), "%s isn't signed by the new %s", c.Subject, name)
		return ca[0]
	}
	for _, host := range hosts {
		assert.Equal(l.t, l.host("m1").read(authorityCert(kubernetesCA)), l.host(host).read(authorityCert(kubernetesCA)), host)
		current := l.host(host).root + "/var/lib/kubelet/pki/kubelet-client-1.pem"
		data, err := os.ReadFile(current)
		require.NoError(l.t, err)
		certs, err := pki.Parse(data)
		require.NoError(l.t, err)
		isNew(kubernetesCA, certs[0])
		l.pair(certs[0], data)
		assert.True(l.t, l.parse(host, "/etc/kubernetes/kubelet.conf", "certificate-authority")[0].Equal(isNew(kubernetesCA, certs[0])))
		assert.NoFileExists(l.t, l.host(host).root+"/var/lib/paictl/authority-kubelet")
		if !strings.HasPrefix(host, "m") {
			continue
		}
		for _, name := range authorityNames {
			assert.Equal(l.t, l.host("m1").read(authorityCert(name)), l.host(host).read(authorityCert(name)))
			_, err := pki.Load([]byte(l.host(host).read(authorityCert(name))), []byte(l.host(host).read(authorityKey(name))))
			require.NoError(l.t, err)
		}
		for path, of := range map[string]string{"apiserver": kubernetesCA, "apiserver-kubelet-client": kubernetesCA, "apiserver-etcd-client": "etcd/ca", "etcd/server": "etcd/ca", "front-proxy-client": "front-proxy-ca"} {
			certs := l.parse(host, pkiDir+"/"+path+".crt", "")
			isNew(of, certs[0])
			l.pair(certs[0], []byte(l.host(host).read(pkiDir+"/"+path+".key")))
		}
		admin := l.parse(host, phases.AdminKubeconfig, "client-certificate")
		isNew(kubernetesCA, admin[0])
		assert.Equal(l.t, []string{"system:masters"}, admin[0].Subject.Organization)
		assert.Len(l.t, l.parse(host, phases.AdminKubeconfig, "certificate-authority"), 1)
		server := l.parse(host, pkiDir+"/apiserver.crt", "")
		require.Len(l.t, server, 2, "its chain leads to the old authority")
		roots, between := x509.NewCertPool(), x509.NewCertPool()
		roots.AddCert(l.old[kubernetesCA].Cert)
		between.AddCert(server[1])
		_, err = server[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: "kubernetes"})
		require.NoError(l.t, err)
		assert.Contains(l.t, l.host(host).read(kcmManifest), "--cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt\n")
		assert.NoDirExists(l.t, l.host(host).root+rotationDir)
		assert.NoFileExists(l.t, l.host(host).root+signerFile)
		due, err := filepath.Glob(l.host(host).root + "/var/lib/paictl/certificates/due/*")
		require.NoError(l.t, err)
		assert.Empty(l.t, due)
	}
}

func (l *caLab) pair(c *x509.Certificate, data []byte) {
	l.t.Helper()
	for {
		var block *pem.Block
		block, data = pem.Decode(data)
		require.NotNil(l.t, block, "there is no key")
		if block.Type == "EC PRIVATE KEY" {
			key, err := x509.ParseECPrivateKey(block.Bytes)
			require.NoError(l.t, err)
			assert.True(l.t, key.PublicKey.Equal(c.PublicKey), "the key of %s", c.Subject)
			return
		}
	}
}

func TestAuthoritiesAreRotated(t *testing.T) {
	t.Parallel()
	l := withAuthorities(t, 2, 1)
	before := strings.Join(l.state(), "\n")
	dry := l.rotate(AuthorityOptions{}, func(o *engine.Options) { o.DryRun = true })
	require.NoError(t, dry.err)
	assert.Len(t, dry.changes, 9)
	assert.Equal(t, before, strings.Join(l.state(), "\n"), "a dry run changes nothing")

	o := l.rotate(AuthorityOptions{})
	require.NoError(t, o.err, "%s", l.story(o))
	l.settled("m1", "m2", "w1")
	for _, phase := range []string{phaseTrust, phaseSign, phaseForget} {
		assert.Less(t, o.at(engine.EventPhaseDone, "m1", phase), o.at(engine.EventPhaseStarted, "m2", phase))
		assert.Less(t, o.at(engine.EventPhaseDone, "m2", phase), o.at(engine.EventPhaseStarted, "w1", phase))
	}
	for _, x := range []string{"client-ca-file}", "requestheader-client-ca-file}"} {
		data, err := os.ReadFile(l.cluster + "/published-" + x)
		require.NoError(t, err)
		certs, err := pki.Parse(data)
		require.NoError(t, err)
		for _, c := range certs {
			assert.False(t, c.Equal(l.old[kubernetesCA].Cert) || c.Equal(l.old["front-proxy-ca"].Cert), "extensions are told of the old authority")
		}
	}
	key := l.host("m1").read(authorityKey(kubernetesCA))
	for _, h := range l.hosts {
		for _, call := range h.calls() {
			assert.NotContains(t, call, "PRIVATE KEY")
		}
	}
	assert.NotContains(t, l.story(o), key)

	first := l.parse("m1", authorityCert(kubernetesCA), "")[0]
	l.old[kubernetesCA] = &pki.Authority{Cert: first}
	require.NoError(t, l.rotate(AuthorityOptions{}).err)
	l.settled("m1", "m2", "w1")
}

func TestARotationOfAuthoritiesThatWasCutOffGoesOn(t *testing.T) {
	t.Parallel()
	cutOff(t, 2, 2, func(t *testing.T) story {
		l := withAuthorities(t, 2, 1)
		return story{lab: l.lab, run: func() *outcome { return l.rotate(AuthorityOptions{}) }, check: func(*crash, *outcome) { l.settled("m1", "m2", "w1") }}
	})
}

func TestARotationOfAuthoritiesWaitsForAllNodes(t *testing.T) {
	t.Parallel()
	l := withAuthorities(t, 1, 2)
	files := l.host("w2").read(authorityCert(kubernetesCA))
	address := l.host("w2").server
	address.Close()
	o := l.rotate(AuthorityOptions{})
	require.ErrorContains(t, o.err, "the old authority is still needed by w2: no answer")
	assert.Len(t, l.parse("m1", authorityCert(kubernetesCA), ""), 2, "it is still trusted")
	assert.Contains(t, l.host("m1").read(kcmManifest), "--cluster-signing-cert-file="+signerFile)
	require.ErrorContains(t, l.up(t.Context()).err, "a rotation of the cluster's authorities was interrupted")

	var partial *engine.PartialError
	require.ErrorAs(t, l.rotate(AuthorityOptions{Leave: true}).err, &partial)
	l.settled("m1", "w1")
	assert.Equal(t, files, l.host("w2").read(authorityCert(kubernetesCA)))

	// The machine returns. The new CA doesn't sign a certificate that the machine's kubelet may not have, and the machine gets no keys of CAs.
	w2 := l.host("w2")
	w2.server = sshtest.NewServer(t, sshtest.Config{Name: "w2", Handler: w2})
	good := w2.read("/var/lib/kubelet/pki/kubelet-client-1.pem")
	key, text := newKeyPEM(t)
	catchUp := AuthorityOptions{CatchUp: true}
	for name, evil := range map[string]*x509.Certificate{
		"an administrator":           {Subject: pkix.Name{CommonName: "kubernetes-admin", Organization: []string{"system:masters"}}},
		"another node":               {Subject: pkix.Name{CommonName: "system:node:w1", Organization: []string{"system:nodes"}}},
		"one that signs":             {Subject: pkix.Name{CommonName: "system:node:w2", Organization: []string{"system:nodes"}}, KeyUsage: x509.KeyUsageCertSign},
		"one with another's address": {Subject: pkix.Name{CommonName: "system:node:w2", Organization: []string{"system:nodes"}}, IPAddresses: []net.IP{net.ParseIP("10.9.0.1")}},
	} {
		forged := issue(t, evil, key, l.old[kubernetesCA])
		w2.write("/var/lib/kubelet/pki/kubelet-client-1.pem", string(pki.Encode(forged))+string(text))
		require.NoError(t, l.rotate(catchUp).err)
		got, err := pki.Parse([]byte(w2.read("/var/lib/kubelet/pki/kubelet-client-1.pem")))
		require.NoError(t, err)
		assert.True(t, got[0].Equal(forged), name)
	}
	forged := issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "system:node:w2", Organization: []string{"system:nodes"}}}, key, l.old["etcd/ca"])
	w2.write("/var/lib/kubelet/pki/kubelet-client-1.pem", string(pki.Encode(forged))+string(text))
	require.NoError(t, l.rotate(catchUp).err)
	got, err := pki.Parse([]byte(w2.read("/var/lib/kubelet/pki/kubelet-client-1.pem")))
	require.NoError(t, err)
	assert.True(t, got[0].Equal(forged), "the name of etcd's authority")

	w2.write("/var/lib/kubelet/pki/kubelet-client-1.pem", good)
	require.NoError(t, l.rotate(catchUp).err)
	l.settled("m1", "w1", "w2")
}

func TestAWorkerGetsNoKeyOfAnAuthority(t *testing.T) {
	t.Parallel()
	l := withAuthorities(t, 1, 1)
	w1 := l.host("w1")
	for _, name := range authorityNames {
		w1.write(authorityKey(name), "here\n")
		w1.write(authorityCert(name), l.host("m1").read(authorityCert(name)))
	}
	w1.write("/etc/kubernetes/other.conf", "certificate-authority-data: "+base64.StdEncoding.EncodeToString([]byte("another server's"))+"\n")
	l.host("m1").write("/etc/kubernetes/other.conf", w1.read("/etc/kubernetes/other.conf"))
	require.NoError(t, l.rotate(AuthorityOptions{}).err)
	l.settled("m1", "w1")
	for _, name := range authorityNames {
		assert.Equal(t, "here\n", w1.read(authorityKey(name)))
	}
	assert.Equal(t, w1.read("/etc/kubernetes/other.conf"), l.host("m1").read("/etc/kubernetes/other.conf"), "it is another server's")
	assert.NotContains(t, l.host("m1").read("/etc/kubernetes/other.conf"), "LS0t")
}

// After a run was killed, its restart of a master's API server may still be in progress.
func TestARotationOfAuthoritiesWaitsForAPIServersThatRestart(t *testing.T) {
	for _, restarts := range []string{"m1", "m2"} {
		t.Run(restarts, func(t *testing.T) {
			l := withAuthorities(t, 2, 0)
			l.host(restarts).write("/.fake/fail/api", "")
			told := ""
			o := l.rotate(AuthorityOptions{Wait: time.Minute}, func(o *engine.Options) {
				o.Sink = heard{o.Sink, func(e engine.Event) {
					if e.Kind == engine.EventNote && told == "" {
						told = e.Message
						l.host(restarts).remove("/.fake/fail/api")
					}
				}}
			})
			require.NoError(t, o.err, "%s", l.story(o))
			assert.Equal(t, "the API server of "+restarts+" isn't ready; waiting for it, at most 1m0s", told)
			l.settled("m1", "m2")
		})
	}
}

func TestARotationOfAuthoritiesIsRefused(t *testing.T) {
	t.Parallel()
	l := withAuthorities(t, 2, 0)
	late := l.rotate(AuthorityOptions{}, func(o *engine.Options) { o.Clock = func() time.Time { return time.Now().Add(time.Hour) } })
	require.ErrorContains(t, late.err, "behind this machine's")
	l.host("m2").write("/.fake/fail/api", "")
	err := l.rotate(AuthorityOptions{}).err
	require.ErrorContains(t, err, "m2 is not ready, so m1 isn't restarted")
	assert.Len(t, l.parse("m1", authorityCert(kubernetesCA), ""), 1)
	l.host("m2").remove("/.fake/fail/api")
	require.ErrorContains(t, l.rotate(AuthorityOptions{CatchUp: true}).err, "was interrupted")
	require.NoError(t, l.rotate(AuthorityOptions{}).err)
	l.settled("m1", "m2")
}
