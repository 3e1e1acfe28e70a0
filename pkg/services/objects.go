package services

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/facts"
	"github.com/openpai/paictl/pkg/services/release"
)

// These are labels of objects that paictl creates outside of releases.
const (
	labelPartOf    = facts.LabelPartOf
	labelManagedBy = facts.LabelManagedBy
	labelInstance  = "app.kubernetes.io/instance"
	manager        = facts.Manager
	// annotationRevision is an annotation of a Secret. The value is a random string that changes with the data. The revision can be used in places where
	// the data must not be visible.
	annotationRevision = "paictl.openpai.org/revision"
)

// ownLabels returns the labels of paictl's own objects. If service isn't "", the labels include the service.
func ownLabels(service string) map[string]string {
	out := map[string]string{labelPartOf: manager, labelManagedBy: manager}
	if service != "" {
		out[labelInstance] = service
	}
	return out
}

// ensureNamespace creates a namespace if it doesn't exist.
func (r *run) ensureNamespace(ctx context.Context, name string) error {
	_, err := r.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return wrap(err, "read the namespace "+name)
	}
	if name == kube.SystemNamespace { // this namespace has labels, which package store sets
		err = store.EnsureNamespace(ctx, r.Client)
	} else {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ownLabels("")}}
		_, err = r.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the namespace %s: %w", name, err)
	}
	r.tell("", "create", "Namespace "+name)
	return nil
}

// tell reports a change of an object that doesn't belong to a release.
func (r *run) tell(service, action, object string) {
	r.count(service, 1)
	r.emit(Event{Kind: EventChanged, Service: service, Message: action + " " + object})
}

// credentials returns the Secret with a service's credentials, or nil if no credentials exist.
func credentials(s *catalogue.Service) *corev1.Secret {
	if len(s.Credentials) == 0 {
		return nil
	}
	out := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: s.CredentialsName(), Namespace: s.Namespace, Labels: ownLabels(s.Name)},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{},
	}
	for path, value := range s.Credentials {
		out.Data[path] = []byte(value.Reveal())
	}
	return out
}

// pullSecret returns the Secret for pulling images, or nil if the registry requires no login.
func pullSecret(c *config.Cluster, namespace string) (*corev1.Secret, error) {
	reg := c.Services.Cluster.DockerRegistry
	if reg.Username == "" {
		return nil, nil
	}
	host := reg.Domain
	if host == "docker.io" {
		host = "https://index.docker.io/v1/" // all programs look up Docker Hub under this name
	}
	login := base64.StdEncoding.EncodeToString([]byte(reg.Username + ":" + reg.Password.Reveal()))
	data, err := json.Marshal(map[string]any{"auths": map[string]any{
		host: map[string]string{"username": reg.Username, "password": reg.Password.Reveal(), "auth": login},
	}})
	if err != nil {
		return nil, fmt.Errorf("write the pull secret: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: pullSecretName(c), Namespace: namespace, Labels: ownLabels("")},
		Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: data},
	}, nil
}

func pullSecretName(c *config.Cluster) string {
	if n := c.Services.Cluster.DockerRegistry.SecretName; n != "" {
		return n
	}
	return "pai-secret"
}

// secretChange returns the change that keepSecret would make, and the current Secret. The change is nil if the Secret is up to date. The change
// doesn't contain the data.
func (r *run) secretChange(ctx context.Context, want *corev1.Secret) (*release.Change, *corev1.Secret, error) {
	object := "Secret " + want.Namespace + "/" + want.Name
	have, err := r.Client.CoreV1().Secrets(want.Namespace).Get(ctx, want.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &release.Change{Action: "create", Object: object}, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("read the %s: %w", object, err)
	case sameSecret(have, want):
		return nil, have, nil
	}
	return &release.Change{Action: "update", Object: object}, have, nil
}

// keepSecret writes a Secret if it differs from want, and returns the revision of the data.
func (r *run) keepSecret(ctx context.Context, service string, want *corev1.Secret) (string, error) {
	change, have, err := r.secretChange(ctx, want)
	if err != nil {
		return "", err
	}
	if change == nil {
		return have.Annotations[annotationRevision], nil
	}
	want.Annotations = map[string]string{annotationRevision: rand.Text()}
	api := r.Client.CoreV1().Secrets(want.Namespace)
	switch {
	case have == nil:
		_, err = api.Create(ctx, want, metav1.CreateOptions{})
	case have.Type != want.Type: // the type of a Secret can't be changed
		if err = api.Delete(ctx, want.Name, metav1.DeleteOptions{}); err == nil {
			_, err = api.Create(ctx, want, metav1.CreateOptions{})
		}
	default:
		next := have.DeepCopy()
		next.Data = want.Data
		next.Labels = merged(have.Labels, want.Labels)
		next.Annotations = merged(have.Annotations, want.Annotations)
		_, err = api.Update(ctx, next, metav1.UpdateOptions{})
	}
	if err != nil {
		return "", fmt.Errorf("%s the %s: %w", change.Action, change.Object, err)
	}
	r.tell(service, change.Action, change.Object)
	if have != nil && service != "" {
		r.mu.Lock()
		r.replaced[service] = have
		r.mu.Unlock()
	}
	return want.Annotations[annotationRevision], nil
}

// putBack restores a service's previous credentials. Otherwise pods of an earlier revision wouldn't work if the new credentials are wrong.
func (r *run) putBack(ctx context.Context, service string) {
	r.mu.Lock()
	was := r.replaced[service]
	r.mu.Unlock()
	if was == nil {
		return
	}
	api := r.Client.CoreV1().Secrets(was.Namespace)
	now, err := api.Get(ctx, was.Name, metav1.GetOptions{})
	if err == nil {
		now.Data, now.Annotations = was.Data, was.Annotations
		_, err = api.Update(ctx, now, metav1.UpdateOptions{})
	}
	if err != nil {
		r.warn(fmt.Sprintf("the credentials of %s could not be put back: %v", service, err), hint.Of(err))
	}
}

// dropSecret removes a Secret if paictl created the Secret.
func (r *run) dropSecret(ctx context.Context, namespace, name string) error {
	api := r.Client.CoreV1().Secrets(namespace)
	have, err := api.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && have.Labels[labelManagedBy] != manager {
		return nil
	}
	if err == nil {
		err = api.Delete(ctx, name, metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the Secret %s/%s: %w", namespace, name, err)
	}
	return nil
}

func sameSecret(have, want *corev1.Secret) bool {
	for k, v := range want.Labels {
		if have.Labels[k] != v {
			return false
		}
	}
	return have.Type == want.Type && have.Annotations[annotationRevision] != "" && maps.EqualFunc(have.Data, want.Data, slices.Equal[[]byte])
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}

// pullSecrets writes the registry's credentials to the given namespaces, so that pods can pull images. pullSecrets skips the namespace of jobs if
// this namespace doesn't exist.
func (r *run) pullSecrets(ctx context.Context, namespaces []string) error {
	if r.desired.Config.Services.Cluster.DockerRegistry.Username == "" {
		return nil
	}
	for _, ns := range namespaces {
		if ns == kube.JobNamespace {
			_, err := r.Client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("read the namespace %s: %w", ns, err)
			}
		}
		want, err := pullSecret(r.desired.Config, ns)
		if err != nil {
			return err
		}
		if _, err := r.keepSecret(ctx, "", want); err != nil {
			return err
		}
	}
	return nil
}

func wrap(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
