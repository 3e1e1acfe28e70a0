package bundle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
	"gopkg.in/yaml.v3"
)

// workDir is the folder for a Writer's state, logs and unfinished files. It is in the bundle's folder, so that a rename can move a finished file to
// its final path.
const workDir = ".work"

// LockedError means that another process is writing the bundle.
type LockedError struct{ Dir string }

// Error returns a message that names the bundle's folder.
func (e *LockedError) Error() string {
	return fmt.Sprintf("another paictl is writing the bundle in %s", e.Dir)
}

// ExitCode returns 5.
func (e *LockedError) ExitCode() int { return 5 }

// Writer writes a bundle's folder file by file. Finished files survive an interruption. The next Writer keeps a file if it was made from the same
// inputs. The manifest is written only when all files are finished, so Open accepts only a complete folder.
type Writer struct {
	dir    string
	header *Manifest
	lock   *flock.Flock
	state  map[string]made
	listed []Artifact
	// brought holds the driver packages by id. Driver packages stay in the bundle when other artifacts are made again.
	brought map[string]Artifact
}

// made records an artifact of this run or of an earlier run.
type made struct {
	Artifact Artifact `json:"artifact"`
	// Inputs identifies all inputs of the file.
	Inputs string `json:"inputs"`
	MTime  int64  `json:"mtime"` // ns since 1970, of the file when it was moved to its place
}

// Create opens dir for writing and locks the folder. The header is the manifest without the artifacts. The caller can change the header until
// Commit.
func Create(dir string, header *Manifest) (*Writer, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("create bundle %s: %w", dir, err)
	}
	if err := os.MkdirAll(filepath.Join(abs, workDir), 0o755); err != nil {
		return nil, fmt.Errorf("create bundle: %w", err)
	}
	w := &Writer{dir: abs, header: header, lock: flock.New(filepath.Join(abs, workDir, "lock")), state: map[string]made{}}
	ok, err := w.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock bundle %s: %w", dir, err)
	}
	if !ok {
		return nil, &LockedError{Dir: dir}
	}
	// If the state can't be read, the artifacts are made again.
	if data, err := os.ReadFile(w.stateFile()); err == nil && json.Unmarshal(data, &w.state) != nil {
		w.state = map[string]made{}
	}
	if err := w.takeOver(); err != nil {
		_ = w.Close()
		return nil, err
	}
	return w, nil
}

// Dir returns the bundle's folder as an absolute path.
func (w *Writer) Dir() string { return w.dir }

// Work returns a path in the folder for unfinished files.
func (w *Writer) Work(elem ...string) string {
	return filepath.Join(append([]string{w.dir, workDir}, elem...)...)
}

// takeOver finds the driver packages of the existing bundle in the manifest. If a build has removed the manifest, it finds them in the state. It
// removes packages that are only in the state, because they are the remains of an interrupted change.
func (w *Writer) takeOver() error {
	w.brought = map[string]Artifact{}
	file := filepath.Join(w.dir, ManifestFile)
	data, err := os.ReadFile(file)
	var m *Manifest
	if err == nil {
		m, err = ParseManifest(file, data)
	}
	if err != nil {
		for id, s := range w.state {
			if s.Artifact.Kind == KindDriver {
				w.brought[id] = s.Artifact
			}
		}
		return nil // one that can't be read is written again
	}
	changed := false
	for _, a := range m.Artifacts {
		if a.Kind != KindDriver {
			continue
		}
		w.brought[a.id()] = a
		if s, ok := w.state[a.id()]; !ok || s.Artifact.SHA256 != a.SHA256 {
			changed = true
			w.state[a.id()] = made{Artifact: a}
		}
	}
	for id, s := range w.state {
		if _, ok := w.brought[id]; ok || s.Artifact.Kind != KindDriver {
			continue
		}
		changed = true
		delete(w.state, id)
		if err := w.remove(s.Artifact); err != nil {
			return fmt.Errorf("clean bundle: %w", err)
		}
	}
	if !changed {
		return nil
	}
	return w.saveState()
}

