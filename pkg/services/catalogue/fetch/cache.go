package fetch

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/openpai/paictl/pkg/services/catalogue"
)

// cache is a folder that only the user can read. cache stores archives by digest, and maps each reference to a digest. Errors are ignored, because
// charts can be downloaded again.
type cache string

func newCache(dir string) cache {
	if dir == "" {
		home, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, "paictl", "charts")
	}
	return cache(dir)
}

// get returns the archive of a reference, or nil if the archive isn't in the cache. A reference without version and digest is never cached, because
// the chart may change at any time.
func (c cache) get(ref catalogue.ChartRef) []byte {
	if c == "" || ref.Version == "" && ref.Digest == "" {
		return nil
	}
	name, err := os.ReadFile(c.reference(ref))
	if err != nil {
		return nil
	}
	digest := string(name)
	data, err := os.ReadFile(c.archive(digest))
	if err != nil || digestOf(data) != digest {
		return nil
	}
	return data
}

// put stores an archive. The caller must have checked the archive against the reference.
func (c cache) put(ref catalogue.ChartRef, data []byte) {
	if c == "" || ref.Version == "" && ref.Digest == "" {
		return
	}
	digest := digestOf(data)
	if os.MkdirAll(string(c), 0o700) != nil || renameio.WriteFile(c.archive(digest), data, 0o600) != nil {
		return
	}
	_ = renameio.WriteFile(c.reference(ref), []byte(digest), 0o600)
}

func (c cache) archive(digest string) string {
	return filepath.Join(string(c), filepath.Base(strings.Replace(digest, ":", "-", 1))+".tgz")
}

func (c cache) reference(ref catalogue.ChartRef) string {
	key := digestOf([]byte(strings.Join([]string{ref.Chart, ref.Version, ref.Digest}, "\n")))
	return filepath.Join(string(c), strings.Replace(key, ":", "-", 1)+".ref")
}

// fromBundle returns the archive with the given digest in the folder charts of a bundle, or nil.
func fromBundle(dir, digest string) []byte {
	if dir == "" || digest == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "charts", "*.tgz"))
	if err != nil {
		return nil
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && digestOf(data) == digest {
			return data
		}
	}
	return nil
}
