package services

import (
	"context"
	"crypto/rand"
	"fmt"

	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube"
)

// accessSecrets creates the Secrets that the services need to authenticate to each other. No configuration contains these Secrets. Complete Secrets
// aren't changed, because running programs use their values.
func (r *run) accessSecrets(ctx context.Context) error {
	metrics, err := metricsAccess(rand.Text())
	if err != nil {
		return err
	}
	// If the job controller is started without paictl, it creates this token itself. The scheduler, which may start first, reads the same Secret.
	token := map[string][]byte{api.TokenKey: []byte(rand.Text())}
	alerts := map[string][]byte{access.TokenKey: []byte(rand.Text())}
	for name, data := range map[string]map[string][]byte{access.Secret: metrics, api.TokenSecret: token, access.AlertsSecret: alerts} {
		if err := r.makeSecret(ctx, name, data); err != nil {
			return err
		}
	}
	return nil
}

// metricsAccess returns the content of the Secret for metrics: a password, and Prometheus' web configuration with its hash. The password has 128
// random bits, so it doesn't need an expensive hash. The lowest cost of bcrypt keeps scrapes cheap.
func metricsAccess(password string) (map[string][]byte, error) {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		return nil, fmt.Errorf("hash the password of metrics: %w", err)
	}
	web := fmt.Sprintf("basic_auth_users:\n  %s: %s\n", access.User, hash)
	return map[string][]byte{access.KeyPassword: []byte(password), access.KeyWeb: []byte(web)}, nil
}

// makeSecret creates a Secret. If the Secret exists without some of the keys, makeSecret replaces its data.
func (r *run) makeSecret(ctx context.Context, name string, data map[string][]byte) error {
	secrets, object := r.Client.CoreV1().Secrets(kube.SystemNamespace), "Secret "+kube.SystemNamespace+"/"+name
	have, err := secrets.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		want := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: kube.SystemNamespace, Labels: map[string]string{labelPartOf: manager}},
			Type: corev1.SecretTypeOpaque, Data: data}
		if _, err := secrets.Create(ctx, want, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make the %s: %w", object, err)
		}
		r.tell("", "create", object)
		return nil
	case err != nil:
		return fmt.Errorf("read the %s: %w", object, err)
	case complete(have, data):
		return nil
	}
	have.Data = data
	if _, err := secrets.Update(ctx, have, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update the %s: %w", object, err)
	}
	r.tell("", "update", object)
	return nil
}

// complete reports whether a Secret has a value under each key.
func complete(have *corev1.Secret, keys map[string][]byte) bool {
	for key := range keys {
		if len(have.Data[key]) == 0 {
			return false
		}
	}
	return true
}
