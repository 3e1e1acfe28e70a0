package access_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/httpserver/access"
)

func answer(t *testing.T, h http.Handler, change func(*http.Request)) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	change(r)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func TestOnlyWhoKnowsTheSecretIsAnswered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	fine := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	metrics := access.Metrics(file, fine)
	token := access.Token(file, fine, func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) })
	nothing := func(*http.Request) {}
	basic := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	header := func(text string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(access.TokenHeader, text) }
	}
	assert.Equal(t, 401, answer(t, metrics, basic("pai", "")), "there is no file yet")
	assert.Equal(t, 403, answer(t, token, header("")))
	for _, empty := range []string{"", "\n"} {
		require.NoError(t, os.WriteFile(file, []byte(empty), 0o600))
		assert.Equal(t, 401, answer(t, metrics, basic("pai", "")))
		assert.Equal(t, 403, answer(t, token, header("")))
	}
	for _, secret := range []string{"first", "second"} { // a Secret may change while a program runs
		require.NoError(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
		assert.Equal(t, 200, answer(t, metrics, basic("pai", secret)))
		assert.Equal(t, 200, answer(t, token, header(secret)))
	}
	for _, wrong := range []func(*http.Request){nothing, basic("pai", "first"), basic("root", "second"), basic("pai", ""), basic("pai", "secon"), header("second")} {
		assert.Equal(t, 401, answer(t, metrics, wrong))
	}
	for _, wrong := range []func(*http.Request){nothing, header("first"), header("seconds"), basic("pai", "second")} {
		assert.Equal(t, 403, answer(t, token, wrong))
	}
}

func TestWithoutASecretOfPaictlEverybodyIsAnswered(t *testing.T) {
	fine := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	assert.Equal(t, 200, answer(t, access.Metrics("", fine), func(*http.Request) {}))
	assert.Equal(t, 200, answer(t, access.Token("", fine, nil), func(*http.Request) {}))
}
