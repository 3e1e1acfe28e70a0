package people

import (
	"context"
	"fmt"
	"net/mail"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/people/password"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// tries is the maximum number of tries of a change after conflicts.
const tries = 8

// Add adds a person. It returns ErrExists if the name is or was in use. Names that differ only in case count as the same name.
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
	if err := d.unowned(ctx, n); err != nil {
		return nil, err
	}
	if gone := d.snapshot().taken[v1.FoldName(n.Name)]; gone != nil { // the name was removed, and the caller knows that
		if err := d.removeTemplates(ctx, gone.Spec.Name); err != nil {
			return nil, explain(err)
		}
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

// CheckNew returns the reason why a person can't be added, or nil. It sends no requests to the API server.
func (d *Directory) CheckNew(n NewUser) error {
	switch {
	case !v1.ValidName(n.Name):
		return invalid("name", "%q can't be a name: take 1 to %d letters, digits, - _ and ., beginning and ending with a letter or digit", n.Name, v1.MaxName)
	case v1.Reserved(n.Name):
		return invalid("name", "%s stands for something else", n.Name)
	case n.Vouched && v1.Powerful(n.Name):
		return invalid("name", "only an administrator gives the name %s", n.Name)
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

// unowned rejects a name that owns jobs. Anyone with a kubeconfig can submit jobs under any name. The new person would own these jobs, and the
// folders with that name on storages. People from another system aren't checked, because the jobs are their own. If the history of jobs can't be
// queried, an administrator may add the person, but a provider may not.
func (d *Directory) unowned(ctx context.Context, n NewUser) error {
	if d.o.Owns == nil || n.TakeOver || n.From != "" {
		return nil
	}
	owns, err := d.o.Owns(ctx, n.Name)
	if err != nil && n.Vouched {
		return fmt.Errorf("%w: see whether jobs belong to %s: %w", ErrUnavailable, n.Name, err)
	}
	if !owns || err != nil {
		return nil //nolint:nilerr // see above
	}
	return hint.Errorf("use another name; or give the person these jobs, and the folders of that name on storages: paictl user add "+n.Name+" --take-over-history",
		"%w: jobs belong to %s", ErrExists, n.Name)
}

func taken(name string, by *v1.User) error {
	switch {
	case by.Spec.Removed:
		return hint.Errorf("use another name; or give the new person the jobs and files of the earlier one: paictl user add "+name+" --take-over-history",
			"%w: %s is the name of a person who was removed", ErrExists, by.Spec.Name)
	case by.Spec.Name != name:
		return fmt.Errorf("%w: %s, which differs in case only", ErrExists, by.Spec.Name)
	}
	return fmt.Errorf("%w: %s", ErrExists, name)
}

// check validates a person's fields. was is nil for a new person. Existing people may keep values that became invalid.
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
	if vc := now.DefaultVirtualCluster; vc != was.DefaultVirtualCluster && vc != "" && len(validation.IsValidLabelValue(vc)) > 0 {
		return invalid("default virtual cluster", "%q is not the name of a virtual cluster", vc)
	}
	if err := checkNotifications(now.Notifications); err != nil {
		return err
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

// Update changes a person. It may call change more than once.
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

// RecordImport records in an annotation which data of a person was imported from another system.
func (d *Directory) RecordImport(ctx context.Context, name, what string) error {
	_, err := d.update(ctx, name, func(u *v1.User) error {
		metav1.SetMetaDataAnnotation(&u.ObjectMeta, AnnotationTaken, what)
		return nil
	})
	return err
}

// CheckUpdate returns the error that Update would return. It sends no requests to the API server.
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

// update changes a User. It acquires the Lease of administrators if the change could remove an administrator.
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

// writeUser writes a changed User. If the change could remove an administrator, writeUser checks under the Lease that an administrator remains.
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

// CheckPassword returns the reason why a person can't have a password, or nil.
func CheckPassword(name string, p secret.String) error {
	if err := password.Check(p, name); err != nil {
		return invalid("password", "%w", err)
	}
	return nil
}

// SetPassword sets a person's password and ends all of the person's sessions. Application tokens stay valid.
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
	// Write the password first. Sessions that begin with the new password have a higher number, so they stay valid when the earlier sessions end.
	if err := d.putPassword(ctx, who.User, password.Hash(p), who.Sessions+1); err != nil {
		return err
	}
	if _, err := d.update(ctx, name, func(u *v1.User) error {
		if sessions(u) <= who.Sessions {
			endSessions(u)
		}
		return nil
	}); err != nil {
		return hint.Wrap(fmt.Errorf("the password is set, but earlier sessions may still be valid: %w", err), "set it again")
	}
	return d.endTokens(ctx, name, true)
}

func endSessions(u *v1.User) {
	if u.Annotations == nil {
		u.Annotations = map[string]string{}
	}
	u.Annotations[AnnotationSessions] = strconv.FormatInt(sessions(u)+1, 10)
}

// Disable disables a person and ends the person's sessions if yes is true. Otherwise it enables the person again. Application tokens of a disabled
// person are rejected.
func (d *Directory) Disable(ctx context.Context, name string, yes bool) error {
	_, err := d.Update(ctx, name, func(s *v1.UserSpec) error {
		s.Disabled = yes
		return nil
	})
	return err
}