// remove deletes an artifact's file if it exists. It rejects paths outside of the bundle, because another program may have written the state file.
func (w *Writer) remove(a Artifact) error {
	if !filepath.IsLocal(filepath.FromSlash(a.Path)) {
		return fmt.Errorf("path %q is outside of the bundle's folder", a.Path)
	}
	err := os.Remove(filepath.Join(w.dir, filepath.FromSlash(a.Path)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Edit opens a finished bundle to add or remove driver packages. All other artifacts stay in the bundle, and the old manifest stays until Commit.
func Edit(dir string) (*Writer, *Bundle, error) {
	if _, err := Open(dir); err != nil { // first, so that no folder is created that isn't a bundle
		return nil, nil, err
	}
	header := &Manifest{}
	w, err := Create(dir, header)
	if err != nil {
		return nil, nil, err
	}
	b, err := Open(dir) // another process may have written it since
	if err != nil {
		_ = w.Close()
		return nil, nil, err
	}
	*header = b.manifest
	for _, a := range b.manifest.Artifacts {
		if a.Kind != KindDriver {
			w.listed = append(w.listed, a)
		}
	}
	return w, b, nil
}

// AddDriverPackage moves a driver package from file into the bundle and records it. It replaces an existing file.
func (w *Writer) AddDriverPackage(a Artifact, file string) error {
	fi, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("add %s: %w", a.Name, err)
	}
	// Record the package first. If the program is interrupted before Commit, the next Writer finds and removes the file.
	w.state[a.id()] = made{Artifact: a, MTime: fi.ModTime().UnixNano()}
	if err := w.saveState(); err != nil {
		return err
	}
	dst := filepath.Join(w.dir, filepath.FromSlash(a.Path))
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return fmt.Errorf("add %s: %w", a.Name, err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		return fmt.Errorf("add %s: %w", a.Name, err)
	}
	if err := os.Rename(file, dst); err != nil {
		return fmt.Errorf("add %s: %w", a.Name, err)
	}
	w.brought[a.id()] = a
	return nil
}

// Drop removes a driver package from the bundle. Commit then deletes its file.
func (w *Writer) Drop(a Artifact) { delete(w.brought, a.id()) }

func (w *Writer) stateFile() string { return w.Work("state.json") }

// Has reports whether the artifact exists, was made from the same inputs and hasn't been modified since.
func (w *Writer) Has(kind, name, inputs string) bool {
	m, ok := w.state[kind+"/"+name]
	if !ok || m.Inputs != inputs {
		return false
	}
	fi, err := os.Stat(filepath.Join(w.dir, filepath.FromSlash(m.Artifact.Path)))
	return err == nil && fi.Size() == m.Artifact.Size && fi.ModTime().UnixNano() == m.MTime
}

// Keep keeps an existing artifact in the bundle and returns it. Call Keep only if Has has returned true for the artifact.
func (w *Writer) Keep(kind, name string) Artifact {
	a := w.state[kind+"/"+name].Artifact
	w.listed = append(w.listed, a)
	return a
}

// Add moves a finished file to a.Path and records it. It returns a with the file's checksum and size.
func (w *Writer) Add(ctx context.Context, a Artifact, inputs, file string) (Artifact, error) {
	sum, err := HashFile(ctx, file)
	if err != nil {
		return a, fmt.Errorf("add %s: %w", a.Name, err)
	}
	mode := os.FileMode(0o755)
	if a.Kind == KindImage || a.Kind == KindChart {
		mode = 0o644
	}
	if err := os.Chmod(file, mode); err != nil {
		return a, fmt.Errorf("add %s: %w", a.Name, err)
	}
	fi, err := os.Stat(file)
	if err != nil {
		return a, fmt.Errorf("add %s: %w", a.Name, err)
	}
	a.SHA256, a.Size = sum, fi.Size()
	// Remove the old manifest, because the bundle no longer matches it.
	if err := os.Remove(filepath.Join(w.dir, ManifestFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return a, fmt.Errorf("add %s: %w", a.Name, err)
	}
	dst := filepath.Join(w.dir, filepath.FromSlash(a.Path))
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return a, fmt.Errorf("add %s: %w", a.Name, err)
	}
	if err := os.Rename(file, dst); err != nil {
		return a, fmt.Errorf("add %s: %w", a.Name, err)
	}
	// The path of a chart contains its version, so an older file may still exist.
	if old, ok := w.state[a.Kind+"/"+a.Name]; ok && old.Artifact.Path != a.Path {
		if err := os.Remove(filepath.Join(w.dir, filepath.FromSlash(old.Artifact.Path))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return a, fmt.Errorf("add %s: %w", a.Name, err)
		}
	}
	w.listed = append(w.listed, a)
	w.state[a.Kind+"/"+a.Name] = made{Artifact: a, Inputs: inputs, MTime: fi.ModTime().UnixNano()}
	return a, w.saveState()
}

func (w *Writer) saveState() error {
	data, err := json.MarshalIndent(w.state, "", " ")
	if err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	if err := renameio.WriteFile(w.stateFile(), data, 0o644); err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	return nil
}

// Commit writes the manifest, which lists the artifacts by kind and name. It then removes files that no longer belong to the bundle, and opens the
// bundle.
func (w *Writer) Commit() (*Bundle, error) {
	m := *w.header
	m.APIVersion, m.Kind, m.Artifacts = APIVersion, ManifestKind, slices.Clone(w.listed)
	for _, a := range w.brought {
		m.Artifacts = append(m.Artifacts, a)
	}
	slices.SortStableFunc(m.Artifacts, byKindThenName)
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	data, err := yaml.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	file := filepath.Join(w.dir, ManifestFile)
	if old, err := os.ReadFile(file); err != nil || string(old) != string(data) {
		if err := renameio.WriteFile(file, data, 0o644); err != nil {
			return nil, fmt.Errorf("write manifest: %w", err)
		}
	}
	if err := w.prune(m.Artifacts); err != nil {
		return nil, fmt.Errorf("clean bundle: %w", err)
	}
	return Open(w.dir)
}

func byKindThenName(a, b Artifact) int {
	if d := slices.Index(Kinds(), a.Kind) - slices.Index(Kinds(), b.Kind); d != 0 {
		return d
	}
	return cmp.Or(strings.Compare(a.System, b.System), strings.Compare(a.Name, b.Name), strings.Compare(a.Path, b.Path))
}

// prune deletes files that the manifest doesn't list. It only deletes files in this Writer's state.
func (w *Writer) prune(keep []Artifact) error {
	want := map[string]bool{}
	for _, a := range keep {
		want[a.id()] = true
	}
	stale := false
	for id, m := range w.state {
		if want[id] {
			continue
		}
		stale = true
		delete(w.state, id)
		if err := w.remove(m.Artifact); err != nil {
			return err
		}
		if m.Artifact.Kind == KindDriver {
			// Remove the empty folder of a distribution. Ignore the error if the folder contains other files.
			_ = os.Remove(filepath.Join(w.dir, filepath.FromSlash(path.Dir(m.Artifact.Path))))
		}
	}
	if !stale {
		return nil
	}
	return w.saveState()
}

// Close releases the lock.
func (w *Writer) Close() error { return w.lock.Unlock() }
