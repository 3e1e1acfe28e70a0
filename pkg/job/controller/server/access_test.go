package server_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/controller/server"
)

func TestMetricsAreForThoseWhoKnowThePassword(t *testing.T) {
	h := newHarness(t)
	h.options.MetricsAccess = filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(h.options.MetricsAccess, []byte("s3cret"), 0o600))
	for path, codes := range map[string][2]int{"/metrics": {401, 200}, "/healthz": {200, 200}, "/readyz": {200, 200}} {
		for i, password := range []string{"", "s3cret"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			if password != "" {
				r.SetBasicAuth("pai", password)
			}
			w := httptest.NewRecorder()
			server.New(h.options).Handler().ServeHTTP(w, r)
			assert.Equal(t, codes[i], w.Code, path)
		}
	}
}
