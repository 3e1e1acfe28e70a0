package kube

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openpai/paictl/pkg/hint"
)

const twoContexts = `apiVersion: v1
kind: Config
current-context: %s
clusters:
- {name: one, cluster: {server: "https://one.example:6443"}}
- {name: two, cluster: {server: "https://two.example:6443"}}
users:
- {name: admin, user: {token: opaque}}
contexts:
- {name: one, context: {cluster: one, user: admin}}
- {name: two, context: {cluster: two, user: admin}}
- {name: torn, context: {cluster: gone, user: admin}}
`

func kubeconfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestOpenUsesTheContextThatIsAskedForAndNoOther(t *testing.T) {
	file := kubeconfig(t, fmt.Sprintf(twoContexts, "one"))
	for _, c := range []struct{ context, server string }{
		{"", "https://one.example:6443"},
		{"two", "https://two.example:6443"},
	} {
		k, err := Open(Options{Kubeconfig: file, Context: c.context})
		require.NoError(t, err)
		assert.Equal(t, c.server, k.Server)
		assert.Len(t, k.Raw.Contexts, 1, "the kubeconfig handed on names one cluster only")
		assert.Len(t, k.Raw.Clusters, 1)
		assert.Equal(t, k.Context, k.Raw.CurrentContext)
	}
	assert.Equal(t, []string{"one", "torn", "two"}, Contexts(Options{Kubeconfig: file}))
}

func TestOpenSaysWhatIsWrongWithAKubeconfig(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		o       Options
		message string
	}{
		"a missing file":          {Options{Kubeconfig: filepath.Join(dir, "none")}, "there is no kubeconfig " + filepath.Join(dir, "none")},
		"an unknown context":      {Options{Kubeconfig: kubeconfig(t, fmt.Sprintf(twoContexts, "one")), Context: "three"}, `has no context "three"`},
		"no current context":      {Options{Kubeconfig: kubeconfig(t, fmt.Sprintf(twoContexts, `""`))}, "has no current context"},
		"a context without house": {Options{Kubeconfig: kubeconfig(t, fmt.Sprintf(twoContexts, "torn"))}, `names a cluster "gone"`},
		"an empty file":           {Options{Kubeconfig: kubeconfig(t, "apiVersion: v1\nkind: Config\n")}, "names no cluster"},
		"not YAML":                {Options{Kubeconfig: kubeconfig(t, "{{")}, "is not a kubeconfig"},
		"another text":            {Options{Kubeconfig: kubeconfig(t, "garbage")}, "is not a kubeconfig"},
		"no file of an authority": {Options{Kubeconfig: oneContext(t, "https://h", "certificate-authority: nope.crt", "")}, "names a file that can't be read: open "},
		"no client certificate":   {Options{Kubeconfig: oneContext(t, "https://h", "", "client-certificate: a.crt, client-key: a.key")}, "names a file that can't be read: open "},
		"an authority in no PEM":  {Options{Kubeconfig: oneContext(t, "https://h", "certificate-authority-data: YQ==", "")}, "read the kubeconfig "},
		"an old form of a plugin": {Options{Kubeconfig: oneContext(t, "https://h", "", "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}")}, "read the kubeconfig "},
		"a former way to sign in": {Options{Kubeconfig: oneContext(t, "https://h", "", "auth-provider: {name: gcp}")}, "read the kubeconfig "},
		"another protocol":        {Options{Kubeconfig: oneContext(t, "ftp://ann:geheim@h", "", "")}, "has a server that isn't reached over https: ftp://********@h"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.o)
			require.ErrorContains(t, err, c.message)
			assert.NotEmpty(t, hint.Of(err), "there is no remedy")
		})
	}
}

func TestAVariableThatNamesNoFileIsNamed(t *testing.T) {
	for _, value := range []string{"nowhere", ":"} {
		t.Setenv("KUBECONFIG", value)
		_, err := Open(Options{})
		require.EqualError(t, err, "there is no kubeconfig "+value+" (KUBECONFIG)")
		assert.NotEmpty(t, hint.Of(err))
	}
}

