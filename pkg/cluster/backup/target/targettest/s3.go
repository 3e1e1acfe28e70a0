// Package targettest runs a real S3 server for tests.
// In: the program versitygw, which "sh hack/versitygw.sh" builds. Out: the server's address, and its folder.
package targettest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/backup/target"
	"github.com/openpai/paictl/test/tier"
)

// Gateway is a real S3 server on the loopback interface, with one bucket, "backups", and a self-signed certificate.
type Gateway struct {
	// Dir is the server's folder. It contains a folder for each bucket.
	Dir string
	// S3 holds the settings of the connection to the server.
	S3 target.S3
	// Raw is a client for operations that Target doesn't support.
	Raw *minio.Client
}

// The credentials of the server's only user.
const (
	AccessKey = "AKIAKEEPER"
	SecretKey = "hunter2-hunter2"
)

func versitygw(t testing.TB) string {
	t.Helper()
	tier.More(t, "an S3 server")
	file := os.Getenv("PAICTL_TEST_S3")
	if file == "" {
		cache, err := os.UserCacheDir()
		require.NoError(t, err)
		built, err := filepath.Glob(filepath.Join(cache, "paictl", "tools", "versitygw-v*-"+runtime.Version()))
		require.NoError(t, err)
		if len(built) > 0 {
			file = built[len(built)-1]
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Skip("it needs an S3 server: build one with \"sh hack/versitygw.sh\", and name it in PAICTL_TEST_S3")
	}
	return file
}

// S3 starts the server. The server stops when the test ends. S3 skips the test if versitygw isn't built.
func S3(t testing.TB) *Gateway {
	t.Helper()
	program := versitygw(t)
	g := &Gateway{Dir: t.TempDir()}
	require.NoError(t, os.Mkdir(g.Dir+"/backups", 0o700))
	own := t.TempDir()
	certify(t, own+"/cert.pem", own+"/key.pem")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	var log bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--port", address, "--cert", own+"/cert.pem", "--key", own+"/key.pem", "--quiet", "posix", "--sidecar", t.TempDir(), g.Dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	g.S3 = target.S3{Endpoint: "https://" + address, CA: own + "/cert.pem", Getenv: func(name string) string {
		return map[string]string{"AWS_ACCESS_KEY_ID": AccessKey, "AWS_SECRET_ACCESS_KEY": SecretKey}[name]
	}}
	text, err := os.ReadFile(g.S3.CA)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	g.Raw, err = minio.New(address, &minio.Options{Secure: true, Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""),
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		there, err := g.Raw.BucketExists(t.Context(), "backups")
		return err == nil && there
	}, time.Minute, 50*time.Millisecond)
	return g
}

func certify(t testing.TB, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	public, err := x509.CreateCertificate(rand.Reader, form, form, private.Public(), private)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
}

// Names returns the names of objects with a prefix, and of all unfinished uploads.
func (g *Gateway) Names(t testing.TB, prefix string) []string {
	t.Helper()
	var out []string
	for o := range g.Raw.ListObjects(context.WithoutCancel(t.Context()), "backups", minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		require.NoError(t, o.Err)
		out = append(out, o.Key[len(prefix):])
	}
	for u := range g.Raw.ListIncompleteUploads(context.WithoutCancel(t.Context()), "backups", "", true) {
		require.NoError(t, u.Err)
		out = append(out, "unfinished "+u.Key)
	}
	return out
}
