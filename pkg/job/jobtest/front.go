// Package jobtest puts a proxy in front of a test's API server, and serves the requests to services that Kubernetes' service proxy would forward.
// In: a real API server, handlers for the job controller and the scheduler. Out: a kubeconfig for a server that behaves as if both ran in the
// cluster.
package jobtest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/templates"
)

// Services are the handlers for requests to services, by the names of the services. Requests to a service without a handler go to the API server.
type Services map[string]http.Handler

// TakesRecords responds like a job controller that accepts audit records. It reports whether the request was for this; if not, it doesn't
// respond.
func TakesRecords(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/v1/audit" || r.Method != http.MethodPost {
		return false
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// RefusesLists responds to a request for live jobs like an older job controller, which can't list them. It reports whether the request was for
// live jobs; if not, it doesn't respond.
func RefusesLists(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/v1/jobs" || !r.URL.Query().Has("live") {
		return false
	}
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write([]byte(`{"code":"BadRequest","message":"bad query: there is no parameter \"live\""}`))
	return true
}

// Front serves the proxy for an API server, and returns a kubeconfig for it that paictl commands can use.
func Front(t testing.TB, c *kube.Cluster, services Services) string {
	t.Helper()
	h, err := Handler(c.Config, services)
	require.NoError(t, err)
	return Kubeconfig(t, h)
}

// Kubeconfig serves a handler, and returns the name of a kubeconfig file for the server.
func Kubeconfig(t testing.TB, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: test, clusters: [{name: test, cluster: {server: %q}}], users: [{name: test, user: {}}], contexts: [{name: test, context: {cluster: test, user: test}}]}\n", srv.URL)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// Handler returns the proxy for an API server as a handler.
func Handler(config *rest.Config, services Services) (http.Handler, error) {
	to, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	forward := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	const before = "/api/v1/namespaces/" + kube.SystemNamespace + "/services/"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, before); ok {
			name, path, _ := strings.Cut(rest, "/proxy/")
			name, _, _ = strings.Cut(name, ":")
			if h := services[name]; h != nil {
				r.URL.Path, r.URL.RawPath = "/"+path, ""
				h.ServeHTTP(w, r)
				return
			}
		}
		forward.ServeHTTP(w, r)
	}), nil
}

// Prepare creates the objects that jobs need in an empty cluster: the resource type Framework, the namespaces, and the objects of the job
// controller's chart. It may be called repeatedly.
func Prepare(t testing.TB, c *kube.Cluster) {
	t.Helper()
	ctx := t.Context()
	fine := func(err error) {
		t.Helper()
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
	for _, name := range []string{kube.SystemNamespace, kube.JobNamespace} {
		_, err := c.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		fine(err)
	}
	// The controller that creates service accounts doesn't run in tests, and without a service account no pod can be created.
	_, err := c.Client.CoreV1().ServiceAccounts(kube.JobNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	fine(err)
	crds, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(templates.JobDefinition, &crd.Object))
	resource := crds.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	_, err = resource.Create(ctx, crd, metav1.CreateOptions{})
	fine(err)
	require.NoError(t, wait.PollUntilContextTimeout(ctx, pollEvery, pollFor, true, func(ctx context.Context) (bool, error) {
		_, err := crds.Resource(v1.Resource).Namespace(kube.JobNamespace).List(ctx, metav1.ListOptions{})
		return err == nil, nil
	}))
	_, err = c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: api.ConfigMap},
		Data: map[string]string{"runtime-image": "pai-runtime:test", "dns-domain": "cluster.local", "job-namespace": kube.JobNamespace, "code-url": "http://job-controller/v1/code", "peers-url": "http://job-controller/v1/peers"}}, metav1.CreateOptions{})
	fine(err)
	_, err = c.Client.CoreV1().Secrets(kube.SystemNamespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: api.TokenSecret},
		StringData: map[string]string{api.TokenKey: Token}}, metav1.CreateOptions{})
	fine(err)
	_, err = c.Client.CoreV1().Secrets(kube.SystemNamespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: api.AuditTokenSecret},
		StringData: map[string]string{api.TokenKey: AuditToken}}, metav1.CreateOptions{})
	fine(err)
}
