package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openpai/paictl/pkg/job/api"
)

// token is the token for the controller's API, or for the API of the agents that store logs. The token is stored in a
// Secret that only one replica creates, so all replicas have the same token. Users who may read the Secret may use the
// API.
type token struct {
	secrets typed.SecretInterface
	name    string
	value   atomic.Pointer[string]
}

func newToken(secrets typed.SecretInterface, name string) *token {
	return &token{secrets: secrets, name: name}
}

// Value returns the token, or "" if it hasn't been read yet.
func (t *token) Value() string {
	if v := t.value.Load(); v != nil {
		return *v
	}
	return ""
}

// read reads the token from its Secret. If the Secret doesn't exist, read creates it.
func (t *token) read(ctx context.Context) error {
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: t.name}, Data: map[string][]byte{api.TokenKey: []byte(rand.Text())}}
	have, err := t.secrets.Get(ctx, t.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		have, err = t.secrets.Create(ctx, made, metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) { // another replica created it
		have, err = t.secrets.Get(ctx, t.name, metav1.GetOptions{})
	}
	if err != nil {
		return fmt.Errorf("read the token %s: %w", t.name, err)
	}
	v := string(have.Data[api.TokenKey])
	if v == "" {
		return fmt.Errorf("the Secret %s has no %s: delete it, and a new one is made", t.name, api.TokenKey)
	}
	t.value.Store(&v)
	return nil
}
