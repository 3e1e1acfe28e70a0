package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Identity returns the UID of the namespace kube-system, which identifies a cluster, and the data of the ConfigMap notes in that namespace. If the
// ConfigMap doesn't exist, data is nil.
func Identity(ctx context.Context, c kubernetes.Interface, notes string) (uid string, data map[string]string, err error) {
	ns, err := c.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", nil, fmt.Errorf("ask which cluster it is: %w", err)
	}
	m, err := c.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, notes, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return string(ns.UID), nil, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("ask which cluster it is: %w", err)
	}
	return string(ns.UID), m.Data, nil
}
