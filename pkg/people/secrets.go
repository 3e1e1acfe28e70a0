package people

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// Keys in the data of the Secret of a password.
const (
	keyHash      = "hash"
	keyUID       = "uid"
	keyChanged   = "changed"
	keyFailures  = "failures"
	keyNotBefore = "notBefore"
	keySessions  = "sessions"
)

// Password is the stored data of a person's password.
type Password struct {
	Hash string
	// Sessions is the number for sessions that begin with this password.
	Sessions int64
	// Failures is the number of consecutive failed attempts. The password isn't checked before NotBefore.
	Failures  int
	NotBefore time.Time
	version   string
}

func labels(kind, user string) map[string]string {
	return map[string]string{v1.LabelPeople: kind, v1.LabelUser: user}
}

// Password reads the stored data of a person's password from the API server. It returns nil if the person has no password.
func (d *Directory) Password(ctx context.Context, p *Person) (*Password, error) {
	s, err := d.core.CoreV1().Secrets(v1.Namespace).Get(ctx, v1.PasswordName(p.Name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(fmt.Errorf("read the password of %s: %w", p.Name, err))
	}
	if string(s.Data[keyUID]) != string(p.UID) { // it belongs to an earlier person of that name
		return nil, nil
	}
	out := &Password{Hash: string(s.Data[keyHash]), version: s.ResourceVersion}
	out.Failures, _ = strconv.Atoi(string(s.Data[keyFailures]))
	out.NotBefore, _ = time.Parse(time.RFC3339Nano, string(s.Data[keyNotBefore]))
	out.Sessions, _ = strconv.ParseInt(string(s.Data[keySessions]), 10, 64)
	return out, nil
}

// StorePassword stores the number of failures, the time of the next attempt, and a new hash of the same password. It reports whether it stored them.
// It stores nothing if the Secret has changed since it was read.
func (d *Directory) StorePassword(ctx context.Context, p *Person, w *Password) (bool, error) {
	s := passwordSecret(p.User, w.Hash, w.Sessions)
	s.ResourceVersion = w.version
	s.Data[keyFailures] = []byte(strconv.Itoa(w.Failures))
	if !w.NotBefore.IsZero() {
		s.Data[keyNotBefore] = []byte(w.NotBefore.UTC().Format(time.RFC3339Nano))
	}
	_, err := d.core.CoreV1().Secrets(v1.Namespace).Update(ctx, s, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, explain(err)
}

func passwordSecret(u *v1.User, hash string, sessions int64) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: v1.PasswordName(u.Spec.Name), Namespace: v1.Namespace, Labels: labels(v1.SecretPassword, u.Spec.Name)},
		Data: map[string][]byte{
			keyHash: []byte(hash), keyUID: []byte(u.UID), keyChanged: []byte(time.Now().UTC().Format(time.RFC3339)), keySessions: []byte(strconv.FormatInt(sessions, 10)),
		},
	}
}

