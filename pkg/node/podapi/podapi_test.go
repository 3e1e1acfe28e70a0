package podapi

import (
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// server starts an API server. server returns a connection with a pod's service account, whose token is "first".
func server(t *testing.T, handler http.HandlerFunc) *API {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	a := &API{URL: s.URL, Folder: t.TempDir(), Agent: "tester"}
	t.Cleanup(a.Close)
	a.mount(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	a.mount(t, "token", "first\n")
	return a
}

func (a *API) mount(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(a.Folder, name), []byte(text), 0o600))
}

func TestAPodAsksByItsAccountWhichIsRenewed(t *testing.T) {
	var tokens []string
	a := server(t, func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
		assert.Equal(t, "tester", r.Header.Get("User-Agent"))
		fmt.Fprintf(w, `{"path":%q}`, r.URL.String())
	})
	var got struct{ Path string }
	require.NoError(t, a.Read(t.Context(), "/api/v1/nodes?limit=2", &got))
	assert.Equal(t, "/api/v1/nodes?limit=2", got.Path)
	a.mount(t, "token", "second")
	require.NoError(t, a.Read(t.Context(), "/readyz", nil))
	assert.Equal(t, []string{"Bearer first", "Bearer second"}, tokens)
}

func TestAnAuthorityThatIsRenewedIsTrustedFromThenOn(t *testing.T) {
	a := server(t, func(http.ResponseWriter, *http.Request) {})
	good, err := os.ReadFile(filepath.Join(a.Folder, "ca.crt"))
	require.NoError(t, err)
	other, err := os.ReadFile("../../runtime/barrier/testdata/other-ca.crt")
	require.NoError(t, err)
	require.NoError(t, a.Read(t.Context(), "/", nil))
	a.mount(t, "ca.crt", string(other))
	require.ErrorContains(t, a.Read(t.Context(), "/", nil), "certificate")
	a.mount(t, "ca.crt", "nothing")
	require.ErrorContains(t, a.Read(t.Context(), "/", nil), "has no certificate")
	a.mount(t, "ca.crt", string(good))
	require.NoError(t, a.Read(t.Context(), "/", nil))
}

func TestAConnectionIsUsedAgain(t *testing.T) {
	from := map[string]bool{}
	a := server(t, func(w http.ResponseWriter, r *http.Request) {
		from[r.RemoteAddr] = true
		fmt.Fprint(w, "ok")
	})
	for range 3 {
		require.NoError(t, a.Read(t.Context(), "/readyz", nil))
	}
	assert.Len(t, from, 1)
}

func TestWhyThereIsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		body string
		want string
	}{
		"an object of Kubernetes": {403, `{"kind":"Status","message":"nodes is forbidden"}`, "the API server answers 403: nodes is forbidden"},
		"words":                   {500, "[-]etcd failed\n", "the API server answers 500: [-]etcd failed"},
		"nothing":                 {401, "", "the API server answers 401: Unauthorized"},
		"a page of a proxy":       {502, "<html>", "the API server answers 502: Bad Gateway"},
		"an object without words": {503, `{"kind":"Status"}`, "the API server answers 503: Service Unavailable"},
		"more than is read":       {429, `{"message":"` + strings.Repeat("x", 5<<10) + `"}`, "the API server answers 429: Too Many Requests"},
		"no text":                 {400, "\xff\xfebad", "the API server answers 400: bad"},
		"another place":           {302, "", "the API server answers 302: Found"},
	} {
		a := server(t, func(w http.ResponseWriter, r *http.Request) {
			assert.NotEqual(t, "/elsewhere", r.URL.Path, "the token isn't taken there")
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(c.code)
			fmt.Fprint(w, c.body)
		})
		err := a.Read(t.Context(), "/?secret=1", nil)
		var status *StatusError
		require.ErrorAs(t, err, &status, name)
		assert.Equal(t, c.code, status.Code, name)
		assert.Equal(t, c.want, err.Error(), name)
	}
}

func TestWhatIsMissingIsNamedAndTheTokenNever(t *testing.T) {
	a := server(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{") })
	require.Error(t, a.Read(t.Context(), "/", &struct{}{}), "half an answer")
	gone := &API{URL: "https://127.0.0.1:1", Folder: a.Folder}
	err := gone.Read(t.Context(), "/api?long=query", nil)
	require.ErrorContains(t, err, "https://127.0.0.1:1: ")
	assert.NotContains(t, err.Error(), "query")
	assert.NotContains(t, err.Error(), "first")
	for _, name := range []string{"token", "ca.crt"} {
		require.NoError(t, os.Remove(filepath.Join(a.Folder, name)))
		err := a.Read(t.Context(), "/", nil)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, name)
	}
}

func TestOnlyAPodHasAnAPI(t *testing.T) {
	_, err := InCluster(func(string) string { return "" }, "", "")
	require.ErrorContains(t, err, "KUBERNETES_SERVICE_HOST")
	a, err := InCluster(func(k string) string {
		return map[string]string{"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}[k]
	}, Folder, "x")
	require.NoError(t, err)
	assert.Equal(t, "https://[fd00::1]:443", a.URL)
	a.Close() // before it was ever used
}
