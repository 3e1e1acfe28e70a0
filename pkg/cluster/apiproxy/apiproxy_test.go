package apiproxy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/tier"
)

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (a *authority) certificate(t *testing.T, ips ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, ip := range ips {
		tmpl.IPAddresses = append(tmpl.IPAddresses, net.ParseIP(ip))
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// master is an API server that responds with its name. status is the result of /readyz.
type master struct {
	*httptest.Server
	status atomic.Int32
}

func (a *authority) master(t *testing.T, name string, ips ...string) *master {
	t.Helper()
	m := &master{}
	m.status.Store(http.StatusOK)
	m.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(int(m.status.Load()))
			return
		}
		_, _ = io.WriteString(w, name)
	}))
	m.TLS = &tls.Config{Certificates: []tls.Certificate{a.certificate(t, ips...)}}
	m.Config.ErrorLog = nil
	m.StartTLS()
	t.Cleanup(m.Close)
	return m
}

func (m *master) address() string { return m.Listener.Addr().String() }

// running is a proxy with its files, and a client that trusts the CA and opens a new connection for each request.
type running struct {
	t      *testing.T
	listen string
	file   string
	client *http.Client
}

func (a *authority) proxy(t *testing.T, servers ...string) *running {
	t.Helper()
	dir := t.TempDir()
	p := &running{t: t, file: filepath.Join(dir, "servers")}
	p.servers(servers...)
	ca := filepath.Join(dir, "ca.crt")
	require.NoError(t, os.WriteFile(ca, a.pem, 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.listen = l.Addr().String()
	require.NoError(t, l.Close())
	done := make(chan error, 1)
	go func() {
		done <- Run(t.Context(), []string{"--listen", p.listen, "--servers", p.file, "--ca", ca}, t.Output())
	}()
	t.Cleanup(func() { require.NoError(t, <-done) })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.pem)
	p.client = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	return p
}

func (p *running) servers(addresses ...string) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(p.file, []byte("# masters\n"+strings.Join(addresses, "\n")+"\n"), 0o600))
}

// ask returns the name of the master that responds, or "".
func (p *running) ask() string {
	res, err := p.client.Get("https://" + p.listen + "/")
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return string(b)
}

// only waits until ten consecutive requests reach only the named masters.
func (p *running) only(names ...string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		for range 10 {
			if !slices.Contains(names, p.ask()) {
				return false
			}
		}
		return true
	}, 20*time.Second, 100*time.Millisecond)
}

func TestConnectionsGoToMastersThatAreReady(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	m1, m2 := a.master(t, "m1", "127.0.0.1"), a.master(t, "m2", "127.0.0.1")
	p := a.proxy(t, m1.address(), m2.address())
	p.only("m1", "m2")

	m1.status.Store(http.StatusInternalServerError) // its etcd is unavailable
	p.only("m2")
	m2.status.Store(http.StatusInternalServerError)
	p.only("m1", "m2") // their response is better than a closed connection
	m1.status.Store(http.StatusOK)
	p.only("m1")
	m2.status.Store(http.StatusForbidden) // anonymous requests are rejected
	p.only("m1", "m2")

	m1.Close()
	for range 10 {
		assert.Equal(t, "m2", p.ask(), "no request fails after a refused connection")
	}
	m2.Close()
	p.only("")
}

func TestConnectionsLeaveAMasterThatIsNoLongerReady(t *testing.T) {
	tier.More(t, "it waits for many seconds")
	a := newAuthority(t)
	m1, m2 := a.master(t, "m1", "127.0.0.1"), a.master(t, "m2", "127.0.0.1")
	m2.status.Store(http.StatusInternalServerError)
	p := a.proxy(t, m1.address(), m2.address())
	p.only("m1")
	// The client keeps one connection, as a kubelet does.
	var conn net.Conn
	kept := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: p.client.Transport.(*http.Transport).TLSClientConfig,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, address)
			conn = c
			return c, err
		}}}
	ask := func() string {
		res, err := kept.Get("https://" + p.listen)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return string(b)
	}
	require.Equal(t, "m1", ask())
	first := conn

	m1.status.Store(http.StatusInternalServerError)
	time.Sleep(leaveAfter + 3*checkEvery)
	assert.Equal(t, "m1", ask(), "no master is ready: what there is stays")
	assert.Same(t, first, conn)
	m2.status.Store(http.StatusOK)
	require.Eventually(t, func() bool { return ask() == "m2" }, leaveAfter+10*time.Second, 200*time.Millisecond)
	m1.status.Store(http.StatusOK)
	second := conn
	time.Sleep(2 * checkEvery)
	assert.Equal(t, "m2", ask(), "it stays where it works")
	assert.Same(t, second, conn)
}

func TestTheListOfMastersIsReadAgain(t *testing.T) {
	tier.More(t, "it waits for seconds")
	t.Parallel()
	a := newAuthority(t)
	m1, m2 := a.master(t, "m1", "127.0.0.1"), a.master(t, "m2", "127.0.0.1")
	p := a.proxy(t, m1.address())
	p.only("m1")
	p.servers(m2.address())
	p.only("m2")
	require.NoError(t, os.WriteFile(p.file, []byte("no address\n"), 0o600))
	time.Sleep(3 * time.Second) // longer than it takes to look again
	p.only("m2")
}

func TestAnotherClusterAtAMastersAddressIsNotUsed(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	m1, other := a.master(t, "m1", "127.0.0.1"), newAuthority(t).master(t, "other", "127.0.0.1")
	p := a.proxy(t, other.address(), m1.address())
	p.only("m1")
}

func TestAMasterWhoseCertificateDoesNotNameTheProxyYetIsNotUsed(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	p := a.proxy(t, a.master(t, "early", "10.0.0.1").address(), a.master(t, "m1", "10.0.0.2", "127.0.0.1").address())
	p.only("m1")
}

func TestAFileThatCannotBeServedEndsIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "servers")
	run := func() error {
		return Run(t.Context(), []string{"--listen", "127.0.0.1:0", "--servers", file}, io.Discard)
	}
	require.ErrorIs(t, run(), os.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte("# none\n"), 0o600))
	require.ErrorContains(t, run(), "names no API server")
	require.NoError(t, os.WriteFile(file, []byte("10.0.0.1\n"), 0o600))
	require.ErrorContains(t, run(), file+":1:")
	require.ErrorContains(t, Run(t.Context(), []string{"--listen", "nowhere"}, io.Discard), "nowhere")
}

// A machine without power doesn't acknowledge a connection. The check must distinguish it from a machine with a slow API server.
func TestAMasterThatTakesNoConnectionIsOff(t *testing.T) {
	s := &server{address: "192.0.2.1:6443", client: &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: time.Nanosecond}).DialContext}}}
	tier, _, err := s.ask(t.Context())
	require.Error(t, err)
	assert.NotEqual(t, tierAnswers, tier)

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	s = &server{address: silent.Addr().String(), client: &http.Client{}}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	tier, why, err := s.ask(ctx)
	require.NoError(t, err)
	assert.Equal(t, tierAnswers, tier, why)
}