// SetHash stores a password hash for a person without a password, and reports whether it stored the hash.
func (d *Directory) SetHash(ctx context.Context, p *Person, hash string) (bool, error) {
	_, err := d.core.CoreV1().Secrets(v1.Namespace).Create(ctx, passwordSecret(p.User, hash, p.Sessions), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, explain(err)
}

// putPassword creates or replaces the hash of a person's password.
func (d *Directory) putPassword(ctx context.Context, u *v1.User, hash string, sessions int64) error {
	return d.putSecret(ctx, passwordSecret(u, hash, sessions))
}

func (d *Directory) putSecret(ctx context.Context, s *corev1.Secret) error {
	secrets := d.core.CoreV1().Secrets(v1.Namespace)
	_, err := secrets.Update(ctx, s, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		if _, err = secrets.Create(ctx, s, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
			_, err = secrets.Update(ctx, s, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return explain(fmt.Errorf("write the Secret %s/%s: %w", v1.Namespace, s.Name, err))
	}
	return nil
}

// endTokens deletes the records of a person's tokens. If keepApplication is true, it keeps application tokens.
func (d *Directory) endTokens(ctx context.Context, name string, keepApplication bool) error {
	_, err := d.deleteSecrets(ctx, v1.LabelPeople+"="+v1.SecretToken+","+v1.LabelUser+"="+name, func(s *corev1.Secret) bool {
		return !keepApplication || string(s.Data["kind"]) != "application"
	})
	return err
}

// clear deletes all Secrets of a person, and returns their number.
func (d *Directory) clear(ctx context.Context, name string) (int, error) {
	if err := d.dropWebhook(ctx, name); err != nil {
		return 0, err
	}
	return d.deleteSecrets(ctx, v1.LabelUser+"="+name, func(*corev1.Secret) bool { return true })
}

func (d *Directory) deleteSecrets(ctx context.Context, selector string, which func(*corev1.Secret) bool) (n int, err error) {
	secrets := d.core.CoreV1().Secrets(v1.Namespace)
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return 0, explain(fmt.Errorf("list the Secrets of a person: %w", err))
	}
	for i := range list.Items {
		s := &list.Items[i]
		if !which(s) {
			continue
		}
		err := secrets.Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return n, explain(fmt.Errorf("delete the Secret %s: %w", s.Name, err))
		}
		n++
		d.revoked.tell(s.Name, s.UID)
	}
	return n, nil
}

// keyAll is the key of a Secret with a single value.
const keyAll = "value"

// maxExtension limits the data that clients store for a person, in bytes.
const maxExtension = 256 << 10

// Extension returns the data that OpenPAI's clients have stored for a person.
func (d *Directory) Extension(ctx context.Context, name string) (Extension, error) {
	p, err := d.Person(name)
	if err != nil {
		return nil, err
	}
	out, _, err := d.extension(ctx, p)
	return out, err
}

func (d *Directory) extension(ctx context.Context, p *Person) (Extension, string, error) {
	s, err := d.core.CoreV1().Secrets(v1.Namespace).Get(ctx, v1.ExtensionName(p.Name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Extension{}, "", nil
	}
	if err != nil {
		return nil, "", explain(fmt.Errorf("read the extension of %s: %w", p.Name, err))
	}
	out := Extension{}
	if types.UID(s.Data[keyUID]) == p.UID {
		if err := json.Unmarshal(s.Data[keyAll], &out); err != nil {
			return nil, "", fmt.Errorf("the Secret %s can't be read: it has no JSON object", s.Name)
		}
	}
	return out, s.ResourceVersion, nil
}

// MergeExtension sets the given keys of a person's extension. A null value removes the key.
func (d *Directory) MergeExtension(ctx context.Context, name string, change Extension) (Extension, error) {
	p, err := d.Person(name)
	if err != nil {
		return nil, err
	}
	for range tries {
		var have Extension
		var version string
		if have, version, err = d.extension(ctx, p); err != nil {
			return nil, err
		}
		maps.Copy(have, change)
		maps.DeleteFunc(have, func(_ string, v json.RawMessage) bool { return len(v) == 0 || string(v) == "null" })
		text, err := json.Marshal(have)
		if err != nil {
			return nil, invalid("extension", "it is not JSON")
		}
		if len(text) > maxExtension {
			return nil, invalid("extension", "it is larger than %d KiB", maxExtension>>10)
		}
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: v1.ExtensionName(name), Namespace: v1.Namespace, Labels: labels(v1.SecretExtension, name), ResourceVersion: version},
			Data:       map[string][]byte{keyAll: text, keyUID: []byte(p.UID)},
		}
		secrets := d.core.CoreV1().Secrets(v1.Namespace)
		if version == "" {
			_, err = secrets.Create(ctx, s, metav1.CreateOptions{})
		} else {
			_, err = secrets.Update(ctx, s, metav1.UpdateOptions{})
		}
		if err == nil {
			return have, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return nil, explain(err)
		}
	}
	return nil, explain(err)
}
