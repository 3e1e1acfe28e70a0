package people

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// templatePage is the page size of a list of templates, because each template may take 264 KiB.
const templatePage = 20

// unshare removes a group from all templates, so that a later group with the same name can't read them.
func (d *Directory) unshare(ctx context.Context, group string) error {
	return d.eachTemplate(ctx, func(u *unstructured.Unstructured) error {
		groups, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "groups")
		if !slices.Contains(groups, group) {
			return nil
		}
		return d.unshareOne(ctx, u.GetName(), group)
	})
}

func (d *Directory) unshareOne(ctx context.Context, object, group string) error {
	var err error
	for range tries {
		var u *unstructured.Unstructured
		if u, err = d.api.Resource(v1.Templates).Get(ctx, object, metav1.GetOptions{}); err != nil {
			break
		}
		groups, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "groups")
		groups = slices.DeleteFunc(groups, func(g string) bool { return g == group })
		if err = unstructured.SetNestedStringSlice(u.Object, groups, "spec", "groups"); err != nil {
			return err
		}
		if _, err = d.api.Resource(v1.Templates).Update(ctx, u, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			break
		}
	}
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("take the group %s out of a template: %w", group, err)
}

// removeTemplates removes the templates of a removed author, so that a later person with that name doesn't get them.
func (d *Directory) removeTemplates(ctx context.Context, author string) error {
	return d.eachTemplate(ctx, func(u *unstructured.Unstructured) error {
		if of, _, _ := unstructured.NestedString(u.Object, "spec", "author"); of != author {
			return nil
		}
		uid := u.GetUID()
		err := d.api.Resource(v1.Templates).Delete(ctx, u.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("remove a template of %s: %w", author, err)
		}
		return nil
	})
}

// eachTemplate calls do for each template in the API server. It does nothing if the cluster doesn't define the kind Template.
func (d *Directory) eachTemplate(ctx context.Context, do func(*unstructured.Unstructured) error) error {
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return d.api.Resource(v1.Templates).List(ctx, o)
	})
	p.PageSize, p.PageBufferSize = templatePage, 0
	err := p.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the API server answered %T", o)
		}
		return do(u)
	})
	if isNoResource(err) {
		return nil
	}
	return err
}
