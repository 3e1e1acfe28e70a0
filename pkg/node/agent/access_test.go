package agent

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/openpai/paictl/pkg/httpserver/access"
)

// The metrics contain the names of pods, so they require a password.
func TestMetricsWantThePassword(t *testing.T) {
	m := newMachine(t)
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("s3cret\n"), 0o600))
	var accepted atomic.Pointer[kubeletplugin.Helper]
	var published atomic.Bool
	h := answers(&accepted, &published, m.Driver, password)
	for path, want := range map[string][2]int{"/metrics": {401, 200}, "/healthz": {200, 200}, "/readyz": {503, 503}} {
		for i, sent := range []string{"", "s3cret"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			if sent != "" {
				r.SetBasicAuth(access.User, sent)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			assert.Equal(t, want[i], w.Code, path)
		}
	}
}
