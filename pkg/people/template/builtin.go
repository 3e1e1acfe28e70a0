package template

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/examples"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// BuiltIn returns the templates that are part of the program. Callers pass them in Options.
func BuiltIn() ([]v1.TemplateSpec, error) {
	all, err := examples.Templates()
	if err != nil {
		return nil, fmt.Errorf("read the catalogue of job templates: %w", err)
	}
	var out []v1.TemplateSpec
	for _, t := range all {
		out = append(out, v1.TemplateSpec{Name: t.Name, Author: v1.AuthorBuiltIn, Type: "template", Public: true, Summary: t.Summary,
			Categories: []string{v1.CategoryOfficial, t.Category}, Tags: t.Tags, Job: t.Job})
	}
	return out, nil
}

// newBuiltIn returns a template of the program. Its id is the same in all clusters and versions. Its Generation isn't zero, so that a change fails
// because the template is built in, and not because of a version conflict.
func newBuiltIn(spec *v1.TemplateSpec) *v1.Template {
	sum := sha256.Sum256([]byte(spec.Author + "/" + spec.Name))
	id := fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	return &v1.Template{ObjectMeta: metav1.ObjectMeta{Name: objectName(spec.Author, spec.Name, ""), UID: types.UID(id), Generation: 1}, Spec: *spec}
}

// counted returns the built-in templates with the stars and uses from their objects in the cluster.
func (s *Store) counted() []*v1.Template {
	out := slices.Clone(s.builtIn)
	for _, object := range s.objects.All() {
		if !object.BuiltIn() {
			continue
		}
		for i, t := range out {
			if t.Name == object.Name {
				out[i] = withCounts(t, object)
			}
		}
	}
	return out
}

func withCounts(t, object *v1.Template) *v1.Template {
	out := *t
	out.Status = object.Status
	return &out
}

// counter returns the object that stores the stars and uses of a built-in template. It creates the object at the first star or use. The object
// doesn't contain the job file.
func (s *Store) counter(ctx context.Context, t *v1.Template) (*v1.Template, error) {
	have, err := s.read(ctx, t.Name)
	if !errors.Is(err, ErrNone) {
		return have, err
	}
	made, err := s.create(ctx, &v1.Template{ObjectMeta: metav1.ObjectMeta{Name: t.Name}, Spec: v1.TemplateSpec{Name: t.Spec.Name, Author: t.Spec.Author, Type: t.Spec.Type}})
	if apierrors.IsAlreadyExists(err) { // another request created it first
		return s.read(ctx, t.Name)
	}
	return made, explain(err)
}
