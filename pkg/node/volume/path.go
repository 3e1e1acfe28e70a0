// Package volume creates and removes the folders of local volumes on a machine. In: a path, an owner and a mode, below the folder where the machine's
// disk is mounted. Out: the folder as requested, or its removal. Symbolic links are never followed, because the folders belong to services, and a
// service must not redirect root to another folder.
package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// minDepth is the minimum number of components in a path. minDepth protects top-level folders such as /etc or /mnt.
const minDepth = 2

// system lists the folders of a machine that can't contain volumes.
var system = []string{"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys", "usr"}

// split checks a path on the machine and returns its components.
func split(name string) ([]string, error) {
	switch {
	case !strings.HasPrefix(name, "/"):
		return nil, fmt.Errorf("%q is not an absolute path", name)
	case strings.ContainsRune(name, 0), path.Clean(name) != name:
		return nil, fmt.Errorf("%q is not a clean path: it must have no \"..\", \".\", \"//\" or \"/\" at its end", name)
	}
	parts := strings.Split(strings.TrimPrefix(name, "/"), "/")
	if slices.Contains(system, parts[0]) || parts[0] == "var" && len(parts) == minDepth {
		return nil, fmt.Errorf("%s is refused: it belongs to the machine's system", name)
	}
	if len(parts) < minDepth || parts[0] == "" {
		return nil, fmt.Errorf("%s is refused: a volume must be at least %d levels deep, as in /datastorage/service", name, minDepth)
	}
	return parts, nil
}

// descend opens the folder with the path parts below root. descend creates missing folders if create is set. The caller closes root and the result.
func descend(root *os.Root, parts []string, create bool) (*os.Root, error) {
	at, err := root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	for i, part := range parts {
		next, err := step(at, part, create)
		at.Close()
		if err != nil {
			return nil, fmt.Errorf("/%s: %w", path.Join(parts[:i+1]...), err)
		}
		at = next
	}
	return at, nil
}

var errLink = errors.New("is a symbolic link, which is not followed")

// step opens a folder within another folder. After opening the folder, step verifies that no link has replaced the checked folder in the meantime.
func step(at *os.Root, name string, create bool) (*os.Root, error) {
	if create {
		if err := at.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, cause(err)
		}
	}
	seen, err := lookAt(at, name)
	if err != nil {
		return nil, err
	}
	next, err := at.OpenRoot(name)
	if err != nil {
		return nil, cause(err)
	}
	opened, err := next.Stat(".")
	if err != nil || !os.SameFile(seen, opened) {
		next.Close()
		return nil, errors.Join(errors.New("was replaced while it was opened"), err)
	}
	return next, nil
}

// lookAt returns the FileInfo of the folder with the given name. lookAt returns an error if the entry is a link or isn't a folder.
func lookAt(at *os.Root, name string) (fs.FileInfo, error) {
	info, err := at.Lstat(name)
	switch {
	case err != nil:
		return nil, cause(err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errLink
	case !info.IsDir():
		return nil, errors.New("is not a folder")
	}
	return info, nil
}

// cause removes the path from an error of os.Root. This path is relative, and the caller adds the complete path.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
