package people

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/people/password"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// tries is how often a change is made again because the object was another one by then.
const tries = 8

// Add adds a person: ErrExists where the name, or one that differs in case only, is or was taken.
func (d *Directory) Add(ctx context.Context, n NewUser) (*Person, error) {
	if err := d.Load(ctx); err != nil {
		return nil, err
	}
	if n.Groups == nil {
		n.Groups = []string{v1.GroupDefault}
	}
	if err := d.CheckNew(n); err != nil {
		return nil, err
	}
	if gone := d.snapshot().taken[v1.FoldName(n.Name)]; gone != nil { // removed, and the caller knows it
		if err := d.deleteUser(ctx, gone); err != nil {
			return nil, err
		}
	}
	u := &v1.User{ObjectMeta: metav1.ObjectMeta{Name: v1.ObjectName(n.Name)}, Spec: v1.UserSpec{
		Name: n.Name, Email: n.Email, DisplayName: n.DisplayName, Groups: slices.Compact(sorted(n.Groups)), Identities: n.Identities,
	}}
	if n.From != "" {
		u.Annotations = map[string]string{AnnotationFrom: n.From}
	}
	made, err := d.createUser(ctx, u)
	if apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("%w: %s", ErrExists, n.Name)
	}
	if err != nil {
		return nil, explain(err)
	}
	if n.Password.IsSet() {
		n.Hash = password.Hash(n.Password)
	}
	if n.Hash != "" {
		if err := d.putPassword(ctx, made, n.Hash, 0); err != nil {
			return nil, hint.Wrap(fmt.Errorf("%s is added, and has no password: %w", n.Name, err), "set it with: paictl user passwd "+n.Name)
		}
	}
	return d.Person(n.Name)
}

// CheckNew says why a person can't be added, as far as it is known now.
func (d *Directory) CheckNew(n NewUser) error {
	switch {
	case !v1.ValidName(n.Name):
		return invalid("name", "%q can't be a name: take 1 to %d letters, digits, - _ and ., beginning and ending with a letter or digit", n.Name, v1.MaxName)
	case v1.Reserved(n.Name):
		return invalid("name", "%s stands for something else", n.Name)
	case n.Password.IsSet() && n.Hash != "":
		return invalid("password", "give a password or a hash")
	case n.Hash != "" && !password.Known(n.Hash):
		return invalid("password", "the hash can't be read")
	}
	if n.Password.IsSet() {
		if err := CheckPassword(n.Name, n.Password); err != nil {
			return err
		}
	}
	s := d.snapshot()
	if there := s.taken[v1.FoldName(n.Name)]; there != nil && (!there.Spec.Removed || !n.TakeOver) {
		return taken(n.Name, there)
	}
	spec := v1.UserSpec{Name: n.Name, Email: n.Email, DisplayName: n.DisplayName, Groups: n.Groups, Identities: n.Identities}
	return s.check(nil, &spec)
}

func taken(name string, by *v1.User) error {
	switch {
	case by.Spec.Removed:
		return hint.Errorf("take another name; or give the new person the jobs and files of the earlier one: paictl user add "+name+" --take-over-history",
			"%w: %s is the name of a person who was removed", ErrExists, by.Spec.Name)
	case by.Spec.Name != name:
		return fmt.Errorf("%w: %s, which differs in case only", ErrExists, by.Spec.Name)
	}
	return fmt.Errorf("%w: %s", ErrExists, name)
}

// check says what is wrong with a person. was is nil for a new one: what was wrong before may stay.
func (s *snapshot) check(was, now *v1.UserSpec) error {
	if was == nil {
		was = &v1.UserSpec{}
	} else if was.Name != now.Name {
		return invalid("name", "a person keeps the name")
	}
	if now.Email != was.Email && now.Email != "" {
		if a, err := mail.ParseAddress(now.Email); err != nil || a.Address != now.Email || len(now.Email) > 320 {
			return invalid("email", "%q is not an address", now.Email)
		}
	}
	if len(now.DisplayName) > 256 || strings.ContainsFunc(now.DisplayName, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return invalid("display name", "take one line of 256 bytes at most")
	}
	for _, g := range now.Groups {
		if s.byGroup[g] == nil && !slices.Contains(was.Groups, g) {
			return noGroup(g)
		}
	}
	for _, id := range now.Identities {
		if id.Provider == "" || id.Subject == "" {
			return invalid("identities", "provider and subject are needed")
		}
		if other := s.byIdentity[id]; other != nil && other.Name != now.Name {
			return invalid("identities", "%s of %s is %s", id.Subject, id.Provider, other.Name)
		}
	}
	for _, key := range now.SSHKeys {
		if slices.Contains(was.SSHKeys, key) {
			continue
		}
		if _, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(key.Value)); err != nil || len(rest) > 0 {
			return invalid("ssh keys", "%q is not one public key", key.Title)
		}
	}
	return nil
}

// Update changes a person. change may be called more than once.
func (d *Directory) Update(ctx context.Context, name string, change func(*v1.UserSpec) error) (*Person, error) {
	p, err := d.update(ctx, name, func(u *v1.User) error {
		disabled, removed := u.Spec.Disabled, u.Spec.Removed
		if err := change(&u.Spec); err != nil {
			return err
		}
		if u.Spec.Removed != removed {
			return invalid("removed", "people are removed with Remove")
		}
		if u.Spec.Disabled && !disabled {
			endSessions(u)
		}
		return nil
	})
	if err == nil && p.Disabled {
		err = d.endTokens(ctx, name, true)
	}
	return p, err
}

