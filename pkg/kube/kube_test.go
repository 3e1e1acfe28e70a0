package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
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
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.o)
			require.ErrorContains(t, err, c.message)
			assert.NotEmpty(t, hint.Of(err), "there is no remedy")
		})
	}
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

func TestAnUntrustedCertificateIsRefusedWithTheClustersName(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	srv.Config.ErrorLog = nil
	k, err := Open(Options{Kubeconfig: kubeconfig(t, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`, srv.URL))})
	require.NoError(t, err)
	_, err = k.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	err = k.Explain(err)
	require.ErrorContains(t, err, "certificate")
	require.ErrorContains(t, err, "the cluster of context c")
}
