package bundle

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParseManifest checks that the parser never panics, and that an accepted manifest contains no path outside of the bundle's folder.
func FuzzParseManifest(f *testing.F) {
	f.Add([]byte("apiVersion: paictl.openpai.org/v1\nkind: Bundle\nkubernetes: v1\narch: amd64\norigin: build\nartifacts:\n" +
		"- {name: a, version: v1, kind: binary, path: bin/a, source: s, sha256: " + strings.Repeat("ab", 32) + ", size: 1}\n"))
	f.Add([]byte("artifacts: [&a {name: *a}]"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest("manifest.yaml", data)
		if err != nil {
			return
		}
		for _, a := range m.Artifacts {
			if rel, err := filepath.Rel("/b", filepath.Join("/b", a.Path)); err != nil || strings.HasPrefix(rel, "..") {
				t.Errorf("%q leaves the folder", a.Path)
			}
		}
	})
}
