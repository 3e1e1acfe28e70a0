package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The machine that runs the tests has CA certificates, but the image of pai-backup doesn't.
func TestPublicAuthoritiesAreTrustedWithoutFilesOfTheSystem(t *testing.T) {
	const inside = "PAI_BACKUP_TEST_INSIDE"
	if os.Getenv(inside) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), inside+"=1", "SSL_CERT_FILE="+t.TempDir()+"/none", "SSL_CERT_DIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	pool, err := x509.SystemCertPool()
	require.NoError(t, err)
	assert.False(t, pool.Equal(x509.NewCertPool()))
	own := pool.Clone()
	assert.False(t, own.AppendCertsFromPEM(nil))
}
