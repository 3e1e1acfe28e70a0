package job

import (
	"context"
	"errors"
	"slices"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/template"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// localTemplates are those of a cluster by a kubeconfig, without the server, which needn't run. Users with a kubeconfig see and change all.
type localTemplates struct {
	cluster *kube.Cluster
	people  *people.Directory
	store   *template.Store
	me      string
	loaded  bool
}

func newLocalTemplates(o kube.Options, me string) (*localTemplates, error) {
	c, err := kube.Open(o)
	if err != nil {
		return nil, err
	}
	t := &localTemplates{cluster: c, me: me}
	if t.people, err = people.Open(c.Config, people.Options{}); err != nil {
		return nil, err
	}
	t.store, err = template.Open(c.Config, template.Options{})
	return t, err
}

// load reads the templates, once for whatever one command does.
func (t *localTemplates) load(ctx context.Context) error {
	if t.loaded {
		return nil
	}
	err := t.store.Load(ctx)
	t.loaded = err == nil
	return err
}

// answer is a template as the server answers it.
func (t *localTemplates) answer(one *v1.Template, err error) (*api.Template, error) {
	if err != nil {
		return nil, t.cluster.Explain(err)
	}
	return api.NewTemplate(one, t.me), nil
}

// Templates implements Templates.
func (t *localTemplates) Templates(ctx context.Context, author, name, keyword string) ([]api.Template, error) {
	if err := t.load(ctx); err != nil {
		return nil, t.cluster.Explain(err)
	}
	out := []api.Template{}
	for _, one := range t.store.All() {
		if one.Has(keyword) && (author == "" || one.Spec.Author == author) && (name == "" || one.Spec.Name == name) {
			out = append(out, api.NewTemplate(one, t.me).Brief())
		}
	}
	return out, nil
}

// Template implements Templates.
func (t *localTemplates) Template(ctx context.Context, id string) (*api.Template, error) {
	if err := t.load(ctx); err != nil {
		return nil, t.cluster.Explain(err)
	}
	return t.answer(t.store.Get(id))
}

// AddTemplate implements Templates. In a cluster that knows people and no templates yet, it makes the definition.
func (t *localTemplates) AddTemplate(ctx context.Context, spec v1.TemplateSpec) (*api.Template, error) {
	if err := t.people.Load(ctx); err != nil {
		return nil, t.cluster.Explain(err)
	}
	author, err := t.people.Person(spec.Author)
	if err != nil {
		return nil, err
	}
	if err := t.groups(&v1.TemplateSpec{}, &spec); err != nil {
		return nil, err
	}
	err = t.load(ctx)
	if errors.Is(err, people.ErrUnprepared) {
		if err = t.people.Prepare(ctx); err == nil {
			err = t.load(ctx)
		}
	}
	if err != nil {
		return nil, t.cluster.Explain(err)
	}
	return t.answer(t.store.AddOf(ctx, t.people, author, spec))
}

// groups refuses groups that don't exist.
func (t *localTemplates) groups(was, now *v1.TemplateSpec) error {
	for _, g := range now.Groups {
		if _, err := t.people.Group(g); err != nil && !slices.Contains(was.Groups, g) {
			return err
		}
	}
	return nil
}

// PutTemplate implements Templates.
func (t *localTemplates) PutTemplate(ctx context.Context, id string, c api.TemplateChange) (*api.Template, error) {
	if err := t.people.Load(ctx); err != nil {
		return nil, t.cluster.Explain(err)
	}
	return t.answer(t.store.Update(ctx, id, c.Version, func(one *v1.Template) error {
		was := one.Spec
		one.Spec = c.Spec
		return t.groups(&was, &c.Spec)
	}))
}

// RemoveTemplate implements Templates.
func (t *localTemplates) RemoveTemplate(ctx context.Context, id string) error {
	return t.cluster.Explain(t.store.Remove(ctx, id, nil))
}

// StarTemplate implements Templates.
func (t *localTemplates) StarTemplate(ctx context.Context, id string, yes bool) (*api.Template, error) {
	return t.answer(t.store.Star(ctx, id, t.me, yes))
}

// UseTemplate implements Templates.
func (t *localTemplates) UseTemplate(ctx context.Context, id string) error {
	return t.cluster.Explain(t.store.Use(ctx, id))
}
