package assembly_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	"github.com/openpai/paictl/pkg/server/servertest"
)

func TestKubernetesListsAreForAdministrators(t *testing.T) {
	h := newHouse(t)
	ask := h.asker(t)
	for i := range 3 {
		_, err := h.cluster.Client.CoreV1().Pods(kube.JobNamespace).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "listed-" + strconv.Itoa(i), Labels: map[string]string{"app": "listed", "n": strconv.Itoa(i)}, Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "TOP-SECRET"}},
			Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "first", Image: "busybox:1", Env: []corev1.EnvVar{{Name: "KEY", Value: "TOP-SECRET"}}}},
				Containers: []corev1.Container{{Name: "main", Image: "busybox:1", Env: []corev1.EnvVar{{Name: "KEY", Value: "TOP-SECRET"}}}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	nodes := corev1.NodeList{}
	a := h.as("root", "GET", "/api/v2/kubernetes/nodes", "")
	a.Into(&nodes)
	assert.Equal(t, "NodeList", nodes.Kind)
	require.GreaterOrEqual(t, len(nodes.Items), 2)
	assert.NotContains(t, a.Body, "managedFields")

	count := func(query string) int {
		t.Helper()
		list := corev1.PodList{}
		a := h.as("root", "GET", "/api/v1/kubernetes/pods?"+query, "")
		require.Equal(t, 200, a.Status, a.Body)
		a.Into(&list)
		assert.Equal(t, "PodList", list.Kind)
		assert.NotContains(t, a.Body, "TOP-SECRET")
		return len(list.Items)
	}
	assert.Equal(t, 3, count("namespace=pai-jobs&labelSelector=app"))
	assert.Equal(t, 3, count("labelSelector=app=listed"), "of all namespaces")
	assert.Equal(t, 0, count("namespace=default&labelSelector=app%3Dlisted"))
	assert.Equal(t, 1, count("labelSelector=app=listed,n=2"))
	assert.Equal(t, 1, count("labelSelector=app&fieldSelector=metadata.name=listed-0"))
	assert.Equal(t, 2, count("labelSelector=app&limit=2&watch=true&pretty=true&resourceVersion=99999999999"), "what is not in the list of parameters goes nowhere")
	first := corev1.PodList{}
	h.as("root", "GET", "/api/v2/kubernetes/pods?labelSelector=app&limit=2", "").Into(&first)
	assert.Equal(t, 1, count("labelSelector=app&limit=2&continue="+first.Continue))

	for _, bad := range []string{"labelSelector=a%3D%3D%3D", "fieldSelector=%21", "limit=-1", "limit=5000", "limit=x", "namespace=..%2Fkube-system", "namespace=A", "continue=none", "fieldSelector=spec.secret%3Dx"} {
		ask("root", "GET", "/kubernetes/pods?"+bad, "", 400, "InvalidParametersError")
	}
	root, err := h.People.Person("root")
	require.NoError(t, err)
	for scope, want := range map[rules.Scope]int{rules.ScopeRead: 403, rules.ScopeSubmit: 403, rules.ScopeSecrets: 403, rules.ScopeAdmin: 200} {
		made, err := h.Tokens.Application(t.Context(), root, token.New{Scopes: []rules.Scope{scope}})
		require.NoError(t, err)
		for _, kind := range []string{"nodes", "pods"} {
			assert.Equal(t, want, h.Do("GET", "/api/v2/kubernetes/"+kind, made.Token.Reveal(), "").Status, "%s with %s", kind, scope)
			assert.Equal(t, 403, h.as("ann", "GET", "/api/v2/kubernetes/"+kind, "").Status)
		}
	}
	for _, path := range []string{"/healthz", "/api/v2/healthz", "/api/v1/healthz/"} {
		a := h.Do("GET", path, "", "")
		assert.Equal(t, "Pylon ready.", a.Body, path)
	}
}

func TestListsOfKubernetesAreWholeForClientsThatKnowOfNoParts(t *testing.T) {
	base := newHouse(t)
	// In this test, each page of the API server's lists contains two objects instead of a thousand.
	to := mustParse(t, base.cluster.Config.Host)
	through, err := rest.TransportFor(base.cluster.Config)
	require.NoError(t, err)
	var asked, fails atomic.Int32
	fails.Store(1000)
	pass := &httputil.ReverseProxy{Transport: through, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		if q := r.Out.URL.Query(); q.Get("limit") == "1000" {
			q.Set("limit", "2")
			r.Out.URL.RawQuery = q.Encode()
		}
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") == "1000" && asked.Add(1) >= fails.Load() {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGone)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	h := houseOn(t, base.cluster, servertest.Options{API: func(c *rest.Config) { *c = rest.Config{Host: front.URL, QPS: 200, Burst: 400} }})

	for i := range 10 {
		app, notes := "part", map[string]string{}
		if i >= 5 {
			app, notes["text"] = "wide", strings.Repeat("x", 40<<10) // more than is buffered before an answer begins
		}
		_, err := base.cluster.Client.CoreV1().Pods(kube.JobNamespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: app + "-" + strconv.Itoa(i), Labels: map[string]string{"app": app}, Annotations: notes},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox:1", Env: []corev1.EnvVar{{Name: "KEY", Value: "TOP-SECRET"}}}}}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	const path = "/api/v2/kubernetes/pods?labelSelector=app%3Dpart"
	a := h.as("root", "GET", path, "")
	require.Equal(t, 200, a.Status, a.Body)
	assert.Equal(t, "application/json", a.Header.Get("Content-Type"))
	assert.EqualValues(t, 3, asked.Load())
	list := corev1.PodList{}
	a.Into(&list)
	assert.Equal(t, metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, list.TypeMeta)
	assert.NotEmpty(t, list.ResourceVersion)
	assert.Empty(t, list.Continue, "nothing is left")
	names := []string{}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	assert.Equal(t, []string{"part-0", "part-1", "part-2", "part-3", "part-4"}, names)
	assert.NotContains(t, a.Body, "TOP-SECRET", "in no part")
	nodes := corev1.NodeList{}
	a = h.as("root", "GET", "/api/v2/kubernetes/nodes", "")
	a.Into(&nodes)
	assert.GreaterOrEqual(t, len(nodes.Items), 2)
	assert.Equal(t, "NodeList", nodes.Kind)
	a = h.as("root", "GET", path+"&limit=3", "")
	list = corev1.PodList{}
	a.Into(&list)
	assert.Len(t, list.Items, 3, "as many as were asked for")
	assert.NotEmpty(t, list.Continue)

	fails.Store(asked.Load() + 2)
	a = h.as("root", "GET", path, "")
	assert.Equal(t, 503, a.Status, a.Body)
	assert.NotContains(t, a.Body, "continue", "the client has sent none")

	// If the rest of a list can't be read, clients must not mistake the response for the whole list.
	fails.Store(asked.Load() + 2)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+strings.Replace(path, "part", "wide", 1), nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+h.tokens["root"])
	resp, err := h.Client.Do(r)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	assert.Error(t, err)
}
