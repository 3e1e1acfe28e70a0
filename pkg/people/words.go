package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// maxExternal is how many groups of a provider are kept of one person.
const maxExternal = 1000

// NoteWord writes what a provider says of a person, at a time, and returns the person as they are with it. What was said of identities that they
// have no longer goes.
func (d *Directory) NoteWord(ctx context.Context, p *Person, said v1.External) (*Person, error) {
	if err := d.writeWord(ctx, p, said, func(*v1.User) bool { return true }); err != nil {
		return nil, err
	}
	return d.Person(p.Name)
}

// EndWord writes what is left of a word that is too old, unless the provider has said something since or the person is gone.
func (d *Directory) EndWord(ctx context.Context, p *Person, said v1.External) error {
	err := d.writeWord(ctx, p, said, func(u *v1.User) bool {
		last := wordOn(u, v1.Identity{Provider: said.Provider, Subject: said.Subject})
		return last.CheckedAt.Equal(&said.CheckedAt)
	})
	if errors.Is(err, ErrNoUser) {
		return nil
	}
	return err
}

// writeWord writes what a provider says of a person, if the User as it is then may have it.
func (d *Directory) writeWord(ctx context.Context, p *Person, said v1.External, may func(*v1.User) bool) error {
	said.Groups = slices.Compact(sorted(said.Groups))
	said.CheckedAt = metav1.NewTime(said.CheckedAt.UTC().Truncate(time.Second))
	if len(said.Groups) > maxExternal {
		return invalid("groups", "%s says that %s is in more than %d groups", said.Provider, p.Name, maxExternal)
	}
	var err error
	for range tries {
		var u *v1.User
		if u, err = d.live(ctx, p); err != nil {
			return err
		}
		if !may(u) {
			return nil
		}
		external := slices.DeleteFunc(slices.Clone(u.Status.External), func(e v1.External) bool {
			return e.Provider == said.Provider && e.Subject == said.Subject || !linked(u, e)
		})
		if linked(u, said) {
			external = append(external, said)
		}
		if err = d.patchVersion(ctx, u, map[string]any{"external": external}); !apierrors.IsConflict(err) {
			return explain(err)
		}
	}
	return explain(err)
}

// live reads a User from the API server; ErrNoUser where it is another one's by now.
func (d *Directory) live(ctx context.Context, p *Person) (*v1.User, error) {
	object, err := d.api.Resource(v1.Users).Get(ctx, p.User.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && object.GetUID() != p.UID {
		return nil, noUser(p.Name)
	}
	if err != nil {
		return nil, explain(fmt.Errorf("read the User of %s: %w", p.Name, err))
	}
	return decodeUser(object)
}

// Remains reads from the API server whether a person is still there and not disabled, whatever is known here: ErrNoUser says no.
func (d *Directory) Remains(ctx context.Context, p *Person) error {
	u, err := d.live(ctx, p)
	if err == nil && u.Spec.Disabled {
		return noUser(p.Name)
	}
	return err
}

// patchVersion changes the status of a User that is still as it was read.
func (d *Directory) patchVersion(ctx context.Context, u *v1.User, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": u.ResourceVersion}, "status": status})
	if err != nil {
		return err
	}
	written, err := d.api.Resource(v1.Users).Patch(ctx, u.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err == nil {
		d.users.Put(written)
	}
	return err
}

// Said is what a provider said last of an identity of the person; the zero External where it said nothing.
func (p *Person) Said(id v1.Identity) v1.External { return wordOn(p.User, id) }

func wordOn(u *v1.User, id v1.Identity) v1.External {
	for _, e := range u.Status.External {
		if e.Provider == id.Provider && e.Subject == id.Subject {
			return e
		}
	}
	return v1.External{Provider: id.Provider, Subject: id.Subject}
}

// KeepRefresh keeps what a provider is asked with again about a person. Unset, what was kept goes.
func (d *Directory) KeepRefresh(ctx context.Context, p *Person, id v1.Identity, refresh secret.String) error {
	if !refresh.IsSet() {
		err := d.core.CoreV1().Secrets(v1.Namespace).Delete(ctx, v1.RefreshName(id), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return explain(fmt.Errorf("delete the Secret %s: %w", v1.RefreshName(id), err))
		}
		return nil
	}
	return d.putSecret(ctx, refreshSecret(p, id, refresh))
}

// Kept is what KeepRefresh kept.
type Kept struct {
	Refresh secret.String
	version string
}

// Same reports whether nothing else was kept between the two.
func (k Kept) Same(other Kept) bool { return k.version == other.version }

// Refresh is what KeepRefresh kept; unset where there is none.
func (d *Directory) Refresh(ctx context.Context, p *Person, id v1.Identity) (Kept, error) {
	s, err := d.core.CoreV1().Secrets(v1.Namespace).Get(ctx, v1.RefreshName(id), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && string(s.Data[keyUID]) != string(p.UID) {
		return Kept{}, nil
	}
	if err != nil {
		return Kept{}, explain(fmt.Errorf("read the Secret %s: %w", v1.RefreshName(id), err))
	}
	return Kept{secret.String(s.Data[keyAll]), s.ResourceVersion}, nil
}

// NextRefresh keeps what an issuer gave in place of what was kept, and returns that. Where another sign-in of the person has kept something else
// meanwhile, it keeps nothing, and returns what was.
func (d *Directory) NextRefresh(ctx context.Context, p *Person, id v1.Identity, was Kept, next secret.String) (Kept, error) {
	s := refreshSecret(p, id, next)
	s.ResourceVersion = was.version
	written, err := d.core.CoreV1().Secrets(v1.Namespace).Update(ctx, s, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return was, nil
	}
	if err != nil {
		return was, explain(fmt.Errorf("write the Secret %s: %w", s.Name, err))
	}
	return Kept{next, written.ResourceVersion}, nil
}

func refreshSecret(p *Person, id v1.Identity, refresh secret.String) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: v1.RefreshName(id), Namespace: v1.Namespace, Labels: labels(v1.SecretRefresh, p.Name)},
		Data:       map[string][]byte{keyUID: []byte(p.UID), keyAll: []byte(refresh.Reveal())},
	}
}
