package pages

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server"
)

func TestEachPageIsWholeAndRunsItsOwnScriptAlone(t *testing.T) {
	all, err := files.ReadDir(".")
	require.NoError(t, err)
	require.Greater(t, len(all), 4)
	for _, f := range all {
		if f.Name() == "frame.html" {
			continue
		}
		w := httptest.NewRecorder()
		require.NoError(t, show(f.Name())(&server.Call{Writer: w, Request: httptest.NewRequest(http.MethodGet, "/", nil)}))
		body := w.Body.String()
		for _, once := range []string{"<!doctype html>", "<title>", "<style>", "</style>", "<h1>", "<noscript>This page needs JavaScript.", "<script>", "</script>", "</html>"} {
			assert.Equal(t, 1, strings.Count(body, once), "%s: %s", f.Name(), once)
		}
		assert.NotContains(t, body, "{{", f.Name())
		assert.Equal(t, 1, strings.Count(body, "async function ask(")+strings.Count(body, `fetch("/api/v3/first"`), f.Name())
		policy := w.Header().Get("Content-Security-Policy")
		assert.Contains(t, policy, "script-src "+hash(w.Body.Bytes(), "script"), f.Name())
		assert.Contains(t, policy, "style-src "+hash(w.Body.Bytes(), "style"), f.Name())
	}
}
