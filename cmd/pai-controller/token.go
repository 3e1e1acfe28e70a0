package main

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/framework/api"
)

// token reads the Secret with what opens an API: the controller's own, or that of the agents that keep
// logs. It is made once, and all replicas share it; who may read the Secret may ask.
func token(ctx context.Context, config *rest.Config, namespace, name string) (string, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("connect to the API server: %w", err)
	}
	secrets := client.CoreV1().Secrets(namespace)
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{api.TokenKey: []byte(rand.Text())}}
	have, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		have, err = secrets.Create(ctx, made, metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) { // by another replica
		have, err = secrets.Get(ctx, name, metav1.GetOptions{})
	}
	if err != nil {
		return "", fmt.Errorf("read the token %s: %w", name, err)
	}
	if len(have.Data[api.TokenKey]) == 0 {
		return "", fmt.Errorf("the Secret %s/%s has no %s: delete it, and a new one is made", namespace, name, api.TokenKey)
	}
	return string(have.Data[api.TokenKey]), nil
}
