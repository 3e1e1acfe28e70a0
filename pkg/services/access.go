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

// accessSecrets creates the Secrets that services use to authenticate to each other. The configuration doesn't contain these Secrets. accessSecrets
// doesn't change complete Secrets, because running programs use their values.
func (r *run) accessSecrets(ctx context.Context) error {
	metrics, err := metricsAccess(rand.Text())
	if err != nil {
		return err
	}
	// The job controller also creates this token if the job controller is started without paictl. The scheduler may start first and read the same Secret.
	token := map[string][]byte{api.TokenKey: []byte(rand.Text())}
	alerts := map[string][]byte{access.TokenKey: []byte(rand.Text())}
	for name, data := range map[string]map[string][]byte{access.Secret: metrics, api.TokenSecret: token, access.AlertsSecret: alerts} {
		if err := r.makeSecret(ctx, name, data); err != nil {
			return err
		}
	}
	return nil
}

// metricsAccess returns the content of the Secret for metrics: a password, and Prometheus' web configuration with the hash of the password. The
// lowest cost of bcrypt keeps scrapes cheap. A low cost is safe because the password has 128 random bits.
func metricsAccess(password string) (map[string][]byte, error) {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		return nil, fmt.Errorf("hash the password of metrics: %w", err)
	}
	web := fmt.Sprintf("basic_auth_users:\n  %s: %s\n", access.User, hash)
	return map[string][]byte{access.KeyPassword: []byte(password), access.KeyWeb: []byte(web)}, nil
}

// makeSecret creates a Secret. If an existing Secret doesn't contain all keys, makeSecret replaces the data of the Secret.
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

func complete(have *corev1.Secret, keys map[string][]byte) bool {
	for key := range keys {
		if len(have.Data[key]) == 0 {
			return false
		}
	}
	return true
}
