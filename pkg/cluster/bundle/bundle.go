package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/openpai/paictl/pkg/hint"
)

// DefaultDir is the default folder in which commands find or create a bundle.
const DefaultDir = "dist/bundle"

// Bundle is an existing bundle: a folder of artifacts with a manifest.
type Bundle struct {
	dir      string
	manifest Manifest
	// cacheFile is the file that records which files were already hashed; "" disables the cache.
	cacheFile string
}

// Open reads the manifest of the bundle in dir. Unlike Verify and VerifyArtifacts, it doesn't hash the files.
func Open(dir string) (*Bundle, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open bundle %s: %w", dir, err)
	}
	file := filepath.Join(abs, ManifestFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Errorf("run: paictl bundle build -o "+hint.Quote(dir), "%s contains no finished bundle (no %s)", dir, ManifestFile)
	}
	if err != nil {
		return nil, fmt.Errorf("open bundle: %w", err)
	}
	m, err := ParseManifest(file, data)
	if err != nil {
		return nil, hint.Wrap(err, "paictl writes the manifest; run: paictl bundle build -o "+hint.Quote(dir))
	}
	return &Bundle{dir: abs, manifest: *m, cacheFile: defaultCacheFile()}, nil
}

// Dir returns the bundle's folder as an absolute path.
func (b *Bundle) Dir() string { return b.dir }

// Manifest returns the whole manifest.
func (b *Bundle) Manifest() Manifest { return b.manifest }

// Lookup returns the artifact with a kind and a name, and whether it exists.
func (b *Bundle) Lookup(kind, name string) (Artifact, bool) {
	for _, a := range b.manifest.Artifacts {
		if a.Kind == kind && a.Name == name {
			return a, true
		}
	}
	return Artifact{}, false
}

// List returns the artifacts of a kind in the manifest's order. If kind is "", it returns all artifacts.
func (b *Bundle) List(kind string) []Artifact {
	var out []Artifact
	for _, a := range b.manifest.Artifacts {
		if kind == "" || a.Kind == kind {
			out = append(out, a)
		}
	}
	return out
}

// File returns the absolute path of an artifact's file.
func (b *Bundle) File(a Artifact) string {
	return filepath.Join(b.dir, filepath.FromSlash(a.Path))
}

// defaultCacheFile returns the path of the cache in the user's cache folder, or "" if the folder can't be determined.
func defaultCacheFile() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "paictl", "verified.json")
}
