package kubetest

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/openpai/paictl/test/tier"
)

// TestABorrowedServerIsAsItWasAtFirst borrows the only server of a pool twice, as two packages would do.
func TestABorrowedServerIsAsItWasAtFirst(t *testing.T) {
	tier.More(t, "an API server")
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	bundle := bundleFor(t, 0)
	go func() { ended <- Serve(ctx, dir, bundle, 1, func() { close(ready) }) }()
	defer func() {
		cancel()
		assert.NoError(t, <-ended)
	}()
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatal("the pool has ended: ", err)
	}
	require.ErrorIs(t, Serve(ctx, dir, bundle, 1, func() {}), syscall.EWOULDBLOCK, "a second pool in the folder")

	var one, two server
	require.NoError(t, one.borrow(ctx, dir))
	short, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	require.ErrorIs(t, two.borrow(short, dir), context.DeadlineExceeded, "it is lent")

	c := one.cluster.Client
	roles := c.RbacV1().ClusterRoles()
	view, err := roles.Get(ctx, "view", metav1.GetOptions{})
	require.NoError(t, err)
	rules := view.Rules
	view.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	_, err = roles.Update(ctx, view, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, roles.Delete(ctx, "edit", metav1.DeleteOptions{}))
	things := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "things"}
	objects := dynamic.NewForConfigOrDie(one.cluster.Config)
	_, err = objects.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).Create(ctx, definition(), metav1.CreateOptions{})
	require.NoError(t, err)
	thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Thing", "metadata": map[string]any{"name": "mine"}}}
	require.Eventually(t, func() bool {
		_, err := objects.Resource(things).Create(ctx, thing, metav1.CreateOptions{})
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	one.release()

	require.NoError(t, two.borrow(ctx, dir))
	defer two.release()
	c = two.cluster.Client
	view, err = c.RbacV1().ClusterRoles().Get(ctx, "view", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, rules, view.Rules)
	_, err = c.RbacV1().ClusterRoles().Get(ctx, "edit", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = dynamic.NewForConfigOrDie(two.cluster.Config).Resource(things).Get(ctx, "mine", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = os.Stat(filepath.Join(dir, "0", "first.json"))
	assert.NoError(t, err)
}

func definition() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "things.example.org"},
		"spec": map[string]any{
			"group": "example.org", "scope": "Cluster", "names": map[string]any{"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
}
