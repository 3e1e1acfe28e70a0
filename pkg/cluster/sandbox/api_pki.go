package sandbox

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

const (
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 365 * 24 * time.Hour
	// leafRenewal is the remaining lifetime at which the next start renews a certificate.
	leafRenewal = 30 * 24 * time.Hour
)

type leaf struct {
	name, ca     string // file names without extension
	commonName   string
	organization []string
	server       bool // for 127.0.0.1 and the service's names; false means a client certificate
}

// leaves returns the certificates of the programs and of the operator. Their names and groups have built-in roles in Kubernetes. etcd has a
// separate CA, so that a client of the API can't access etcd.
func leaves() []leaf {
	return []leaf{
		{name: "etcd", ca: "etcd-ca", commonName: "etcd", server: true},
		{name: "apiserver-etcd-client", ca: "etcd-ca", commonName: "kube-apiserver-etcd-client"},
		{name: "apiserver", ca: "ca", commonName: "kube-apiserver", server: true},
		{name: "admin", ca: "ca", commonName: "paictl-sandbox-admin", organization: []string{"system:masters"}},
		{name: "kube-controller-manager", ca: "ca", commonName: "system:kube-controller-manager"},
		{name: "kube-scheduler", ca: "ca", commonName: "system:kube-scheduler"},
		{name: "kwok", ca: "ca", commonName: simulatorUser},
	}
}

// ensurePKI creates the missing parts of the PKI: two CAs, the key for service account tokens, and the certificates.
func (s *Sandbox) ensurePKI() error {
	if err := os.MkdirAll(s.pki(""), 0o700); err != nil {
		return err
	}
	for _, ca := range []string{"ca", "etcd-ca"} {
		if err := s.ensureCA(ca); err != nil {
			return err
		}
	}
	if err := s.ensureServiceAccountKey(); err != nil {
		return err
	}
	for _, l := range leaves() {
		if err := s.ensureLeaf(l); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

func (s *Sandbox) ensureCA(name string) error {
	if exists(s.pki(name + ".crt")) { // the certificate is written last
		return nil
	}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "paictl-sandbox-" + name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	return s.issue(name, template, caLife, nil, nil)
}

func (s *Sandbox) ensureLeaf(l leaf) error {
	if old, _, err := s.readPair(l.name); err == nil && time.Until(old.NotAfter) > leafRenewal {
		return nil
	}
	ca, caKey, err := s.readPair(l.ca)
	if err != nil {
		return err
	}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: l.commonName, Organization: l.organization},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if l.server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
		template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	}
	return s.issue(l.name, template, leafLife, ca, caKey)
}

// issue creates a key and its certificate. ca signs the certificate. If ca is nil, the certificate is self-signed.
func (s *Sandbox) issue(name string, template *x509.Certificate, life time.Duration, ca *x509.Certificate, caKey *ecdsa.PrivateKey) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return err
	}
	now := time.Now()
	// The validity begins an hour earlier, because clocks may differ a little.
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(life)
	if ca == nil {
		ca, caKey = template, key
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(s.pki(name+".key"), "PRIVATE KEY", private, 0o600); err != nil {
		return err
	}
	return writePEM(s.pki(name+".crt"), "CERTIFICATE", cert, 0o644)
}

// ensureServiceAccountKey creates the key that signs service account tokens. It is an RSA key, because all client libraries support RSA
// signatures.
func (s *Sandbox) ensureServiceAccountKey() error {
	if exists(s.pki("sa.pub")) {
		return nil
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writePEM(s.pki("sa.key"), "PRIVATE KEY", private, 0o600); err != nil {
		return err
	}
	return writePEM(s.pki("sa.pub"), "PUBLIC KEY", public, 0o644)
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

func (s *Sandbox) readPair(name string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certDER, err := readPEM(s.pki(name + ".crt"))
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", s.pki(name+".crt"), err)
	}
	keyDER, err := readPEM(s.pki(name + ".key"))
	if err != nil {
		return nil, nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(keyDER)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", s.pki(name+".key"), err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("read %s: not an ECDSA key", s.pki(name+".key"))
	}
	return cert, key, nil
}

func readPEM(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("read %s: not PEM", path)
	}
	return block.Bytes, nil
}

// writeKubeconfigs writes the operator's kubeconfig, a kubeconfig for each program, and KWOK's configuration.
func (s *Sandbox) writeKubeconfigs() error {
	files := map[string]string{"admin": s.Kubeconfig()}
	for _, name := range programNames()[2:] {
		files[name] = s.apiFile(name + ".kubeconfig")
	}
	for user, path := range files {
		if err := s.writeKubeconfig(user, path); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
	return writeFile(s.apiFile("kwok.yaml"), kwokStages, 0o600)
}

func (s *Sandbox) writeKubeconfig(user, path string) error {
	c := api.NewConfig()
	name := "sandbox-" + s.state.Name
	var cluster api.Cluster
	var auth api.AuthInfo
	for file, data := range map[string]*[]byte{"ca.crt": &cluster.CertificateAuthorityData,
		user + ".crt": &auth.ClientCertificateData, user + ".key": &auth.ClientKeyData} {
		b, err := os.ReadFile(s.pki(file))
		if err != nil {
			return err
		}
		*data = b
	}
	cluster.Server = endpoint(s.state.API.Ports.API)
	c.Clusters[name], c.AuthInfos[name+"-"+user] = &cluster, &auth
	c.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name + "-" + user}
	c.CurrentContext = name
	b, err := clientcmd.Write(*c)
	if err != nil {
		return err
	}
	return writeFile(path, b, 0o600)
}

// client returns a client with the operator's credentials and without a rate limit.
func (s *Sandbox) client() (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}
