package build

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/openpai/paictl/pkg/hint"
)

// Versions returns the versions that paictl pins for programs, images and modules, by name: {"kubelet": "v1.36.3", "kubernetes": "v1.36.3", …}. It
// reads them from the modules embedded in paictl. It excludes images of Debian packages, because apt chooses their versions.
func Versions() (map[string]string, error) {
	out := map[string]string{}
	files := map[string][]byte{}
	pinned, err := pinnedModules()
	if err != nil {
		return nil, fmt.Errorf("read the embedded modules: %w", err)
	}
	for _, f := range txtar.Parse(pinned).Files {
		files[f.Name] = f.Data
	}
	for _, m := range Default().Modules {
		v := m.Version
		if m.Own == nil {
			if v, err = pinnedVersion(files[m.Name+"/go.mod"], m.Path); err != nil {
				return nil, fmt.Errorf("read module %s: %w", m.Name, err)
			}
		}
		out[m.Name] = v
		for _, p := range m.Programs {
			out[p.Name] = v
			if p.Version != "" {
				out[p.Name] = p.Version
			}
		}
	}
	for _, img := range Default().Images {
		if img.Package == "" {
			out[img.Name] = out[img.Files[0].Program]
		}
	}
	return out, nil
}

// pin is a pinned module in a folder in which the go command can run.
type pin struct {
	dir     string
	version string // the version of the upstream module: v1.36.3
	sums    []byte // go.mod and go.sum, for the inputs' checksum
}

// sourceDir returns the folder with the pinned modules. If source is empty, it copies the embedded modules to a folder below work.
func sourceDir(source, work string) (string, error) {
	if source != "" {
		abs, err := filepath.Abs(source)
		if err != nil {
			return "", fmt.Errorf("find modules in %s: %w", source, err)
		}
		return abs, nil
	}
	dir := filepath.Join(work, "modules")
	pinned, err := pinnedModules()
	if err != nil {
		return "", fmt.Errorf("read the embedded modules: %w", err)
	}
	for _, f := range txtar.Parse(pinned).Files {
		file := filepath.Join(dir, filepath.FromSlash(f.Name))
		if old, err := os.ReadFile(file); err == nil && string(old) == string(f.Data) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return "", fmt.Errorf("write modules: %w", err)
		}
		if err := os.WriteFile(file, f.Data, 0o644); err != nil {
			return "", fmt.Errorf("write modules: %w", err)
		}
	}
	return dir, nil
}

// writeOwn writes a module that is part of paictl to a folder below work. The recipe contains the files, so the checksum of the inputs covers them.
func writeOwn(work string, m Module) (pin, error) {
	p := pin{dir: filepath.Join(work, "own", m.Name), version: m.Version, sums: []byte(m.Own["go.mod"])}
	// Remove the folder first, so that files of an older paictl aren't compiled.
	if err := os.RemoveAll(p.dir); err != nil {
		return p, fmt.Errorf("write module %s: %w", m.Name, err)
	}
	for name, body := range m.Own {
		file := filepath.Join(p.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return p, fmt.Errorf("write module %s: %w", m.Name, err)
		}
		if err := os.WriteFile(file, []byte(body), 0o644); err != nil {
			return p, fmt.Errorf("write module %s: %w", m.Name, err)
		}
	}
	return p, nil
}

func readPin(source string, m Module) (pin, error) {
	p := pin{dir: filepath.Join(source, m.Name)}
	mod, err := os.ReadFile(filepath.Join(p.dir, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return p, hint.Errorf("set --source to the folder bundle/ of a checkout of paictl, or remove it",
			"%s has no module %s", source, m.Name)
	}
	if err != nil {
		return p, fmt.Errorf("read module %s: %w", m.Name, err)
	}
	sum, err := os.ReadFile(filepath.Join(p.dir, "go.sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("read module %s: %w", m.Name, err)
	}
	p.sums = slices.Concat(mod, sum)
	p.version, err = pinnedVersion(mod, m.Path)
	if err != nil {
		return p, fmt.Errorf("read %s: %w", filepath.Join(p.dir, "go.mod"), err)
	}
	p.version = cmp.Or(m.Version, p.version)
	return p, nil
}

func pinnedVersion(mod []byte, path string) (string, error) {
	require := regexp.MustCompile(`(?m)^(?:require)?\s*` + regexp.QuoteMeta(path) + `\s+(v\S+)`)
	match := require.FindSubmatch(mod)
	if match == nil {
		return "", fmt.Errorf("it requires no version of %s", path)
	}
	return string(match[1]), nil
}

// Reference returns the image's reference on nodes for the given version.
func (i Image) Reference(version string) string { return expand(i.Ref, version) }

// expand replaces the placeholders for a version, such as v1.36.3: {version} v1.36.3, {number} 1.36.3, {major} 1, {minor} 36. In {tag}, "_"
// replaces "+", because a tag can't contain "+".
func expand(s, version string) string {
	number := strings.TrimPrefix(version, "v")
	parts := append(strings.SplitN(number, ".", 3), "", "")
	return strings.NewReplacer("{version}", version, "{number}", number, "{tag}", strings.ReplaceAll(version, "+", "_"), "{major}", parts[0], "{minor}", parts[1]).Replace(s)
}
