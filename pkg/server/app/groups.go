package app

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Group is a group with the fields that the caller may read. Whole reports whether the caller may read the group's grants. Members is empty if the
// caller may not list members.
type Group struct {
	*v1.Group
	Whole   bool
	Members []string
}

// Members returns the members of a group, or no members if the group doesn't exist.
func (d *Actions) Members(group string) ([]*people.Person, error) {
	if err := rules.Class("group.members", &d.caller.Subject); err != nil {
		return nil, err
	}
	var out []*people.Person
	for _, name := range d.app.People.Members(group) {
		if p, err := d.app.People.Person(name); err == nil {
			out = append(out, p)
		}
	}
	return out, nil
}

// Groups returns all groups, sorted by name, with the fields that the caller may read.
func (d *Actions) Groups() ([]Group, error) {
	if err := rules.Class("group.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	var out []Group
	for _, g := range d.app.People.Groups() {
		out = append(out, d.shown(g))
	}
	return out, nil
}

// Group returns the group with the given name, with the fields that the caller may read.
func (d *Actions) Group(name string) (*Group, error) {
	if err := rules.Class("group.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	g, err := d.app.People.Group(name)
	if err != nil {
		return nil, err
	}
	out := d.shown(g)
	return &out, nil
}

func (d *Actions) shown(g *v1.Group) Group {
	out := Group{Group: g, Whole: rules.ViewGroup(&d.caller.Subject, g.Spec.Name)}
	if rules.Class("group.members", &d.caller.Subject) == nil {
		out.Members = d.app.People.Members(g.Spec.Name)
	}
	return out
}

// AdministratorGroup returns the name of a group whose members are administrators.
func (d *Actions) AdministratorGroup() (string, error) {
	if err := rules.Class("group.read", &d.caller.Subject); err != nil {
		return "", err
	}
	return d.app.People.AdministratorGroup()
}

// PutGroup creates a group if was is nil, otherwise it replaces the group. It returns ErrChanged if the group no longer equals was.
func (d *Actions) PutGroup(ctx context.Context, was *v1.GroupSpec, now v1.GroupSpec) (*Group, error) {
	var made *v1.Group
	err := d.did(ctx, "group.manage", rules.Object{Kind: rules.KindGroup, Name: now.Name}, nil, func(ctx context.Context) (err error) {
		made, err = d.putGroup(ctx, was, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := d.shown(made)
	return &out, nil
}

func (d *Actions) putGroup(ctx context.Context, was *v1.GroupSpec, now v1.GroupSpec) (*v1.Group, error) {
	if err := rules.Class("group.manage", &d.caller.Subject); err != nil {
		return nil, err
	}
	if err := d.grantsExist(ctx, was, &now); err != nil {
		return nil, err
	}
	if was == nil {
		made, err := d.app.People.NewGroup(ctx, &v1.Group{Spec: now})
		if errors.Is(err, people.ErrExists) {
			return nil, &wire.Error{Status: http.StatusConflict, Code: "ConflictError", Message: "there is a group " + wire.Shown(now.Name) + " already"}
		}
		return made, err
	}
	have, err := d.app.People.Group(now.Name)
	switch {
	case err != nil:
		return nil, err
	case !sameGroup(&have.Spec, was):
		return nil, ErrChanged
	}
	next := have.DeepCopy()
	next.Spec = now
	return d.app.People.PutGroup(ctx, next)
}

// grantsExist returns an error if now grants virtual clusters or storages that don't exist. It ignores grants that was also contains.
func (d *Actions) grantsExist(ctx context.Context, was, now *v1.GroupSpec) error {
	if !people.Grants(was, now) {
		return nil
	}
	vcs, storages, err := d.app.Jobs.Grantable(ctx)
	if err != nil {
		return err
	}
	return (&people.Known{VirtualClusters: vcs, Storages: storages}).Check(was, now)
}

func sameGroup(a, b *v1.GroupSpec) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	for _, g := range []*v1.GroupSpec{x, y} {
		g.External, g.VirtualClusters = append([]v1.ExternalGroup{}, g.External...), append([]v1.VCGrant{}, g.VirtualClusters...)
		g.Storages, g.Pages = append([]string{}, g.Storages...), append([]string{}, g.Pages...)
		if g.Extension != nil && len(g.Extension.Raw) == 0 {
			g.Extension = nil
		}
	}
	return reflect.DeepEqual(x, y)
}

// DeleteGroup deletes a group, including the memberships of its members.
func (d *Actions) DeleteGroup(ctx context.Context, name string) error {
	return d.did(ctx, "group.manage", rules.Object{Kind: rules.KindGroup, Name: name}, map[string]string{"change": "delete"}, func(ctx context.Context) error {
		if err := rules.Class("group.manage", &d.caller.Subject); err != nil {
			return err
		}
		return d.app.People.DeleteGroup(ctx, name)
	})
}

// NewGroup creates a group. It returns an error if the group already exists.
func (d *Actions) NewGroup(ctx context.Context, name string, change func(*v1.GroupSpec) error) (*Group, error) {
	made, err := d.changeGroup(ctx, name, true, change)
	if errors.Is(err, people.ErrExists) {
		return nil, &wire.Error{Status: http.StatusConflict, Code: "ConflictGroupError", Message: "there is a group " + wire.Shown(name) + " already"}
	}
	return made, err
}

// ChangeGroup changes an existing group. change may be called more than once.
func (d *Actions) ChangeGroup(ctx context.Context, name string, change func(*v1.GroupSpec) error) (*Group, error) {
	return d.changeGroup(ctx, name, false, change)
}

func (d *Actions) changeGroup(ctx context.Context, name string, isNew bool, change func(*v1.GroupSpec) error) (*Group, error) {
	var made *v1.Group
	err := d.did(ctx, "group.manage", rules.Object{Kind: rules.KindGroup, Name: wire.Shown(name)}, nil, func(ctx context.Context) (err error) {
		if err = rules.Class("group.manage", &d.caller.Subject); err == nil {
			made, err = d.app.People.ChangeGroup(ctx, name, isNew, func(g *v1.GroupSpec) error {
				was := g.DeepCopy()
				if err := change(g); err != nil {
					return err
				}
				return d.grantsExist(ctx, was, g)
			})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out := d.shown(made)
	return &out, nil
}
