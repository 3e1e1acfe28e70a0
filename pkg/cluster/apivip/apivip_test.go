package apivip

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// The certificate of an httptest server contains 127.0.0.1, but no address in 10.0.0.0/8.
func TestAnAPIServerWhoseCertificateDoesNotNameTheAddressIsNotReady(t *testing.T) {
	ready := http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/readyz", r.URL.Path)
		w.WriteHeader(ready)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}}
	ask := func(vip string) error {
		t.Helper()
		check, err := readiness(config, netip.MustParseAddr(vip))
		require.NoError(t, err)
		return check(t.Context())
	}
	require.NoError(t, ask("127.0.0.1"))
	require.ErrorContains(t, ask("10.0.0.50"), "certificate is valid for 127.0.0.1, ::1, not 10.0.0.50")
	assert.Empty(t, config.ServerName, "the lease is kept by the machine's own address")
	ready = http.StatusInternalServerError
	require.Error(t, ask("127.0.0.1"))
}
