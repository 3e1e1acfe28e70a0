package bundle

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// ParseManifest decodes the manifest of a bundle strictly. An unknown or repeated key, a second document and an invalid value are errors. Errors
// contain the file's name and the position.
func ParseManifest(file string, data []byte) (*Manifest, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var m Manifest
	if err := dec.Decode(&m); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file is empty")
		}
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: more than one document", file)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return &m, nil
}

// check returns one error with all problems in a manifest.
func (m *Manifest) check() error {
	var errs []error
	if m.APIVersion != APIVersion || m.Kind != ManifestKind {
		errs = append(errs, fmt.Errorf("apiVersion and kind are %q %q, want %q %q", m.APIVersion, m.Kind, APIVersion, ManifestKind))
	}
	if m.Kubernetes == "" || m.Arch == "" {
		errs = append(errs, errors.New("kubernetes or arch is empty"))
	}
	if m.Origin != OriginBuild && m.Origin != OriginFetch {
		errs = append(errs, fmt.Errorf("origin is %q, want %s or %s", m.Origin, OriginBuild, OriginFetch))
	}
	if len(m.Artifacts) == 0 {
		errs = append(errs, errors.New("artifacts is empty"))
	}
	names, paths := map[string]bool{}, map[string]bool{}
	for i, a := range m.Artifacts {
		if err := a.check(); err != nil {
			errs = append(errs, fmt.Errorf("artifacts[%d] (%s): %w", i, a.Name, err))
		}
		if id := a.id(); names[id] {
			errs = append(errs, fmt.Errorf("artifacts[%d]: %s is listed twice", i, id))
		} else {
			names[id] = true
		}
		if paths[a.Path] {
			errs = append(errs, fmt.Errorf("artifacts[%d]: path %s is listed twice", i, a.Path))
		}
		paths[a.Path] = true
	}
	return errors.Join(errs...)
}

func (a Artifact) check() error {
	switch {
	case a.Name == "" || a.Version == "":
		return errors.New("name or version is empty")
	case !slices.Contains(Kinds(), a.Kind):
		return fmt.Errorf("unknown kind %q", a.Kind)
	case !filepath.IsLocal(filepath.FromSlash(a.Path)) || strings.Contains(a.Path, `\`):
		return fmt.Errorf("path %q is outside of the bundle's folder", a.Path)
	case !isSHA256(a.SHA256):
		return fmt.Errorf("sha256 %q is not 64 hexadecimal digits", a.SHA256)
	case a.Size < 0:
		return fmt.Errorf("size %d is negative", a.Size)
	case (a.Kind == KindDriver) != (a.System != ""):
		return errors.New("a driver-package needs a system, and nothing else has one")
	case a.Kind == KindImage && (a.Image == "" || !isSHA256(strings.TrimPrefix(a.Digest, "sha256:"))):
		return errors.New("an image needs image and digest")
	}
	for _, r := range a.Roles {
		if r != "master" && r != "worker" {
			return fmt.Errorf("unknown role %q, want master or worker", r)
		}
	}
	return nil
}

func isSHA256(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32 && s == strings.ToLower(s)
}
