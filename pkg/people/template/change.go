package template

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// tries is the maximum number of tries of a change after conflicts.
const tries = 10

// takeBackTime limits the time to remove a template that was just created.
const takeBackTime = 10 * time.Second

// objectName returns the name of the object for a new template. The name depends only on author and name. So only one of two replicas succeeds if
// both add the same template. If another template already has that object name, past is the UID of its object, otherwise "".
func objectName(author, name string, past types.UID) string {
	key := author + "/" + name
	if past != "" {
		key += "/" + string(past)
	}
	sum := sha256.Sum256([]byte(key))
	return "t-" + hex.EncodeToString(sum[:16])
}

// Add adds a template. It masks secrets in the job file.
func (s *Store) Add(ctx context.Context, spec v1.TemplateSpec) (*v1.Template, error) {
	if err := ready(&spec); err != nil {
		return nil, err
	}
	if err := s.fits(nil, &spec); err != nil {
		return nil, err
	}
	t := &v1.Template{Spec: spec, ObjectMeta: metav1.ObjectMeta{Name: objectName(spec.Author, spec.Name, ""), Annotations: map[string]string{v1.AnnotationUpdated: s.stamp()}}}
	made, err := s.createOnce(ctx, t)
	if err != nil {
		return nil, explain(err)
	}
	if !s.alone(ctx, made) {
		return nil, errors.Join(taken(), s.takeBack(ctx, made))
	}
	return made, nil
}

// createOnce creates the object of a template. It skips object names of other templates.
func (s *Store) createOnce(ctx context.Context, t *v1.Template) (*v1.Template, error) {
	var err error
	for range tries {
		var made *v1.Template
		if made, err = s.create(ctx, t); !apierrors.IsAlreadyExists(err) {
			return made, err
		}
		have, readErr := s.read(ctx, t.Name)
		switch {
		case errors.Is(readErr, ErrNone): // it was deleted again
		case readErr != nil:
			return nil, readErr
		case have.Spec.Author == t.Spec.Author && have.Spec.Name == t.Spec.Name:
			return nil, taken()
		default:
			t.Name = objectName(t.Spec.Author, t.Spec.Name, have.UID)
		}
	}
	return nil, err
}

func taken() error { return hint.Wrap(ErrExists, "choose another name, or change that one") }

// alone reports whether a new template is the only template with its author and name. If two templates with the same name are written at the same
// time, alone returns false for at least one. If the templates can't be read, it uses the last known templates.
func (s *Store) alone(ctx context.Context, t *v1.Template) bool {
	_ = s.Load(ctx)
	for _, other := range s.objects.All() {
		if other.UID != t.UID && other.Spec.Author == t.Spec.Author && other.Spec.Name == t.Spec.Name {
			return false
		}
	}
	return true
}

// AddOf adds a template of a person. If the person is removed at the same time, AddOf removes the template. Otherwise the next person with that name
// would own the template.
func (s *Store) AddOf(ctx context.Context, d *people.Directory, who *people.Person, spec v1.TemplateSpec) (*v1.Template, error) {
	made, err := s.Add(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := d.Confirm(ctx, who); err != nil {
		return nil, errors.Join(err, s.takeBack(ctx, made))
	}
	return made, nil
}

// takeBack removes a template that was just created. It ignores the end of the request's context.
func (s *Store) takeBack(ctx context.Context, made *v1.Template) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTime)
	defer cancel()
	if err := s.Remove(ctx, string(made.UID), nil); err != nil && !errors.Is(err, ErrNone) {
		return err
	}
	return nil
}

// stamp returns the current time with milliseconds, a precision that JavaScript preserves.
func (s *Store) stamp() string { return s.now().UTC().Format("2006-01-02T15:04:05.000Z07:00") }

func (s *Store) create(ctx context.Context, t *v1.Template) (*v1.Template, error) {
	object, err := toObject(t)
	if err != nil {
		return nil, err
	}
	made, err := s.api.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	s.objects.Put(made)
	return decode(made)
}

func (s *Store) read(ctx context.Context, object string) (*v1.Template, error) {
	u, err := s.api.Get(ctx, object, metav1.GetOptions{})
	if err != nil {
		return nil, explain(err)
	}
	s.objects.Put(u)
	return decode(u)
}

