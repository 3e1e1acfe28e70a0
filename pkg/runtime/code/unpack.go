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
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	u := unpacker{root: root, left: maxUnpacked}
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
		if err := u.entry(h, t); err != nil {
			return fmt.Errorf("%q: %w", h.Name, err)
		}
	}
}

type unpacker struct {
	root *os.Root // refuses names that lead out, through links too
	left int64
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
		// Always ours to write: later entries lie below.
		if err := u.root.MkdirAll(name, mode|0o700); err != nil {
			return err
		}
		return u.root.Chmod(name, mode|0o700)
	case tar.TypeReg:
		return u.file(name, mode, h.Size, r)
	case tar.TypeSymlink:
		if !inside(name, h.Linkname) {
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
		return u.root.MkdirAll(dir, 0o755)
	}
	return nil
}

// clear makes room for an entry: archives may have a name twice, and a job may be retried in place.
func (u *unpacker) clear(name string) error {
	err := u.root.Remove(name)
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
	if _, err := io.Copy(f, r); err != nil {
		return err
	}
	if err := f.Chmod(mode | 0o600); err != nil { // the umask took some
		return err
	}
	return f.Close()
}

// inside tells whether a symbolic link stays in the folder, read as text. What it passes through on
// the way may be links too; those are held to the same.
func inside(name, target string) bool {
	if target == "" || path.IsAbs(target) || strings.ContainsRune(target, 0) {
		return false
	}
	// Step by step: "a/../../x" with a link a would mean something else than Clean says.
	depth := strings.Count(name, "/")
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return false
			}
		default:
			depth++
		}
	}
	return true
}
