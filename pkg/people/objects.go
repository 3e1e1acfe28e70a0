package people

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

func (d *Directory) createUser(ctx context.Context, u *v1.User) (*v1.User, error) {
	object, err := toObject(u)
	if err != nil {
		return nil, err
	}
	made, err := d.api.Resource(v1.Users).Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	d.users.Put(made)
	return decodeUser(made)
}

func (d *Directory) putUser(ctx context.Context, u *v1.User) error {
	object, err := toObject(u)
	if err != nil {
		return err
	}
	written, err := d.api.Resource(v1.Users).Update(ctx, object, metav1.UpdateOptions{})
	if err == nil {
		d.users.Put(written)
	}
	return err
}

// Confirm checks with the API server that a person still exists. It returns ErrNoUser if the person doesn't exist, was removed, or if the name now
// belongs to a different person.
func (d *Directory) Confirm(ctx context.Context, who *Person) error {
	u, err := d.api.Resource(v1.Users).Get(ctx, who.User.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return noUser(who.Name)
	case err != nil:
		return explain(err)
	}
	if removed, _, _ := unstructured.NestedBool(u.Object, "spec", "removed"); removed || u.GetUID() != who.UID {
		return noUser(who.Name)
	}
	return nil
}

// deleteUser deletes the User object and the Secrets of a removed person.
func (d *Directory) deleteUser(ctx context.Context, u *v1.User) error {
	if _, err := d.clear(ctx, u.Spec.Name); err != nil {
		return err
	}
	err := d.api.Resource(v1.Users).Delete(ctx, u.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &u.UID, ResourceVersion: &u.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) {
		return explain(err)
	}
	d.users.Drop(u.Name, u.UID)
	return nil
}

func toObject(o any) (*unstructured.Unstructured, error) {
	switch o := o.(type) {
	case *v1.User:
		o.TypeMeta = metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: v1.KindUser}
	case *v1.Group:
		o.TypeMeta = metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: v1.KindGroup}
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	return &unstructured.Unstructured{Object: m}, err
}
