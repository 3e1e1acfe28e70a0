package code

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	runtimecode "github.com/openpai/paictl/pkg/runtime/code"
)

// entry is one file, folder or link in the packed folder.
type entry struct {
	path   string // with slashes
	mode   fs.FileMode
	size   int64  // of a file
	target string // the target of a link
}

// walk collects the entries of the archive, sorted by name.
type walk struct {
	dir      string
	prefix   []string // the prefix of the folder in its repository
	patterns []gitignore.Pattern

	entries []entry
	bytes   int64
	ignored int
	left    []string
}

// maxEntries is the maximum number of entries in a walk. A folder with more entries, such as /, was certainly given by mistake.
const maxEntries = 10 * MaxFiles

// newWalk prepares a walk of a folder. If the folder is in a git repository, newWalk reads which files the repository ignores.
func newWalk(dir string) (*walk, error) {
	w := &walk{dir: dir}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root := repository(whole)
	if root == "" {
		return w, nil
	}
	rel, err := filepath.Rel(root, whole)
	if err != nil {
		return nil, err
	}
	if rel != "." {
		w.prefix = strings.Split(filepath.ToSlash(rel), "/")
	}
	if w.patterns, err = read(nil, filepath.Join(root, ".git", "info", "exclude"), nil); err != nil {
		return nil, err
	}
	for i := range w.prefix { // the folder's own is read when it is walked
		at := filepath.Join(append([]string{root}, w.prefix[:i]...)...)
		if w.patterns, err = read(w.patterns, filepath.Join(at, ".gitignore"), w.prefix[:i]); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// repository returns the root of the git repository that contains dir, or "" if dir isn't in a repository.
func repository(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// read returns to with the patterns of a file added. If the file doesn't exist, it returns to unchanged.
func read(to []gitignore.Pattern, name string, domain []string) ([]gitignore.Pattern, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotFolder) {
		return to, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	out := slices.Clone(to)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			out = append(out, gitignore.ParsePattern(trailing(line), domain))
		}
	}
	return out, lines.Err()
}

// trailing removes spaces at the end of a line. It keeps a space after a backslash, because that space belongs to the name.
func trailing(line string) string {
	cut := strings.TrimRight(line, " ")
	if cut != line && strings.HasSuffix(cut, `\`) {
		return cut + " "
	}
	return cut
}

// folder adds a subfolder of the packed folder, with everything in it, to the entries.
func (w *walk) folder(ctx context.Context, rel string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	at := filepath.Join(w.dir, filepath.FromSlash(rel))
	above := w.patterns
	defer func() { w.patterns = above }()
	var err error
	if w.patterns, err = read(w.patterns, filepath.Join(at, ".gitignore"), w.parts(rel)); err != nil {
		return err
	}
	list, err := os.ReadDir(at) // sorted by name
	if err != nil {
		return err
	}
	match := gitignore.NewMatcher(w.patterns)
	for _, d := range list {
		name := path.Join(rel, d.Name())
		switch {
		case d.Name() == ".git":
			continue
		case match.Match(w.parts(name), d.IsDir()):
			w.ignored++
			continue
		case len(w.entries) >= maxEntries:
			return fmt.Errorf("more than %d files", maxEntries)
		}
		if err := w.entry(ctx, name, d); err != nil {
			return err
		}
	}
	return nil
}

// parts returns the path of a file relative to the root of its repository, split into names.
func (w *walk) parts(rel string) []string {
	if rel == "" {
		return w.prefix
	}
	return slices.Concat(w.prefix, strings.Split(rel, "/"))
}

func (w *walk) entry(ctx context.Context, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was removed during the walk
	}
	if err != nil {
		return err
	}
	e := entry{path: name, mode: info.Mode()}
	switch {
	case info.IsDir():
		w.entries = append(w.entries, e)
		return w.folder(ctx, name)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(filepath.Join(w.dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if e.target = filepath.ToSlash(target); filepath.VolumeName(target) != "" || !runtimecode.Inside(name, e.target) {
			w.left = append(w.left, fmt.Sprintf("%s (a link to %s)", name, target))
			return nil
		}
	case info.Mode().IsRegular():
		e.size = info.Size()
		w.bytes += e.size
	default:
		w.left = append(w.left, name+" (neither a file nor a folder)")
		return nil
	}
	w.entries = append(w.entries, e)
	return nil
}

// crowded returns the names of the top-level folders with the most files, and their numbers of files.
func (w *walk) crowded() []string {
	count := map[string]int{}
	for _, e := range w.entries {
		if top, _, below := strings.Cut(e.path, "/"); below {
			count[top]++
		}
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b))
	})
	var out []string
	for _, n := range names[:min(3, len(names))] {
		out = append(out, fmt.Sprintf("%s (%d)", n, count[n]))
	}
	return out
}
