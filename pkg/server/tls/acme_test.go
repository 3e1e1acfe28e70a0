package tls_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/httpserver"
	certificate "github.com/openpai/paictl/pkg/server/tls"
	"github.com/openpai/paictl/test/tier"
)

// pebble is a real ACME server. It connects to two ports of this machine to verify names.
type pebble struct {
	directory string
	roots     *x509.CertPool // the roots of the authority's API
	ca        *x509.Certificate
	management,
	pem string
}

func startPebble(t *testing.T, client kubernetes.Interface, tlsPort, httpPort string) *pebble {
	t.Helper()
	tier.More(t, "a real ACME authority")
	program := os.Getenv("PAICTL_TEST_ACME")
	if program == "" {
		t.Skip("no ACME authority: name Pebble in PAICTL_TEST_ACME (hack/pebble.sh builds it)")
	}
	a, err := certificate.Ensure(t.Context(), client, time.Now())
	require.NoError(t, err)
	own, err := certificate.NewPlatformCertificates(a, []string{"127.0.0.1"}, time.Now)
	require.NoError(t, err)
	leaf, err := own.GetCertificate(nil)
	require.NoError(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	at, management := free(t), free(t)
	config := fmt.Sprintf(`{"pebble": {"listenAddress": %q, "managementListenAddress": %q, "certificate": %q, "privateKey": %q, "httpPort": %s, "tlsPort": %s, "ocspResponderURL": "", "externalAccountBindingRequired": false}}`,
		at, management, write("cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]})), write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})), httpPort, tlsPort)
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, program, "-config", write("config.json", []byte(config)), "-dnsserver", names(t))
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, append(os.Environ(), "PEBBLE_VA_NOSLEEP=1")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			said, _ := os.ReadFile(log.Name())
			t.Logf("%s", said[max(0, len(said)-4000):])
		}
		_ = log.Close()
	})
	p := &pebble{directory: "https://" + at + "/dir", roots: x509.NewCertPool(), management: management, pem: string(certificate.PEM(a.Certificate))}
	p.roots.AddCert(a.Certificate)
	var root []byte
	require.Eventually(t, func() bool { root, err = p.get("https://" + management + "/roots/0"); return err == nil }, time.Minute, 20*time.Millisecond)
	block, _ := pem.Decode(root)
	require.NotNil(t, block, "%s", root)
	p.ca, err = x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return p
}

func (p *pebble) get(url string) ([]byte, error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return io.ReadAll(resp.Body)
}

// names runs a DNS server that resolves each name to this machine. It uses TCP, because Pebble queries it over TCP.
func names(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				for answerName(c) == nil {
					continue
				}
			}()
		}
	}()
	return l.Addr().String()
}

// answerName responds to one DNS query. Over TCP, each message begins with its length.
func answerName(c net.Conn) error {
	var size uint16
	if err := binary.Read(c, binary.BigEndian, &size); err != nil {
		return err
	}
	buf := make([]byte, size)
	if _, err := io.ReadFull(c, buf); err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(buf); err != nil {
		return err
	}
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	for _, q := range m.Questions {
		if q.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}})
		}
	}
	out, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
	return err
}

func free(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func port(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	return port
}

// replica starts a server that listens at an address. The server has its own certificate and certificates of the CA.
func replica(t *testing.T, client kubernetes.Interface, p *pebble, listen string) (*certificate.ACME, *certificate.Authority) {
	t.Helper()
	roots, err := certificate.Roots(p.pem)
	require.NoError(t, err)
	a, err := certificate.Ensure(t.Context(), client, time.Now())
	require.NoError(t, err)
	own, err := certificate.NewPlatformCertificates(a, []string{"gpu.example.org", "other.example.org", "10.0.0.1"}, time.Now)
	require.NoError(t, err)
	public := certificate.NewACME(client, certificate.ACMEOptions{Directory: p.directory, Email: "root@example.org", Roots: roots, Names: []string{"GPU.example.org"}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	l, err := certificate.Listen(t.Context(), listen, public.Beside(own), httpserver.Options{Connections: 100})
	require.NoError(t, err)
	srv := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.NotFoundHandler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return public, a
}

func lead(t *testing.T, a *certificate.ACME) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { a.Tend(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
}

func forgetACME(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	if err := client.CoreV1().Secrets(certificate.Namespace).Delete(t.Context(), certificate.ACMESecret, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
}

// The CA connects to a replica that isn't the leader. That replica reads the response to the challenge from the Secret.
func TestAPublicAuthoritySignsForTheNamesOfTheServerAlone(t *testing.T) {
	client := cluster(t)
	forgetACME(t, client)
	at, other := free(t), free(t)
	p := startPebble(t, client, port(t, other), "1")
	first, own := replica(t, client, p, at)
	_, _ = replica(t, client, p, other)
	_, err := shown(t, at, "gpu.example.org", own.Certificate)
	require.Error(t, err, "no other certificate stands in for that one: clients would come to trust it")

	lead(t, first)
	var chain []*x509.Certificate
	require.Eventually(t, func() bool { chain, err = shown(t, at, "gpu.example.org", p.ca); return err == nil }, time.Minute, 50*time.Millisecond)
	assert.Equal(t, []string{"gpu.example.org"}, chain[0].DNSNames)
	later := free(t)
	_, _ = replica(t, client, p, later)
	for _, address := range []string{other, later} {
		var same []*x509.Certificate
		require.Eventually(t, func() bool { same, err = shown(t, address, "gpu.example.org", p.ca); return err == nil }, time.Minute, 50*time.Millisecond)
		assert.Equal(t, chain[0].SerialNumber, same[0].SerialNumber, "replicas share it")
	}
	for _, name := range []string{"other.example.org", "10.0.0.1"} {
		_, err := shown(t, at, name, own.Certificate)
		require.NoError(t, err, "%s is of the platform's own authority", name)
	}
	_, err = shown(t, at, "evil.example.org", p.ca)
	require.Error(t, err)
	s, err := client.CoreV1().Secrets(certificate.Namespace).Get(t.Context(), certificate.ACMESecret, metav1.GetOptions{})
	require.NoError(t, err)
	for key := range s.Data {
		assert.True(t, strings.HasPrefix(key, "gpu.example.org") || strings.HasPrefix(key, "acme_account"), "%s: nothing was asked for that isn't the server's", key)
	}
}

// If the CA can't reach the port with TLS, it uses the port without TLS.
func TestAPublicAuthorityMayAskWithoutTLS(t *testing.T) {
	client := cluster(t)
	forgetACME(t, client)
	plain, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := startPebble(t, client, port(t, free(t)), port(t, plain.Addr().String()))
	at := free(t)
	public, _ := replica(t, client, p, at)
	srv := &http.Server{ReadHeaderTimeout: time.Second, Handler: public.Answers(http.NotFoundHandler())}
	go func() { _ = srv.Serve(plain) }()
	t.Cleanup(func() { _ = srv.Close() })
	lead(t, public)
	require.Eventually(t, func() bool { _, err := shown(t, at, "gpu.example.org", p.ca); return err == nil }, time.Minute, 50*time.Millisecond)
}

func TestAuthoritiesThatAreNoneAreRefused(t *testing.T) {
	_, err := certificate.Roots("nothing")
	require.Error(t, err)
	pool, err := certificate.Roots(" \n")
	require.NoError(t, err)
	assert.Nil(t, pool, "the system's")
}
