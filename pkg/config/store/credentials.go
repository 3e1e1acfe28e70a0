package store

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
)

// credentials maps files to the secrets that were removed from them.
type credentials map[string][]part

func (c credentials) empty() bool { return len(c) == 0 }

func (c credentials) equal(o credentials) bool {
	return maps.EqualFunc(c, o, slices.Equal[[]part])
}

// newEntry encodes credentials as an entry of the Secret. The name of the entry is unique to a push. If two pushes run at the same time, each push
// writes an entry. The ConfigMap contains the name of the valid entry.
func newEntry(number int, c credentials) (name string, value []byte, err error) {
	if value, err = json.Marshal(c); err != nil {
		return "", nil, fmt.Errorf("write the credentials: %w", err)
	}
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	name = fmt.Sprintf("r%d-%s.json", number, hex.EncodeToString(random))
	if len(value) < minCompressed {
		return name, value, nil
	}
	if value, err = compress(value); err != nil {
		return "", nil, fmt.Errorf("compress the credentials: %w", err)
	}
	return name + gzipSuffix, value, nil
}

func readEntry(secret *corev1.Secret, r Revision) (credentials, error) {
	if r.Credentials == "" {
		return credentials{}, nil
	}
	var value []byte
	if secret != nil {
		value = secret.Data[r.Credentials]
	}
	if value == nil {
		return nil, errNoEntry(r)
	}
	if strings.HasSuffix(r.Credentials, gzipSuffix) {
		var err error
		if value, err = decompress(value); err != nil {
			return nil, fmt.Errorf("read the entry %s of Secret %s: %w", r.Credentials, SecretName, err)
		}
	}
	var out credentials
	if err := json.Unmarshal(value, &out); err != nil {
		// Drop the decoder's message, because it may quote the content.
		return nil, fmt.Errorf("read the entry %s of Secret %s: paictl did not write its content", r.Credentials, SecretName)
	}
	return out, nil
}

func errNoEntry(r Revision) error {
	return hint.Errorf("push a folder that has the passwords, with --force",
		"the passwords of revision %d are gone: Secret %s has %w %s", r.Number, SecretName, errEntry, r.Credentials)
}

// withEntry returns the Secret with a new entry, and the revisions of the history whose entries still fit into the Secret. It removes the oldest
// entries if the Secret would become too large. It also removes entries of failed pushes: those for an earlier revision that no revision refers to.
func withEntry(old *corev1.Secret, name string, value []byte, current int, history []Revision) (*corev1.Secret, []Revision, error) {
	if len(name)+len(value) > maxObject {
		return nil, nil, hint.Errorf("use one key or password for many machines", "the passwords have %d KiB when compressed, but Kubernetes stores at most %d KiB in one Secret",
			len(value)>>10, maxObject>>10)
	}
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: SecretName, Namespace: kube.SystemNamespace,
		Labels: map[string]string{labelManagedBy: managedBy}}}
	if old != nil {
		out = old.DeepCopy()
	}
	out.Data = map[string][]byte{name: value}
	size := len(name) + len(value)
	put := func(key string) bool {
		if _, there := out.Data[key]; there || key == "" {
			return true
		}
		v, ok := entryOf(old, key)
		if !ok {
			return true // already removed; reading that revision reports it
		}
		if size+len(key)+len(v) > maxObject {
			return false
		}
		size += len(key) + len(v)
		out.Data[key] = v
		return true
	}
	kept := len(history)
	for i, r := range history {
		if !put(r.Credentials) {
			kept = i
			break
		}
	}
	if old != nil {
		for key := range old.Data {
			if entryNumber(key) > current {
				put(key) // an entry of a concurrent push; if it doesn't fit, that push is rejected
			}
		}
	}
	return out, history[:kept], nil
}

func entryOf(secret *corev1.Secret, key string) ([]byte, bool) {
	if secret == nil {
		return nil, false
	}
	v, ok := secret.Data[key]
	return v, ok
}

// entryNumber returns the number of an entry's revision, or 0 if paictl didn't create the entry.
func entryNumber(key string) int {
	number, _, _ := strings.Cut(strings.TrimPrefix(key, "r"), "-")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}
