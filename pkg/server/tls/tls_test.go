package tls_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/httpserver"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	certificate "github.com/openpai/paictl/pkg/server/tls"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// cluster returns the client of a real API server with the namespace for people, but without a CA.
func cluster(t *testing.T) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(kubetest.Start(t).Config)
	require.NoError(t, err)
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: certificate.Namespace}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	forget(t, client)
	return client
}

func forget(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	err := client.CoreV1().Secrets(certificate.Namespace).Delete(t.Context(), certificate.Secret, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
}

func TestServersThatStartAtATimeHaveOneAuthority(t *testing.T) {
	client := cluster(t)
	none, err := certificate.Read(t.Context(), client)
	require.NoError(t, err)
	require.Nil(t, none)
	var wg sync.WaitGroup
	prints := make([]string, 8)
	for i := range prints {
		wg.Go(func() {
			a, err := certificate.Ensure(t.Context(), client, time.Now())
			if assert.NoError(t, err) {
				prints[i] = certificate.Fingerprint(a.Certificate)
			}
		})
	}
	wg.Wait()
	for _, p := range prints {
		assert.Equal(t, prints[0], p)
	}
	assert.Len(t, prints[0], 32*3-1)
	read, err := certificate.Read(t.Context(), client)
	require.NoError(t, err)
	assert.Equal(t, prints[0], certificate.Fingerprint(read))
}

// serve starts a server that uses the certificates of a source, and returns its address.
func serve(t *testing.T, s certificate.Source) string {
	t.Helper()
	l, err := certificate.Listen(t.Context(), "127.0.0.1:0", s, httpserver.Options{Connections: 100})
	require.NoError(t, err)
	srv := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return l.Addr().String()
}

// shown connects to a server under a name as a client that trusts certain CAs. It returns the server's certificates.
func shown(t *testing.T, address, name string, trusted ...*x509.Certificate) ([]*x509.Certificate, error) {
	t.Helper()
	pool := x509.NewCertPool()
	for _, c := range trusted {
		pool.AddCert(c)
	}
	d := tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS12}}
	conn, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates, nil
}

func TestAClientThatTrustsTheAuthorityReachesTheServerByEachOfItsNames(t *testing.T) {
	client := cluster(t)
	a, err := certificate.Ensure(t.Context(), client, time.Now())
	require.NoError(t, err)
	own, err := certificate.NewPlatformCertificates(a, []string{"gpu.example.org", "10.0.0.1", "fd00::1"}, time.Now)
	require.NoError(t, err)
	address := serve(t, own)
	for _, name := range []string{"gpu.example.org", "10.0.0.1", "fd00::1"} {
		chain, err := shown(t, address, name, a.Certificate)
		require.NoError(t, err, name)
		assert.Equal(t, certificate.Fingerprint(a.Certificate), certificate.Fingerprint(chain[len(chain)-1]), "who compares fingerprints sees the authority's")
	}
	_, err = shown(t, address, "10.0.0.2", a.Certificate)
	require.Error(t, err)
	_, err = shown(t, address, "gpu.example.org")
	require.Error(t, err, "no one trusts it unasked")
	_, err = certificate.NewPlatformCertificates(a, nil, time.Now)
	require.ErrorContains(t, err, "needs a name or an address")
}

func TestACertificateIsMadeBeforeTheOneBeforeEnds(t *testing.T) {
	a, err := certificate.Ensure(t.Context(), cluster(t), time.Now())
	require.NoError(t, err)
	now := time.Now()
	own, err := certificate.NewPlatformCertificates(a, []string{"a"}, func() time.Time { return now })
	require.NoError(t, err)
	first, err := own.GetCertificate(nil)
	require.NoError(t, err)
	now = now.Add(19 * 24 * time.Hour)
	same, err := own.GetCertificate(nil)
	require.NoError(t, err)
	assert.Same(t, first, same)
	now = now.Add(2 * 24 * time.Hour)
	next, err := own.GetCertificate(nil)
	require.NoError(t, err)
	assert.NotEqual(t, first.Leaf.SerialNumber, next.Leaf.SerialNumber)
	assert.True(t, next.Leaf.NotAfter.After(now.Add(29*24*time.Hour)))
}

