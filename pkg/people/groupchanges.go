package people

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// PutGroup creates or changes a group. If g was read from the API server and the group was deleted since, PutGroup returns ErrNoGroup and doesn't
// create the group again.
func (d *Directory) PutGroup(ctx context.Context, g *v1.Group) (*v1.Group, error) {
	return d.writeGroup(ctx, g, d.putGroup)
}

// NewGroup creates a group. It returns ErrExists if a group with this name exists.
func (d *Directory) NewGroup(ctx context.Context, g *v1.Group) (*v1.Group, error) {
	g = g.DeepCopy()
	g.ResourceVersion = ""
	made, err := d.writeGroup(ctx, g, d.createGroup)
	if errors.Is(err, ErrExists) || apierrors.IsAlreadyExists(err) {
		return nil, groupExists(g.Spec.Name)
	}
	return made, err
}

func groupExists(name string) error { return fmt.Errorf("%w: the group %s", ErrExists, name) }

// writeGroup checks a group and writes it under the Lease of administrators, because the change may add administrators or remove the last
// administrator.
func (d *Directory) writeGroup(ctx context.Context, g *v1.Group, write func(context.Context, *v1.Group) error) (*v1.Group, error) {
	g = g.DeepCopy()
	g.TypeMeta = metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: v1.KindGroup}
	g.Name = v1.ObjectName(g.Spec.Name)
	if err := checkGroup(&g.Spec); err != nil {
		return nil, err
	}
	err := d.exclusively(ctx, func(ctx context.Context) error {
		if err := d.keepsAdministrator(ctx, func(s *state) { s.groups[g.Name] = g }); err != nil {
			return err
		}
		return write(ctx, g)
	})
	if err != nil {
		return nil, explain(err)
	}
	return d.Group(g.Spec.Name)
}

// ChangeGroup creates a group if isNew is true, otherwise it changes an existing group. It returns ErrExists if the new group already exists, and
// ErrNoGroup if the group to change doesn't exist. It may call change more than once.
func (d *Directory) ChangeGroup(ctx context.Context, name string, isNew bool, change func(*v1.GroupSpec) error) (*v1.Group, error) {
	var err error
	for range tries {
		if err = d.Load(ctx); err != nil {
			return nil, err
		}
		have, known := d.snapshot().byGroup[name]
		g := &v1.Group{Spec: v1.GroupSpec{Name: name}}
		switch {
		case isNew && known:
			return nil, groupExists(name)
		case !isNew && !known:
			return nil, noGroup(name)
		case known:
			g = have.DeepCopy()
		}
		if err = change(&g.Spec); err != nil {
			return nil, err
		}
		if isNew {
			return d.NewGroup(ctx, g)
		}
		var out *v1.Group
		if out, err = d.PutGroup(ctx, g); !apierrors.IsConflict(err) {
			return out, err
		}
	}
	return nil, err
}

func checkGroup(g *v1.GroupSpec) error {
	if !v1.ValidName(g.Name) {
		return invalid("name", "%q can't be a name: take 1 to %d letters, digits, - _ and ., beginning and ending with a letter or digit", g.Name, v1.MaxName)
	}
	if len(g.Description) > 1024 {
		return invalid("description", "take 1024 bytes at most")
	}
	seen := map[string]bool{}
	for _, vc := range g.VirtualClusters {
		if vc.Name == "" || seen[vc.Name] {
			return invalid("virtual clusters", "%q occurs twice, or has no name", vc.Name)
		}
		seen[vc.Name] = true
	}
	return nil
}

func (d *Directory) putGroup(ctx context.Context, g *v1.Group) error {
	have, known := d.groups.Get(g.Name)
	switch {
	case !known && g.ResourceVersion != "":
		return noGroup(g.Spec.Name)
	case !known:
		return d.createGroup(ctx, g)
	case g.ResourceVersion == "":
		g.ResourceVersion = have.ResourceVersion
	}
	object, err := toObject(g)
	if err != nil {
		return err
	}
	out, err := d.api.Resource(v1.Groups).Update(ctx, object, metav1.UpdateOptions{})
	if err == nil {
		d.groups.Put(out)
	}
	return err
}

// createGroup creates a group that must not exist. It first removes the name from people and templates that still refer to an earlier group with that
// name.
func (d *Directory) createGroup(ctx context.Context, g *v1.Group) error {
	if _, known := d.groups.Get(g.Name); known {
		return groupExists(g.Spec.Name)
	}
	if err := d.leave(ctx, g.Spec.Name); err != nil {
		return err
	}
	object, err := toObject(g)
	if err != nil {
		return err
	}
	out, err := d.api.Resource(v1.Groups).Create(ctx, object, metav1.CreateOptions{})
	if err == nil {
		d.groups.Put(out)
	}
	return err
}

// leave removes a deleted group from all people and templates that refer to the group.
func (d *Directory) leave(ctx context.Context, group string) error {
	for name, u := range d.users.All() {
		if !slices.Contains(u.Spec.Groups, group) {
			continue
		}
		u = u.DeepCopy()
		u.Spec.Groups = slices.DeleteFunc(u.Spec.Groups, func(g string) bool { return g == group })
		if err := d.putUser(ctx, u); err != nil {
			return fmt.Errorf("take %s out of %s: %w", name, group, err)
		}
	}
	return d.unshare(ctx, group)
}

// DeleteGroup deletes a group and removes the group from people and templates. It returns ErrProtected for the group default and for the last group
// of administrators.
func (d *Directory) DeleteGroup(ctx context.Context, name string) error {
	if name == v1.GroupDefault {
		return fmt.Errorf("%w: new people are in %s", ErrProtected, name)
	}
	object := v1.ObjectName(name)
	err := d.exclusively(ctx, func(ctx context.Context) error {
		if err := d.keepsAdministrator(ctx, func(s *state) { delete(s.groups, object) }); err != nil {
			return err
		}
		g, known := d.groups.Get(object)
		if !known {
			return noGroup(name)
		}
		if g.Spec.Administrator && !slices.ContainsFunc(slices.Collect(maps.Values(d.groups.All())), func(other *v1.Group) bool {
			return other.Spec.Administrator && other.Name != object
		}) {
			return fmt.Errorf("%w: %s is the last group of administrators", ErrProtected, name)
		}
		err := d.api.Resource(v1.Groups).Delete(ctx, object, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &g.UID, ResourceVersion: &g.ResourceVersion}})
		if err == nil {
			d.groups.Drop(object, g.UID)
		}
		return err
	})
	if err != nil {
		return explain(err)
	}
	return explain(d.leave(ctx, name))
}