// CheckUpdate says why Update can't be made, as far as it is known now.
func (d *Directory) CheckUpdate(name string, change func(*v1.UserSpec) error) error {
	p, err := d.Person(name)
	if err != nil {
		return err
	}
	now := p.User.Spec.DeepCopy()
	if err := change(now); err != nil {
		return err
	}
	return d.snapshot().check(&p.User.Spec, now)
}

// update changes a User, under the Lease of administrators where that could take one away.
func (d *Directory) update(ctx context.Context, name string, change func(*v1.User) error) (*Person, error) {
	var err error
	for range tries {
		if err = d.Load(ctx); err != nil {
			return nil, err
		}
		var p *Person
		if p, err = d.Person(name); err != nil {
			return nil, err
		}
		u := p.User.DeepCopy()
		if err = change(u); err != nil {
			return nil, err
		}
		u.Spec.Groups = slices.Compact(sorted(u.Spec.Groups))
		if equality.Semantic.DeepEqual(u, p.User) {
			return p, nil
		}
		if err = d.snapshot().check(&p.User.Spec, &u.Spec); err != nil {
			return nil, err
		}
		if err = d.writeUser(ctx, p.User, u); apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return nil, explain(err)
		}
		if u.Spec.Removed {
			return p, nil
		}
		return d.Person(name)
	}
	return nil, explain(err)
}

// writeUser writes what a change made of a User.
func (d *Directory) writeUser(ctx context.Context, was, now *v1.User) error {
	a, b := &was.Spec, &now.Spec
	if a.Disabled == b.Disabled && a.Removed == b.Removed && slices.Equal(sorted(a.Groups), sorted(b.Groups)) && slices.Equal(a.Identities, b.Identities) {
		return d.putUser(ctx, now)
	}
	return d.exclusively(ctx, func(ctx context.Context) error {
		if err := d.keepsAdministrator(ctx, func(s *state) { s.users[now.Name] = now }); err != nil {
			return err
		}
		return d.putUser(ctx, now)
	})
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// CheckPassword says why a person can't have a password.
func CheckPassword(name string, p secret.String) error {
	if err := password.Check(p, name); err != nil {
		return invalid("password", "%w", err)
	}
	return nil
}

// SetPassword sets a person's password, and ends all sessions; application tokens stay.
func (d *Directory) SetPassword(ctx context.Context, name string, p secret.String) error {
	if err := CheckPassword(name, p); err != nil {
		return err
	}
	if err := d.Load(ctx); err != nil {
		return err
	}
	who, err := d.Person(name)
	if err != nil {
		return err
	}
	// First the password, bearing the number of the sessions that it begins: when the old sessions end it works.
	if err := d.putPassword(ctx, who.User, password.Hash(p), who.Sessions+1); err != nil {
		return err
	}
	if _, err := d.update(ctx, name, func(u *v1.User) error {
		if sessions(u) <= who.Sessions {
			endSessions(u)
		}
		return nil
	}); err != nil {
		return hint.Wrap(fmt.Errorf("the password is set, and sessions of before may go on: %w", err), "set it again")
	}
	return d.endTokens(ctx, name, true)
}

// endSessions makes all sessions of a person invalid.
func endSessions(u *v1.User) {
	if u.Annotations == nil {
		u.Annotations = map[string]string{}
	}
	u.Annotations[AnnotationSessions] = strconv.FormatInt(sessions(u)+1, 10)
}

// Disable disables a person and ends all sessions, or lets them in again. Application tokens are refused meanwhile.
func (d *Directory) Disable(ctx context.Context, name string, yes bool) error {
	_, err := d.Update(ctx, name, func(s *v1.UserSpec) error {
		s.Disabled = yes
		return nil
	})
	return err
}

// Remove removes a person, with password, tokens and extension. The name stays taken.
func (d *Directory) Remove(ctx context.Context, name string) error {
	_, err := d.update(ctx, name, func(u *v1.User) error {
		u.Spec = v1.UserSpec{Name: u.Spec.Name, Disabled: true, Removed: true}
		endSessions(u)
		return nil
	})
	again := errors.Is(err, ErrNoUser) && d.wasRemoved(name)
	if err != nil && !again {
		return err
	}
	n, cleared := d.clear(ctx, name)
	if again && cleared == nil && n == 0 {
		return err
	}
	return cleared
}

func (d *Directory) wasRemoved(name string) bool {
	u := d.snapshot().taken[v1.FoldName(name)]
	return u != nil && u.Spec.Removed && u.Spec.Name == name
}

// PutGroup makes a group or changes it. One that was read from the API server and is gone by now is not made again: ErrNoGroup.
func (d *Directory) PutGroup(ctx context.Context, g *v1.Group) (*v1.Group, error) {
	return d.writeGroup(ctx, g, d.putGroup)
}

// NewGroup makes a group: ErrExists where there is one, whatever it grants.
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

// writeGroup checks a group and writes it under the Lease of administrators: it may grant or take away what makes one.
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

// ChangeGroup makes a group where isNew is set, which must not be there, else it changes one that is. change may be called more than once.
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
			return invalid("virtual clusters", "%q is there twice, or has no name", vc.Name)
		}
		seen[vc.Name] = true
	}
	return nil
}

// putGroup creates or writes a group.
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

// createGroup creates a group that must not be there. Whoever still names an earlier one of that name is taken out first.
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

// leave takes everyone out of a group that isn't there.
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
	return nil
}

// DeleteGroup deletes a group and takes its members out of it: ErrProtected for default and for the last group of administrators.
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

// deleteUser deletes the object of a person who was removed.
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
