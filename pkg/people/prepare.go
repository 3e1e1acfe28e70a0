package people

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"bytes"
	"errors"
	"io"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// ofChart and ofRelease are the labels and annotations that allow Helm to adopt objects that were created before the service rest-server. Helm keeps
// these objects when the service stops.
var (
	ofChart   = map[string]any{"app.kubernetes.io/managed-by": "Helm"}
	ofRelease = map[string]any{
		"meta.helm.sh/release-name": "rest-server", "meta.helm.sh/release-namespace": "pai-system", "helm.sh/resource-policy": "keep",
	}
)

// FirstGroups returns the groups that Prepare creates if they are missing.
func FirstGroups() []v1.GroupSpec {
	return []v1.GroupSpec{
		{Name: v1.GroupDefault, Description: "everyone who is added without groups", VirtualClusters: []v1.VCGrant{{Name: "default"}}},
		{Name: v1.GroupAdministrators, Description: "people who may do everything", Administrator: true, AllVirtualClusters: true},
	}
}

// Prepare creates missing objects that people need: the definitions, the namespace, and the groups default and administrators. It doesn't create the
// group administrators if the members of another group are administrators. An administrator may have deleted the group administrators on purpose.
// Prepare doesn't change existing definitions, because the service rest-server updates them.
func (d *Directory) Prepare(ctx context.Context) error {
	if err := d.prepareDefinitions(ctx); err != nil {
		return explain(err)
	}
	if err := d.prepareNamespace(ctx); err != nil {
		return explain(err)
	}
	if err := d.groups.Load(ctx); err != nil {
		return explain(err)
	}
	_, none := d.AdministratorGroup()
	for _, g := range FirstGroups() {
		if _, known := d.groups.Get(v1.ObjectName(g.Name)); known || g.Administrator && none == nil {
			continue
		}
		object, err := toObject(&v1.Group{ObjectMeta: metav1.ObjectMeta{Name: v1.ObjectName(g.Name)}, Spec: g})
		if err != nil {
			return err
		}
		made, err := d.api.Resource(v1.Groups).Create(ctx, object, metav1.CreateOptions{})
		switch {
		case err == nil:
			d.groups.Put(made)
		case !apierrors.IsAlreadyExists(err):
			return explain(fmt.Errorf("make the group %s: %w", g.Name, err))
		}
	}
	return nil
}

func (d *Directory) prepareDefinitions(ctx context.Context) error {
	missing := false
	for _, r := range []schema.GroupVersionResource{v1.Users, v1.Groups, v1.Templates} {
		_, err := d.api.Resource(r).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil && !isNoResource(err) {
			return fmt.Errorf("list %s: %w", r.Resource, err)
		}
		missing = missing || err != nil
	}
	if !missing {
		return nil
	}
	docs := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(v1.CRD), 4096)
	for {
		crd := &unstructured.Unstructured{}
		if err := docs.Decode(&crd.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("read the definitions of people: %w", err)
		}
		if err := unstructured.SetNestedMap(crd.Object, ofChart, "metadata", "labels"); err != nil {
			return err
		}
		for k, v := range ofRelease {
			if err := unstructured.SetNestedField(crd.Object, v, "metadata", "annotations", k); err != nil {
				return err
			}
		}
		_, err := d.api.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make the definition %s: %w", crd.GetName(), err)
		}
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, r := range []schema.GroupVersionResource{v1.Users, v1.Groups, v1.Templates} {
			if _, err := d.api.Resource(r).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
				return false, nil //nolint:nilerr // not yet
			}
		}
		return true, nil
	})
}

func (d *Directory) prepareNamespace(ctx context.Context) error {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1.Namespace, Labels: map[string]string{}, Annotations: map[string]string{}}}
	for k, v := range ofChart {
		n.Labels[k] = v.(string)
	}
	for k, v := range ofRelease {
		n.Annotations[k] = v.(string)
	}
	_, err := d.core.CoreV1().Namespaces().Get(ctx, n.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = d.core.CoreV1().Namespaces().Create(ctx, n, metav1.CreateOptions{})
	}
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsForbidden(err) { // the server's account need not have the right to read namespaces
		return nil
	}
	return fmt.Errorf("make the namespace %s: %w", n.Name, err)
}
