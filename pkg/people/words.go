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

// maxExternal is the maximum number of a provider's groups that are stored for one person.
const maxExternal = 1000

// RecordAnswer writes a provider's answer about a person to the User, and returns the changed person. It removes answers about identities that are no
// longer linked.
func (d *Directory) RecordAnswer(ctx context.Context, p *Person, said v1.External) (*Person, error) {
	if err := d.writeWord(ctx, p, said, func(*v1.User) bool { return true }); err != nil {
		return nil, err
	}
	return d.Person(p.Name)
}

// ExpireAnswer writes the remaining part of an expired answer to the User. It does nothing if the User has a newer answer or no longer exists.
func (d *Directory) ExpireAnswer(ctx context.Context, p *Person, said v1.External) error {
	err := d.writeWord(ctx, p, said, func(u *v1.User) bool {
		last := wordOn(u, v1.Identity{Provider: said.Provider, Subject: said.Subject})
		return last.CheckedAt.Equal(&said.CheckedAt)
	})
	if errors.Is(err, ErrNoUser) {
		return nil
	}
	return err
}

// writeWord writes a provider's answer about a person if may returns true for the current User.
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

// live reads a person's User from the API server. It returns ErrNoUser if the User doesn't exist or the name now belongs to a different person.
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

// Remains checks with the API server that a person still exists and isn't disabled, because the watched data may be outdated. Otherwise it returns
// ErrNoUser.
func (d *Directory) Remains(ctx context.Context, p *Person) error {
	u, err := d.live(ctx, p)
	if err == nil && u.Spec.Disabled {
		return noUser(p.Name)
	}
	return err
}

// patchVersion patches the status of a User. It returns a conflict error if the User has changed since it was read.
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

// LastAnswer returns a provider's last answer about an identity of the person. If no answer is stored, only the identity's fields are set.
func (p *Person) LastAnswer(id v1.Identity) v1.External { return wordOn(p.User, id) }

func wordOn(u *v1.User, id v1.Identity) v1.External {
	for _, e := range u.Status.External {
		if e.Provider == id.Provider && e.Subject == id.Subject {
			return e
		}
	}
	return v1.External{Provider: id.Provider, Subject: id.Subject}
}

// KeepRefresh stores the refresh token for an identity of a person. If refresh is unset, it deletes the stored token.
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

// StoredToken is a stored refresh token.
type StoredToken struct {
	Refresh secret.String
	version string
}

// Same reports whether two Kept values are the same stored token. If so, no other token was stored in between.
func (k StoredToken) Same(other StoredToken) bool { return k.version == other.version }

// Refresh returns the stored refresh token for an identity of a person, or the zero Kept if no token is stored.
func (d *Directory) Refresh(ctx context.Context, p *Person, id v1.Identity) (StoredToken, error) {
	s, err := d.core.CoreV1().Secrets(v1.Namespace).Get(ctx, v1.RefreshName(id), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && string(s.Data[keyUID]) != string(p.UID) {
		return StoredToken{}, nil
	}
	if err != nil {
		return StoredToken{}, explain(fmt.Errorf("read the Secret %s: %w", v1.RefreshName(id), err))
	}
	return StoredToken{secret.String(s.Data[keyAll]), s.ResourceVersion}, nil
}

// NextRefresh replaces the stored refresh token with the issuer's next token, and returns the next token. If another sign-in has stored a different
// token since, NextRefresh doesn't store next, and returns was.
func (d *Directory) NextRefresh(ctx context.Context, p *Person, id v1.Identity, was StoredToken, next secret.String) (StoredToken, error) {
	s := refreshSecret(p, id, next)
	s.ResourceVersion = was.version
	written, err := d.core.CoreV1().Secrets(v1.Namespace).Update(ctx, s, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return was, nil
	}
	if err != nil {
		return was, explain(fmt.Errorf("write the Secret %s: %w", s.Name, err))
	}
	return StoredToken{next, written.ResourceVersion}, nil
}

func refreshSecret(p *Person, id v1.Identity, refresh secret.String) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: v1.RefreshName(id), Namespace: v1.Namespace, Labels: labels(v1.SecretRefresh, p.Name)},
		Data:       map[string][]byte{keyUID: []byte(p.UID), keyAll: []byte(refresh.Reveal())},
	}
}
