// Package template manages job templates, which are shared job files with descriptions. In: Templates of the cluster, which are watched or read once;
// an author's changes. Out: the current templates, without secrets; changes that don't overwrite other people's changes. The package doesn't check
// permissions.
package template

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube/watch"
	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// Errors of the package. All other errors wrap people.ErrInvalid or people.ErrUnavailable, or describe errors in the job file.
var (
	ErrNone    = hint.Errorf("see: paictl job template list", "there is no such template")
	ErrExists  = errors.New("the author has a template of that name")
	ErrChanged = errors.New("someone else has changed the template since it was read")
	ErrFull    = errors.New("there are too many templates")
)

// Store holds the templates of a cluster. Callers share the returned templates, and must not change them.
type Store struct {
	api     dynamic.ResourceInterface
	objects *watch.Store[*v1.Template]
	builtIn []*v1.Template
	now     func() time.Time
	// unprepared is set if Load found a cluster without the kind Template. The store then contains only the built-in templates.
	unprepared atomic.Bool
}

// Options configure a Store.
type Options struct {
	Log *slog.Logger     // nil discards the log
	Now func() time.Time // nil means time.Now
	// BuiltIn holds the templates of the program, in display order. It is usually the result of the function BuiltIn.
	BuiltIn []v1.TemplateSpec
}

// Open returns a Store for a cluster. It sends no requests.
func Open(config *rest.Config, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	watching, err := watch.Client(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	s := &Store{api: api.Resource(v1.Templates), now: o.Now}
	for i := range o.BuiltIn {
		s.builtIn = append(s.builtIn, newBuiltIn(&o.BuiltIn[i]))
	}
	everything := metav1.ListOptions{}
	s.objects = watch.New(watch.Options[*unstructured.Unstructured, *v1.Template]{Name: "templates", Source: watch.From(watching.Resource(v1.Templates), everything),
		Reads: watch.From(s.api, everything), Keep: decode, Confirm: true, Log: o.Log})
	return s, nil
}

// decode decodes a Template. It rejects a Template with an invalid author or name.
func decode(u *unstructured.Unstructured) (*v1.Template, error) {
	out := &v1.Template{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("it can't be read: %w", err)
	}
	switch {
	case !v1.ValidName(out.Spec.Author) && !out.BuiltIn():
		return nil, fmt.Errorf("spec.author: %q can't be a name", out.Spec.Author)
	case !ValidName(out.Spec.Name):
		return nil, fmt.Errorf("spec.name: %q can't be a name", out.Spec.Name)
	}
	return out, nil
}

// Load reads all templates once, for commands that don't need a watch. If it returns people.ErrUnprepared, the Store contains only the built-in
// templates.
func (s *Store) Load(ctx context.Context) error {
	err := explain(s.objects.Load(ctx))
	s.unprepared.Store(errors.Is(err, people.ErrUnprepared))
	return err
}

// Run watches the templates until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	s.objects.Run(ctx)
	return nil
}

// Fresh returns people.ErrStale if the watch wasn't confirmed within people.StaleAfter, otherwise nil. The result is meaningful only while Run runs.
func (s *Store) Fresh() error {
	if !s.unprepared.Load() && time.Since(s.objects.Confirmed()) > people.StaleAfter {
		return people.ErrStale
	}
	return nil
}

// All returns all templates, sorted by author and name. Built-in templates come last.
func (s *Store) All() []*v1.Template {
	var out []*v1.Template
	for _, t := range s.objects.All() {
		if !t.BuiltIn() {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *v1.Template) int {
		return cmp.Or(cmp.Compare(a.Spec.Author, b.Spec.Author), cmp.Compare(a.Spec.Name, b.Spec.Name), cmp.Compare(a.UID, b.UID))
	})
	return append(out, s.counted()...)
}

// Get returns the template with the given id, or ErrNone.
func (s *Store) Get(id string) (*v1.Template, error) {
	for _, t := range s.objects.All() {
		if string(t.UID) == id && id != "" && !t.BuiltIn() {
			return t, nil
		}
	}
	for _, t := range s.counted() {
		if string(t.UID) == id {
			return t, nil
		}
	}
	return nil, ErrNone
}

// Of returns the templates of an author, sorted by name.
func (s *Store) Of(author string) []*v1.Template {
	return slices.DeleteFunc(s.All(), func(t *v1.Template) bool { return t.Spec.Author != author })
}

// explain calls people.Explain, but returns ErrNone for a missing template, and a clearer error for a template that is too large.
func explain(err error) error {
	switch {
	case err == nil || errors.Is(err, ErrExists):
		return err
	case apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(err.Error(), "request is too large"):
		return invalid("the template is too large for the cluster: shorten description or job file")
	}
	explained := people.Explain(err)
	if apierrors.IsNotFound(err) && !errors.Is(explained, people.ErrUnprepared) {
		return ErrNone
	}
	return explained
}

func invalid(format string, args ...any) error {
	return &invalidError{fmt.Sprintf(format, args...)}
}

type invalidError struct{ why string }

func (e *invalidError) Error() string        { return e.why }
func (e *invalidError) Is(target error) bool { return target == people.ErrInvalid }
