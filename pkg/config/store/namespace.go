package store

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/kube"
)

const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "paictl"
)

// namespaceLabels returns the labels of kube.SystemNamespace. Its pods may be privileged, because the agents for metrics, volumes and drivers need
// access to the host. The API server warns a client that creates a pod beyond the level "restricted".
func namespaceLabels() map[string]string {
	return map[string]string{
		labelManagedBy:                       managedBy,
		"pod-security.kubernetes.io/enforce": "privileged",
		"pod-security.kubernetes.io/warn":    "restricted",
	}
}

// EnsureNamespace creates kube.SystemNamespace, or adds missing labels to the namespace. It keeps labels with another value, because an
// administrator may have chosen the value.
func EnsureNamespace(ctx context.Context, client kubernetes.Interface) error {
	api := client.CoreV1().Namespaces()
	want := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kube.SystemNamespace, Labels: namespaceLabels()}}
	_, err := api.Create(ctx, want, metav1.CreateOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the namespace %s: %w", kube.SystemNamespace, err)
	}
	have, err := api.Get(ctx, kube.SystemNamespace, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the namespace %s: %w", kube.SystemNamespace, err)
	}
	missing := namespaceLabels()
	for k := range have.Labels {
		delete(missing, k)
	}
	if len(missing) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": missing}})
	if err != nil {
		return err
	}
	if _, err := api.Patch(ctx, kube.SystemNamespace, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("label the namespace %s: %w", kube.SystemNamespace, err)
	}
	return nil
}