func TestADamagedAuthorityIsNamedAndNotReplaced(t *testing.T) {
	client := cluster(t)
	_, err := certificate.Ensure(t.Context(), client, time.Now())
	require.NoError(t, err)
	store := client.CoreV1().Secrets(certificate.Namespace)
	good, err := store.Get(t.Context(), certificate.Secret, metav1.GetOptions{})
	require.NoError(t, err)
	forget(t, client)
	_, err = certificate.Ensure(t.Context(), client, time.Now())
	require.NoError(t, err)
	other, err := store.Get(t.Context(), certificate.Secret, metav1.GetOptions{})
	require.NoError(t, err)
	for says, change := range map[string]func(*corev1.Secret){
		"tls.crt has no certificate":            func(s *corev1.Secret) { s.Data["tls.crt"] = []byte("x") },
		"tls.key has no key":                    func(s *corev1.Secret) { s.Data["tls.key"] = []byte("x") },
		"its key isn't that of its certificate": func(s *corev1.Secret) { s.Data["tls.key"] = good.Data["tls.key"] },
		"tls.key can't be read as a key": func(s *corev1.Secret) {
			s.Data["tls.key"] = []byte(strings.Replace(string(s.Data["tls.key"]), "MIG", "MIH", 1))
		},
	} {
		s := other.DeepCopy()
		change(s)
		forget(t, client)
		s.ResourceVersion, s.UID = "", ""
		_, err = store.Create(t.Context(), s, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = certificate.Ensure(t.Context(), client, time.Now())
		require.ErrorContains(t, err, says)
		assert.NotEmpty(t, hint.Of(err))
	}
}

func write(t *testing.T, folder string, data map[string][]byte, at time.Time) {
	t.Helper()
	for name, text := range data {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
		require.NoError(t, os.Chtimes(filepath.Join(folder, name), at, at))
	}
}

func TestACertificateFromFilesIsRenewedWhileTheServerRuns(t *testing.T) {
	client := cluster(t)
	pair := func() map[string][]byte {
		forget(t, client)
		_, err := certificate.Ensure(t.Context(), client, time.Now())
		require.NoError(t, err)
		s, err := client.CoreV1().Secrets(certificate.Namespace).Get(context.WithoutCancel(t.Context()), certificate.Secret, metav1.GetOptions{})
		require.NoError(t, err)
		return s.Data
	}
	folder, now := t.TempDir(), time.Now()
	var told []error
	_, err := certificate.NewFiles(folder, time.Now, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	first, second := pair(), pair()
	write(t, folder, first, now)
	f, err := certificate.NewFiles(folder, func() time.Time { return now }, func(err error) { told = append(told, err) })
	require.NoError(t, err)
	get := func() []byte {
		c, err := f.GetCertificate(nil)
		require.NoError(t, err)
		return c.Certificate[0]
	}
	before := get()

	write(t, folder, map[string][]byte{"tls.crt": second["tls.crt"]}, now.Add(time.Second)) // half of a pair
	now = now.Add(time.Minute)
	assert.Equal(t, before, get(), "it goes on with the one that it has")
	require.Len(t, told, 1)
	require.ErrorContains(t, told[0], "private key does not match")

	write(t, folder, second, now)
	assert.Equal(t, before, get(), "it looks every ten seconds")
	now = now.Add(time.Minute)
	assert.NotEqual(t, before, get())
	require.NoError(t, os.Remove(filepath.Join(folder, "tls.key")))
	now = now.Add(time.Minute)
	assert.NotNil(t, get())
	assert.ErrorIs(t, told[len(told)-1], os.ErrNotExist)
}