// oneContext writes a kubeconfig with one context, and with further fields of the cluster and of the user. It returns the path of the file.
func oneContext(t *testing.T, server, cluster, user string) string {
	t.Helper()
	return kubeconfig(t, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, users: [{name: u, user: {%s}}],
clusters: [{name: c, cluster: {server: %q, %s}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`, user, server, cluster))
}

func TestAMistakeInTheConnectionIsNotSilence(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<html>")
	})
	quiet := func(s *httptest.Server) *httptest.Server {
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(s.Close)
		return s
	}
	safe, plain := quiet(httptest.NewTLSServer(page)), quiet(httptest.NewServer(page))
	trusted := "certificate-authority-data: " + base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: safe.Certificate().Raw}))
	plugin := "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: %q}"
	for name, c := range map[string]struct{ server, cluster, user, message, remedy string }{
		"another authority":       {safe.URL, "", "", "has a certificate that the authority in the kubeconfig didn't sign", "paictl cluster kubeconfig"},
		"another name":            {safe.URL, trusted + ", tls-server-name: other.invalid", "", "has a certificate for other names", "correct the address"},
		"https to a plain server": {strings.Replace(plain.URL, "http", "https", 1), "", "", "doesn't answer over https", "correct the address and the port"},
		"http to a safe server":   {strings.Replace(safe.URL, "https", "http", 1), "", "", "the cluster of context c", "write https://"},
		"a web page":              {plain.URL, "", "", "a web page was answered", "check the address"},
		"no plugin":               {safe.URL, trusted, fmt.Sprintf(plugin, "no-such-plugin"), "exec: executable no-such-plugin not found", "install or repair the program"},
		"a plugin that fails":     {safe.URL, trusted, fmt.Sprintf(plugin, "false"), "exec: executable false failed with exit code 1", "install or repair the program"},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := Open(Options{Kubeconfig: oneContext(t, c.server, c.cluster, c.user)})
			require.NoError(t, err)
			_, err = k.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			err = k.Explain(err)
			require.ErrorContains(t, err, c.message)
			assert.NotContains(t, err.Error(), "does not answer")
			assert.NotContains(t, err.Error(), "\n")
			assert.Contains(t, hint.Of(err), c.remedy)
		})
	}
}

func TestAPageBehindTheProxyOfServicesIsAnAnswer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html>")
	}))
	defer srv.Close()
	k, err := Open(Options{Kubeconfig: oneContext(t, srv.URL, "", "")})
	require.NoError(t, err)
	body, err := k.Client.CoreV1().Services("n").ProxyGet("http", "grafana", "http", "/", nil).DoRaw(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "<html>", string(body))
}

func TestExplainSaysWhichClusterAndWhatToDo(t *testing.T) {
	k := &Cluster{Context: "lab", Server: "https://10.0.0.1:6443"}
	refused := &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/api", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	for name, c := range map[string]struct {
		err     error
		message string
	}{
		"refused":      {fmt.Errorf("list nodes: %w", refused), "the cluster of context lab (https://10.0.0.1:6443) does not answer"},
		"unauthorized": {apierrors.NewUnauthorized("no"), "does not accept these credentials"},
		"forbidden":    {apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no")), "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			err := k.Explain(c.err)
			require.ErrorContains(t, err, c.message)
			assert.NotEmpty(t, hint.Of(err))
		})
	}
	require.NoError(t, k.Explain(nil))
	plain := errors.New("else")
	assert.Equal(t, plain, k.Explain(plain))
	assert.ErrorIs(t, k.Explain(context.Canceled), context.Canceled)
}

func TestKubernetesKindsAreAskedForAsProtobuf(t *testing.T) {
	accepts, sent := "", ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepts, sent = r.Header.Get("Accept"), r.Header.Get("Content-Type")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "n"}}`)
	}))
	defer srv.Close()
	k, err := Open(Options{Kubeconfig: kubeconfig(t, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`, srv.URL))})
	require.NoError(t, err)
	got, err := k.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{}, metav1.CreateOptions{})
	require.NoError(t, err, "a server without protobuf answers in JSON")
	assert.Equal(t, "n", got.Name)
	assert.Equal(t, "application/vnd.kubernetes.protobuf,application/json", accepts)
	assert.Equal(t, "application/json", sent)
}