// Update changes the author's fields of a template. version is the Generation on which the change is based. If the template has a different
// Generation, Update returns ErrChanged. 0 allows any Generation. Update may call change more than once.
func (s *Store) Update(ctx context.Context, id string, version int64, change func(*v1.Template) error) (*v1.Template, error) {
	known, err := s.Get(id)
	if err != nil {
		return nil, err
	}
	var was *v1.TemplateSpec
	made, err := s.write(ctx, known, "", func(t *v1.Template) error {
		if version != 0 && t.Generation != version {
			return hint.Wrap(ErrChanged, "look at it again, and repeat the change")
		}
		was = t.Spec.DeepCopy()
		if err := change(t); err != nil {
			return err
		}
		if t.Spec.Author != was.Author {
			return invalid("author: a template keeps its author")
		}
		if err := ready(&t.Spec); err != nil || equality.Semantic.DeepEqual(was, &t.Spec) {
			return err
		}
		if t.Annotations == nil {
			t.Annotations = map[string]string{}
		}
		t.Annotations[v1.AnnotationUpdated] = s.stamp()
		return s.fits(t, &t.Spec)
	})
	if err != nil || made.Spec.Name == was.Name || s.alone(ctx, made) {
		return made, err
	}
	return nil, errors.Join(taken(), s.undo(ctx, made, was))
}

// undo restores a template, unless the template has changed again since.
func (s *Store) undo(ctx context.Context, made *v1.Template, was *v1.TemplateSpec) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTime)
	defer cancel()
	_, err := s.write(ctx, made, "", func(t *v1.Template) error {
		if t.Generation == made.Generation {
			t.Spec = *was
		}
		return nil
	})
	return err
}

// Star adds or removes a person's star of a template.
func (s *Store) Star(ctx context.Context, id, person string, yes bool) (*v1.Template, error) {
	return s.count(ctx, id, func(status *v1.TemplateStatus) {
		status.Stars = slices.DeleteFunc(status.Stars, func(name string) bool { return name == person })
		if yes {
			status.Stars = append(status.Stars, person)
		}
		slices.Sort(status.Stars)
	})
}

// Use counts a job that was submitted from a template.
func (s *Store) Use(ctx context.Context, id string) error {
	_, err := s.count(ctx, id, func(status *v1.TemplateStatus) { status.Uses++ })
	return err
}

// count changes the status of a template. For a built-in template it changes the status of its object in the cluster.
func (s *Store) count(ctx context.Context, id string, change func(*v1.TemplateStatus)) (*v1.Template, error) {
	known, err := s.Get(id)
	if err != nil {
		return nil, err
	}
	object := known
	if known.BuiltIn() {
		if object, err = s.counter(ctx, known); err != nil {
			return nil, err
		}
	}
	made, err := s.write(ctx, object, "status", func(t *v1.Template) error {
		change(&t.Status)
		return nil
	})
	if err != nil || !known.BuiltIn() {
		return made, err
	}
	return withCounts(known, made), nil
}

// write changes the current state of an object, or only its status if part is "status". It never reverts changes by others since known was read.
func (s *Store) write(ctx context.Context, known *v1.Template, part string, change func(*v1.Template) error) (*v1.Template, error) {
	var err error
	var parts []string
	if part != "" {
		parts = []string{part}
	}
	for range tries {
		have, readErr := s.read(ctx, known.Name)
		if readErr != nil {
			return nil, readErr
		}
		if have.UID != known.UID {
			return nil, ErrNone
		}
		next := have.DeepCopy()
		if err = change(next); err != nil {
			return nil, err
		}
		if equality.Semantic.DeepEqual(have, next) {
			return have, nil
		}
		object, convertErr := toObject(next)
		if convertErr != nil {
			return nil, convertErr
		}
		var written *unstructured.Unstructured
		if written, err = s.api.Update(ctx, object, metav1.UpdateOptions{}, parts...); err == nil {
			s.objects.Put(written)
			return decode(written)
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return nil, explain(err)
}

// Remove removes a template if check returns nil for its current state. A nil check allows the removal.
func (s *Store) Remove(ctx context.Context, id string, check func(*v1.Template) error) error {
	known, err := s.Get(id)
	if err != nil {
		return err
	}
	for range tries {
		have, readErr := s.read(ctx, known.Name)
		if readErr != nil {
			return readErr
		}
		if have.UID != known.UID {
			return ErrNone
		}
		if check != nil {
			if err := check(have); err != nil {
				return err
			}
		}
		err = s.api.Delete(ctx, have.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion}})
		if err == nil {
			s.objects.Drop(have.Name, have.UID)
			return nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return explain(err)
}

// RemoveOf removes all templates of an author. It does nothing if the cluster doesn't define the kind Template.
func (s *Store) RemoveOf(ctx context.Context, author string) error {
	if err := s.Load(ctx); err != nil {
		if errors.Is(err, people.ErrUnprepared) {
			return nil
		}
		return err
	}
	for _, t := range s.Of(author) {
		if err := s.Remove(ctx, string(t.UID), nil); err != nil && !errors.Is(err, ErrNone) {
			return fmt.Errorf("remove the template %s: %w", t.Spec.Name, err)
		}
	}
	return nil
}

func toObject(t *v1.Template) (*unstructured.Unstructured, error) {
	t.TypeMeta = metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: v1.KindTemplate}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
	return &unstructured.Unstructured{Object: m}, err
}
