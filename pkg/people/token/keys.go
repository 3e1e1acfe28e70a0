package token

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

const (
	// spread is the time before a new key signs, so that all replicas have the key when its first signature arrives.
	spread = time.Minute
	// keep is the time for which a retired key is still accepted. It equals the longest lifetime of a token that is verified only by its signature.
	keep = 7 * 24 * time.Hour
)

// key is a signing key. Retired is the time from which the key no longer signs.
type key struct {
	Seed    []byte    `json:"seed"`
	Created time.Time `json:"created"`
	Retired time.Time `json:"retired,omitzero"`
}

// keyring holds all signing keys by the key id that tokens contain.
type keyring map[string]key

const keysOf = "keys"

func parseKeys(data []byte) (keyring, error) {
	out := keyring{}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("the signing keys can't be read") // the JSON error may contain parts of the keys
	}
	for id, k := range out {
		if len(k.Seed) != ed25519.SeedSize || id == "" {
			return nil, fmt.Errorf("the signing key %q has a wrong size", id)
		}
	}
	return out, nil
}

// signing returns the newest key that all replicas have, or the oldest key if no key is old enough.
func (r keyring) signing(now time.Time) (string, ed25519.PrivateKey) {
	ids := slices.SortedFunc(maps.Keys(r), func(a, b string) int { return cmp.Or(r[b].Created.Compare(r[a].Created), cmp.Compare(a, b)) })
	ids = slices.DeleteFunc(ids, func(id string) bool { return !r[id].Retired.IsZero() && !now.Before(r[id].Retired) })
	if len(ids) == 0 {
		return "", nil
	}
	for _, id := range ids {
		if now.Sub(r[id].Created) >= spread {
			return id, ed25519.NewKeyFromSeed(r[id].Seed)
		}
	}
	last := ids[len(ids)-1]
	return last, ed25519.NewKeyFromSeed(r[last].Seed)
}

// public returns the public key with the given id, if the key is still valid.
func (r keyring) public(id string, now time.Time) (ed25519.PublicKey, bool) {
	k, ok := r[id]
	if !ok || !k.Retired.IsZero() && now.Sub(k.Retired) > keep {
		return nil, false
	}
	return ed25519.NewKeyFromSeed(k.Seed).Public().(ed25519.PublicKey), true
}

// rotated returns the keyring with a new key. The earlier keys retire when all replicas have the new key. rotated removes keys that retired long ago.
func (r keyring) rotated(now time.Time) keyring {
	out := maps.Clone(r)
	maps.DeleteFunc(out, func(_ string, k key) bool { return !k.Retired.IsZero() && now.Sub(k.Retired) > keep })
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // it never fails
	for id, k := range out {
		if k.Retired.IsZero() {
			k.Retired = now.Add(spread)
			out[id] = k
		}
	}
	out[rand.Text()[:10]] = key{Seed: seed, Created: now}
	return out
}

// due reports whether a new key should be created, because each active key is at least as old as every.
func (r keyring) due(now time.Time, every time.Duration) bool {
	young := false
	for _, k := range r {
		young = young || k.Retired.IsZero() && now.Sub(k.Created) < every
	}
	return !young
}

// keys returns the signing keys. It creates the first key if no key exists.
func (s *Service) keys(ctx context.Context) (keyring, error) {
	if have, ok := s.objects.Get(v1.SigningKeys); ok && len(have.keys) > 0 {
		return have.keys, nil
	}
	return s.changeKeys(ctx, func(have keyring) keyring {
		if len(have) > 0 {
			return have
		}
		return keyring{}.rotated(s.now())
	})
}

// RotateKeys creates a new signing key. If revoke is true, signatures of earlier keys become invalid immediately, and sessions and browser tokens
// end. Application tokens stay valid, because they are identified by their hash.
func (s *Service) RotateKeys(ctx context.Context, revoke bool) error {
	_, err := s.changeKeys(ctx, func(have keyring) keyring {
		if !revoke {
			return have.rotated(s.now())
		}
		return keyring{}.rotated(s.now())
	})
	if err != nil || !revoke {
		return err
	}
	for _, r := range s.Of("") {
		if r.Kind == KindApplication {
			continue
		}
		if err := s.Revoke(ctx, "", r.ID); err != nil && !isNone(err) {
			return err
		}
	}
	return nil
}

// changeKeys replaces the signing keys in the API server with the result of change, and returns the new keys. It doesn't write unchanged keys.
func (s *Service) changeKeys(ctx context.Context, change func(keyring) keyring) (keyring, error) {
	for range tries {
		have, err := s.secrets.Get(ctx, v1.SigningKeys, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return nil, away("read the signing keys", err)
		}
		ring := keyring{}
		if !missing {
			known, err := decode(have)
			if err != nil {
				return nil, err
			}
			ring = known.keys
		}
		next := change(ring)
		if maps.EqualFunc(ring, next, func(a, b key) bool { return a.Created.Equal(b.Created) && a.Retired.Equal(b.Retired) }) {
			s.objects.Put(have)
			return ring, nil
		}
		text, err := json.Marshal(next)
		if err != nil {
			return nil, err
		}
		object, err := toObject(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: v1.SigningKeys, Namespace: v1.Namespace, Labels: map[string]string{v1.LabelPeople: v1.SecretKeys}},
			Data:       map[string][]byte{keysOf: text},
		})
		if err != nil {
			return nil, err
		}
		var out *unstructured.Unstructured
		if missing {
			out, err = s.secrets.Create(ctx, object, metav1.CreateOptions{})
		} else {
			object.SetResourceVersion(have.GetResourceVersion())
			out, err = s.secrets.Update(ctx, object, metav1.UpdateOptions{})
		}
		switch {
		case err == nil:
			s.objects.Put(out)
			return next, nil
		case !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err):
			return nil, away("write the signing keys", err)
		}
	}
	return nil, fmt.Errorf("%w: the signing keys change all the time", people.ErrUnavailable)
}
