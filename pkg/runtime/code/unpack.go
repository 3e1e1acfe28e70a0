package code

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Limits of what is unpacked; an archive of zeros is a thousand times larger than its file.
const (
	maxUnpacked = 32 << 30
	maxEntries  = 2_000_000
)

// Unpack unpacks a gzipped tar into dir, which is made if need be. Nothing is written outside it,
// whatever the archive says, and only files, folders and links that stay inside are made. An archive
// that asks for more is refused as a whole, though what came before it stays.
func Unpack(ctx context.Context, r io.Reader, dir string) error {
	root, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return each(ctx, r, newUnpacker(root).entry)
}

// openFolder opens a folder, which is made if need be.
func openFolder(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// each calls take with every entry of a gzipped tar.
func each(ctx context.Context, r io.Reader, take func(*tar.Header, io.Reader) error) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	t := tar.NewReader(z)
	for n := 0; ; n++ {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			_, err := io.Copy(io.Discard, io.LimitReader(z, 1<<20)) // padding, and the checksum of gzip
			return err
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case n >= maxEntries:
			return fmt.Errorf("more than %d files", maxEntries)
		}
		if err := take(h, t); err != nil {
			return fmt.Errorf("%q: %w", h.Name, err)
		}
	}
}

type unpacker struct {
	root    *os.Root // refuses names that lead out, through links too
	left    int64
	folders map[string]bool // known to be folders and not links to some
	// umask leaves modes to the process's, and those of folders that are there as they are.
	umask   bool
	written int64 // bytes of files
}

func newUnpacker(root *os.Root) *unpacker {
	return &unpacker{root: root, left: maxUnpacked, folders: map[string]bool{}}
}

func (u *unpacker) entry(h *tar.Header, r io.Reader) error {
	name := path.Clean(h.Name)
	if path.IsAbs(h.Name) || !fs.ValidPath(name) {
		return errors.New("the name leads out of the folder")
	}
	if name == "." {
		if h.Typeflag != tar.TypeDir {
			return errors.New("the folder itself as a file")
		}
		return nil
	}
	if err := u.parent(name); err != nil {
		return err
	}
	mode := fs.FileMode(h.Mode) & 0o777
	switch h.Typeflag {
	case tar.TypeDir:
		if u.umask {
			return u.make(name, mode|0o700)
		}
		if err := u.folder(name); err != nil {
			return err
		}
		return u.root.Chmod(name, mode|0o700) // always ours to write: later entries lie below
	case tar.TypeReg:
		return u.file(name, mode, h.Size, r)
	case tar.TypeSymlink:
		if !Inside(name, h.Linkname) {
			return fmt.Errorf("the link to %q leads out of the folder", h.Linkname)
		}
		if err := u.clear(name); err != nil {
			return err
		}
		return u.root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		target := path.Clean(h.Linkname)
		if path.IsAbs(h.Linkname) || !fs.ValidPath(target) {
			return fmt.Errorf("the link to %q leads out of the folder", h.Linkname)
		}
		// A symbolic link that has another name may point elsewhere.
		if info, err := u.root.Lstat(target); err != nil {
			return err
		} else if !info.Mode().IsRegular() {
			return fmt.Errorf("the link to %q isn't to a file", h.Linkname)
		}
		if err := u.clear(name); err != nil {
			return err
		}
		return u.root.Link(target, name)
	case tar.TypeXGlobalHeader:
		return nil
	}
	return errors.New("neither a file, a folder nor a link")
}

// parent makes the folder that an entry lies in; not every archive has an entry for it.
func (u *unpacker) parent(name string) error {
	if dir := path.Dir(name); dir != "." {
		return u.folder(dir)
	}
	return nil
}

// folder makes a folder and those above it.
func (u *unpacker) folder(name string) error { return u.make(name, 0o755) }

// make makes a folder of a mode and those above it. None of them may be a link: the depth of a name would
// not be that of its place, and links below could lead out.
func (u *unpacker) make(name string, mode fs.FileMode) error {
	if u.folders[name] {
		return nil
	}
	if err := u.parent(name); err != nil {
		return err
	}
	err := u.root.Mkdir(name, mode)
	if errors.Is(err, fs.ErrExist) {
		info, serr := u.root.Lstat(name)
		if serr != nil {
			return serr
		}
		if !info.IsDir() {
			return fmt.Errorf("%q is no folder", name)
		}
		err = nil
	}
	u.folders[name] = err == nil
	return err
}

// clear makes room for an entry: archives may have a name twice, and a job may be retried in place.
func (u *unpacker) clear(name string) error {
	err := u.root.Remove(name)
	delete(u.folders, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (u *unpacker) file(name string, mode fs.FileMode, size int64, r io.Reader) error {
	if u.left -= size; u.left < 0 {
		return fmt.Errorf("the archive has more than %d bytes unpacked", int64(maxUnpacked))
	}
	if err := u.clear(name); err != nil {
		return err
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(f, r)
	u.written += n
	if err != nil {
		return err
	}
	if !u.umask {
		if err := f.Chmod(mode | 0o600); err != nil { // the umask took some
			return err
		}
	}
	return f.Close()
}

// Inside tells whether a symbolic link stays in the folder. It may go up only at its beginning, where
// the folders that it passes are real ones: after the name of another link, ".." could be anywhere.
func Inside(name, target string) bool {
	if target == "" || path.IsAbs(target) || strings.ContainsRune(target, 0) {
		return false
	}
	depth, down := strings.Count(name, "/"), false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; depth < 0 || down {
				return false
			}
		default:
			down = true
		}
	}
	return true
}
