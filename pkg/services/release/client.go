package release

import (
	"errors"
	"io"

	helmkube "helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
)

// client is Helm's client of the cluster with overridden methods.
type client struct {
	*helmkube.Client
	// needed holds the kinds of the manifest to send. A missing kind in needed is an error.
	needed map[schema.GroupKind]bool
	// back means that an earlier revision is restored. A rollback doesn't restore definitions of kinds, because objects that only the newer definitions
	// allow may exist.
	back bool
	// left holds the names of the definitions that must not change.
	left map[string]bool
	// undeleted holds the errors of objects that couldn't be deleted. Helm only logs these errors.
	undeleted []error
}

// IsReachable sends no request, because the session has just connected to the cluster.
func (*client) IsReachable() error { return nil }

// Build skips objects of an old manifest if their kind no longer exists. Otherwise a release couldn't be upgraded or removed after its definitions
// were deleted.
func (c *client) Build(reader io.Reader, validate bool) (helmkube.ResourceList, error) {
	list, err := c.Client.Build(reader, validate)
	if err != nil && !validate && c.onlyUnneeded(err) {
		c.Log("kinds that the cluster doesn't have are skipped: %v", err)
		return list, nil
	}
	return list, err
}

// onlyUnneeded reports whether an error contains only missing kinds that aren't needed.
func (c *client) onlyUnneeded(err error) bool {
	return utilerrors.FilterOut(err, func(err error) bool {
		missing, ok := errors.AsType[*meta.NoKindMatchError](err)
		return ok && !c.needed[missing.GroupKind]
	}) == nil
}

// Update also uses a three-way merge for custom resources, so that manual changes of custom resources are reverted.
func (c *client) Update(original, target helmkube.ResourceList, force bool) (*helmkube.Result, error) {
	return c.UpdateThreeWayMerge(original, target, force)
}

// UpdateThreeWayMerge keeps claims and definitions that the new manifest no longer contains.
func (c *client) UpdateThreeWayMerge(original, target helmkube.ResourceList, force bool) (*helmkube.Result, error) {
	if c.back {
		had := original
		target = target.Filter(func(i *resource.Info) bool { return !isDefinition(i) || !had.Contains(i) })
		original = original.Filter(func(i *resource.Info) bool { return !isDefinition(i) })
	}
	if len(c.left) > 0 {
		stays := func(i *resource.Info) bool { return isDefinition(i) && c.left[i.Name] }
		original = original.Filter(func(i *resource.Info) bool { return !stays(i) })
		target = target.Filter(func(i *resource.Info) bool { return !stays(i) })
	}
	original = original.Filter(func(i *resource.Info) bool { return !isClaim(i) && !isDefinition(i) || target.Contains(i) })
	return c.Client.UpdateThreeWayMerge(original, target, force)
}

// isClaim reports whether an object is a claim. A claim holds data and is therefore kept when the release is removed. Most upstream charts lack the
// annotation that keeps claims.
func isClaim(i *resource.Info) bool { return i.Mapping.GroupVersionKind.GroupKind() == claims }

// isDefinition reports whether an object is a custom resource definition. Removing a definition removes all objects of its kind.
func isDefinition(i *resource.Info) bool {
	return i.Mapping.GroupVersionKind.GroupKind() == definitions
}

var (
	claims      = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	definitions = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

// DeleteWithPropagationPolicy deletes all objects except claims. DeleteWithPropagationPolicy records the errors.
func (c *client) DeleteWithPropagationPolicy(list helmkube.ResourceList, policy metav1.DeletionPropagation) (*helmkube.Result, []error) {
	list = list.Filter(func(i *resource.Info) bool { return !isClaim(i) })
	result, errs := c.Client.DeleteWithPropagationPolicy(list, policy)
	c.undeleted = append(c.undeleted, errs...)
	return result, errs
}
