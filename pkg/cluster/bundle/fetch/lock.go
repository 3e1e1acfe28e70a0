package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/google/renameio/v2"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/hint"
)

const lockKind = "BundleLock"

// lockFile records the checksums of earlier downloads by their upstream URL or reference. A later fetch, from any mirror, gets the same content or
// fails. Users should put the file under version control.
type lockFile struct {
	path string
	mu   sync.Mutex
	sums map[string]string // URL or image reference → sha256:…
}

type lockDoc struct {
	APIVersion string      `yaml:"apiVersion"`
	Kind       string      `yaml:"kind"`
	Entries    []lockEntry `yaml:"entries"`
}

type lockEntry struct {
	URL    string `yaml:"url"`
	Digest string `yaml:"digest"` // sha256:… of the file, or of the target of an image's tag
}

// ChangedError means that downloaded content doesn't match the checksum in the lock file.
type ChangedError struct {
	URL, Locked, Got, File string
}

// Error returns a message with both checksums.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s is now %s, but %s says %s", e.URL, e.Got, e.File, e.Locked)
}

func readLock(path string) (*lockFile, error) {
	l := &lockFile{path: path, sums: map[string]string{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read lock: %w", err)
	}
	var doc lockDoc
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if doc.APIVersion != bundle.APIVersion || doc.Kind != lockKind {
		return nil, fmt.Errorf("read %s: apiVersion and kind are %q %q, want %q %q", path, doc.APIVersion, doc.Kind, bundle.APIVersion, lockKind)
	}
	for i, e := range doc.Entries {
		if sum, ok := strings.CutPrefix(e.Digest, "sha256:"); e.URL == "" || !ok || !isSum(sum) {
			return nil, fmt.Errorf("read %s: entries[%d] needs url and a digest sha256:…", path, i)
		}
		if _, twice := l.sums[e.URL]; twice {
			return nil, fmt.Errorf("read %s: entries[%d]: %s is listed twice", path, i, e.URL)
		}
		l.sums[e.URL] = e.Digest
	}
	return l, nil
}

// get returns the locked digest for a URL or reference, or "".
func (l *lockFile) get(url string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sums[url]
}

// check returns an error if a digest differs from the locked digest. It returns nil if no digest is locked.
func (l *lockFile) check(url, digest string) error {
	locked := l.get(url)
	if locked == "" || locked == digest {
		return nil
	}
	return hint.Wrap(&ChangedError{URL: url, Locked: locked, Got: digest, File: l.path},
		"find out why it changed; to accept the change, remove its entry from "+l.path+" and fetch again")
}

func (l *lockFile) record(url, digest string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sums[url] == digest {
		return nil
	}
	l.sums[url] = digest
	doc := lockDoc{APIVersion: bundle.APIVersion, Kind: lockKind}
	for _, u := range slices.Sorted(maps.Keys(l.sums)) {
		doc.Entries = append(doc.Entries, lockEntry{URL: u, Digest: l.sums[u]})
	}
	data, err := yaml.Marshal(doc)
	if err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	if err := renameio.WriteFile(l.path, data, 0o644); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	return nil
}
