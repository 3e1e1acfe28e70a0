package tls

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/crypto/acme/autocert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// ACMESecret has what a public authority gave: the account's key, and for each name a certificate with its key.
const ACMESecret = "web-acme"

// secretCache is autocert.Cache in one Secret. Each change is of one key, so that replicas don't undo each other's.
type secretCache struct{ client kubernetes.Interface }

// keyOf is the key of a name in the Secret. Names have letters that keys may not have; none has three dots.
func keyOf(name string) string { return strings.ReplaceAll(name, "+", "...") }

// Get implements autocert.Cache.
func (c *secretCache) Get(ctx context.Context, name string) ([]byte, error) {
	s, err := c.client.CoreV1().Secrets(Namespace).Get(ctx, ACMESecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, autocert.ErrCacheMiss
	}
	if err != nil {
		return nil, fmt.Errorf("read the Secret %s/%s: %w", Namespace, ACMESecret, err)
	}
	data, ok := s.Data[keyOf(name)]
	if !ok {
		return nil, autocert.ErrCacheMiss
	}
	return data, nil
}

// Put implements autocert.Cache.
func (c *secretCache) Put(ctx context.Context, name string, data []byte) error {
	err := c.patch(ctx, name, data)
	if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = c.client.CoreV1().Secrets(Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: ACMESecret, Namespace: Namespace}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{keyOf(name): data},
	}, metav1.CreateOptions{FieldManager: "paictl"})
	if apierrors.IsAlreadyExists(err) {
		return c.patch(ctx, name, data)
	}
	if err != nil {
		return fmt.Errorf("make the Secret %s/%s: %w", Namespace, ACMESecret, err)
	}
	return nil
}

// Delete implements autocert.Cache.
func (c *secretCache) Delete(ctx context.Context, name string) error {
	if err := c.patch(ctx, name, nil); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// patch sets a key, or takes it away where data is nil.
func (c *secretCache) patch(ctx context.Context, name string, data []byte) error {
	body, err := json.Marshal(map[string]any{"data": map[string][]byte{keyOf(name): data}})
	if err != nil {
		return err
	}
	if _, err := c.client.CoreV1().Secrets(Namespace).Patch(ctx, ACMESecret, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "paictl"}); err != nil {
		return fmt.Errorf("write the Secret %s/%s: %w", Namespace, ACMESecret, err)
	}
	return nil
}
