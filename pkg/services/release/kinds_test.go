package release

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

func TestAChartBringsItsOwnKinds(t *testing.T) {
	w := newWorld(t)
	definition := func(name string) string {
		return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + name + `s.test.paictl.example}
spec:
  group: test.paictl.example
  scope: Namespaced
  names: {kind: ` + strings.ToUpper(name[:1]) + name[1:] + `, plural: ` + name + `s, singular: ` + name + `, listKind: ` + name + `List}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	}
	chart := load(t, map[string]string{
		"crds/thing.yaml":       definition("thing"),
		"templates/widget.yaml": definition("widget"),
		"templates/one.yaml":    "apiVersion: test.paictl.example/v1\nkind: Thing\nmetadata: {name: one}\nspec: {size: 1}\n",
		"templates/two.yaml":    "apiVersion: test.paictl.example/v1\nkind: Widget\nmetadata: {name: two}\nspec: {size: 1}\n",
	})
	r := Request{Name: "demo", Namespace: w.namespace, Chart: chart}
	plan, err := w.manager.Plan(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, plan.Changes, 4)
	assert.Equal(t, Change{Action: Create, Object: "CustomResourceDefinition things.test.paictl.example"}, plan.Changes[0])
	assert.Equal(t, Installed, w.apply(r).Action)
	assert.Equal(t, Unchanged, w.apply(r).Action)

	// A manually changed custom resource is also restored.
	thing := w.thing(t)
	require.NoError(t, unstructured.SetNestedField(thing.Object, int64(9), "spec", "size"))
	_, err = w.things().Update(t.Context(), thing, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.Equal(t, Repaired, w.apply(r).Action)
	size, _, _ := unstructured.NestedInt64(w.thing(t).Object, "spec", "size")
	assert.Equal(t, int64(1), size)

	// An uninstall succeeds even if the definitions and all of their objects were deleted.
	for _, name := range []string{"things", "widgets"} {
		w.dropDefinition(name + ".test.paictl.example")
	}
	// A repair succeeds even if the definitions and all of their objects were deleted.
	w.manager = manager(t, w.cluster)
	assert.Equal(t, Repaired, w.apply(r).Action)
	w.thing(t)
	w.dropDefinition("things.test.paictl.example")
	require.NoError(t, manager(t, w.cluster).Uninstall(t.Context(), w.namespace, "demo"))
}

func (w world) things() dynamic.ResourceInterface {
	w.Helper()
	d, err := dynamic.NewForConfig(w.cluster.Config)
	require.NoError(w, err)
	return d.Resource(schema.GroupVersionResource{Group: "test.paictl.example", Version: "v1", Resource: "things"}).Namespace(w.namespace)
}

func (w world) thing(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	one, err := w.things().Get(t.Context(), "one", metav1.GetOptions{})
	require.NoError(t, err)
	return one
}

// dropDefinition deletes a definition and waits until the API no longer serves the kind.
func (w world) dropDefinition(name string) {
	w.Helper()
	d, err := dynamic.NewForConfig(w.cluster.Config)
	require.NoError(w, err)
	definitions := d.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	require.NoError(w, definitions.Delete(w.Context(), name, metav1.DeleteOptions{}))
	kind := strings.SplitN(name, ".", 2)[0]
	require.Eventually(w, func() bool {
		list, err := w.client.Discovery().ServerResourcesForGroupVersion("test.paictl.example/v1")
		if apierrors.IsNotFound(err) {
			return true
		}
		return err == nil && !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == kind })
	}, 30*time.Second, 50*time.Millisecond)
}
