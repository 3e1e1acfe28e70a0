package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/template"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Template is a job template that the caller may read.
type Template struct{ *v1.Template }

// Bytes returns the approximate size of the template in memory. brief is the size without the job file and the description.
func (t *Template) Bytes() (all, brief int) {
	all, texts := template.Size(&t.Spec)
	return all, all - texts
}

// template returns the Thing of a template for the rules. If the template's author no longer exists, the Thing has no owner, so only administrators
// can read and remove the template.
func (d *Actions) template(t *v1.Template) rules.Object {
	out := rules.Object{Kind: rules.KindTemplate, Name: t.Spec.Name, Official: slices.Contains(t.Spec.Categories, v1.CategoryOfficial), BuiltIn: t.BuiltIn()}
	if _, err := d.app.People.Person(t.Spec.Author); err == nil || d.caller.Operator || t.BuiltIn() {
		out.Owner, out.Public, out.Groups = t.Spec.Author, t.Spec.Public, t.Spec.Groups
	}
	return out
}

// decideTemplate checks a rule for a template. If the template is hidden from the caller, it returns the same error as for a missing template.
func (d *Actions) decideTemplate(rule string, t *v1.Template) error {
	err := rules.Decide(rule, &d.caller.Subject, d.template(t))
	if errors.Is(err, rules.ErrHidden) {
		return template.ErrNone
	}
	return err
}

// Templates returns the templates that the caller may read, sorted by author and name. Built-in templates come last.
func (d *Actions) Templates() ([]Template, error) {
	if err := rules.Class("templates.list", &d.caller.Subject); err != nil {
		return nil, err
	}
	if err := d.app.Templates.Fresh(); err != nil {
		return nil, err
	}
	var out []Template
	for _, t := range d.app.Templates.All() {
		if d.decideTemplate("template.read", t) == nil {
			out = append(out, Template{t})
		}
	}
	return out, nil
}

// Template returns the template with the given id.
func (d *Actions) Template(id string) (*Template, error) {
	return d.seenTemplate("template.read", id)
}

func (d *Actions) seenTemplate(rule, id string) (*Template, error) {
	if err := rules.Class(rule, &d.caller.Subject); err != nil {
		return nil, err
	}
	if err := d.app.Templates.Fresh(); err != nil {
		return nil, err
	}
	t, err := d.app.Templates.Get(id)
	if err != nil {
		return nil, err
	}
	if err := d.decideTemplate(rule, t); errors.Is(err, template.ErrNone) {
		return nil, err // the caller can read the audit, so it must not contain the template's author and name, either
	} else if err != nil {
		return &Template{t}, err
	}
	return &Template{t}, nil
}

// AddTemplate adds a template as the caller.
func (d *Actions) AddTemplate(ctx context.Context, spec v1.TemplateSpec) (*Template, error) {
	thing := rules.Object{Kind: rules.KindTemplate, Name: wire.Shown(spec.Name), Owner: wire.Shown(spec.Author)}
	var made *v1.Template
	err := d.did(ctx, "template.add", thing, nil, func(ctx context.Context) (err error) {
		made, err = d.addTemplate(ctx, spec)
		return err
	})
	return templated(made, err)
}

func (d *Actions) addTemplate(ctx context.Context, spec v1.TemplateSpec) (*v1.Template, error) {
	if err := rules.Decide("template.add", &d.caller.Subject, rules.Object{Kind: rules.KindTemplate, Owner: spec.Author}); err != nil {
		return nil, err
	}
	if err := d.app.Templates.Fresh(); err != nil {
		return nil, err
	}
	if err := d.mayShare(&v1.TemplateSpec{}, &spec); err != nil {
		return nil, err
	}
	author := d.caller.person
	if d.caller.Operator {
		var err error
		if author, err = d.app.People.Person(spec.Author); err != nil {
			return nil, err
		}
	}
	return d.app.Templates.AddOf(ctx, d.app.People, author, spec)
}

func templated(t *v1.Template, err error) (*Template, error) {
	if err != nil {
		return nil, err
	}
	return &Template{t}, nil
}

// mayShare returns an error if a change adds a group or a category that the caller may not add.
func (d *Actions) mayShare(was, now *v1.TemplateSpec) error {
	for _, g := range now.Groups {
		if slices.Contains(was.Groups, g) {
			continue
		}
		if _, err := d.app.People.Group(g); err != nil {
			return err
		}
		if !d.caller.Grants.Administrator && !slices.Contains(d.caller.Groups, g) {
			return &rules.ForbiddenError{Why: fmt.Sprintf("you aren't in the group %s, and can't share a template with it", wire.Shown(g))}
		}
	}
	if slices.Contains(now.Categories, v1.CategoryOfficial) && !slices.Contains(was.Categories, v1.CategoryOfficial) {
		return rules.Class("template.official", &d.caller.Subject)
	}
	return nil
}

// ChangeTemplate changes a template. version is the version of the template that the caller has read. 0 allows any version. change may be called more
// than once.
func (d *Actions) ChangeTemplate(ctx context.Context, id string, version int64, change func(*v1.Template) error) (*Template, error) {
	seen, err := d.seenTemplate("template.change", id)
	if err != nil {
		return nil, d.audited(ctx, "template.change", d.auditedTemplate(seen, id), nil, err)
	}
	var made *v1.Template
	err = d.did(ctx, "template.change", d.auditedTemplate(seen, id), nil, func(ctx context.Context) (err error) {
		made, err = d.app.Templates.Update(ctx, id, version, func(t *v1.Template) error {
			if err := d.decideTemplate("template.change", t); err != nil { // check its current state
				return err
			}
			was := t.Spec.DeepCopy()
			if err := change(t); err != nil {
				return err
			}
			return d.mayShare(was, &t.Spec)
		})
		return err
	})
	return templated(made, err)
}

// auditedTemplate returns the Thing of a template for the audit log, even if the template doesn't exist.
func (d *Actions) auditedTemplate(t *Template, id string) rules.Object {
	if t == nil {
		return rules.Object{Kind: rules.KindTemplate, Name: wire.Shown(id)}
	}
	return rules.Object{Kind: rules.KindTemplate, Name: t.Spec.Name, Owner: t.Spec.Author}
}

// RemoveTemplate removes the template with the given id.
func (d *Actions) RemoveTemplate(ctx context.Context, id string) error {
	seen, err := d.seenTemplate("template.remove", id)
	return d.did(ctx, "template.remove", d.auditedTemplate(seen, id), nil, func(ctx context.Context) error {
		if err != nil {
			return err
		}
		return d.app.Templates.Remove(ctx, id, func(t *v1.Template) error { return d.decideTemplate("template.remove", t) })
	})
}

// StarTemplate adds or removes the caller's star of a template.
func (d *Actions) StarTemplate(ctx context.Context, id string, yes bool) (*Template, error) {
	if _, err := d.seenTemplate("template.star", id); err != nil {
		return nil, err
	}
	made, err := d.app.Templates.Star(ctx, id, d.caller.Name, yes)
	return templated(made, err)
}

// UseTemplate counts that the caller submitted a job from a template. It counts a template at most once an hour for each person, and only a limited
// number of templates. It ignores further uses.
func (d *Actions) UseTemplate(ctx context.Context, id string) error {
	if _, err := d.seenTemplate("template.star", id); err != nil {
		return err
	}
	if !d.app.uses.first(d.caller.Name, id, d.app.now()) {
		return nil
	}
	return d.app.Templates.Use(ctx, id)
}
