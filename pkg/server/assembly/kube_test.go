package assembly_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
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
			assert.Equal(t, want, h.Ask("GET", "/api/v2/kubernetes/"+kind, made.Token.Reveal(), "").Status, "%s with %s", kind, scope)
			assert.Equal(t, 403, h.as("ann", "GET", "/api/v2/kubernetes/"+kind, "").Status)
		}
	}
	for _, path := range []string{"/healthz", "/api/v2/healthz", "/api/v1/healthz/"} {
		a := h.Ask("GET", path, "", "")
		assert.Equal(t, "Pylon ready.", a.Body, path)
	}
}
