package code

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"
)

// Limits of unpacked code. An archive of zeros can unpack to a thousand times its size. Copies by users have no limit of bytes.
const (
	maxUnpacked = 32 << 30
	maxEntries  = 2_000_000
	unlimited   = math.MaxInt64
)

// Unpack unpacks a gzipped tar into dir, and creates dir if necessary. It never writes outside of dir, regardless of the
// archive's content. It creates only files, folders and links that stay inside dir. At the first entry of a different kind, it
// fails and keeps the entries before that entry.
func Unpack(ctx context.Context, r io.Reader, dir string) error {
	return unpack(ctx, r, dir, maxUnpacked)
}

// UnpackCopy unpacks files that a user copies. It works like Unpack, but without a limit of bytes.
func UnpackCopy(ctx context.Context, r io.Reader, dir string) error {
	return unpack(ctx, r, dir, unlimited)
}

func unpack(ctx context.Context, r io.Reader, dir string, most int64) error {
	root, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return each(ctx, r, newUnpacker(root, most).entry)
}

func openFolder(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// each calls take for every entry of a gzipped tar.
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
	root    *os.Root // rejects names that lead outside, even through links
	left    int64
	folders map[string]bool // names that are known to be folders, and not links to folders
	// umask applies the umask of the process to new files, and keeps the modes of existing folders.
	umask   bool
	written int64  // bytes of files
	dense   bool   // no holes: files are written exactly as received
	beside  string // the temporary name of the last file, which is complete
	late    bool   // files keep their temporary names until commit
}

func newUnpacker(root *os.Root, most int64) *unpacker {
	return &unpacker{root: root, left: most, dense: most == unlimited, folders: map[string]bool{}}
}

func (u *unpacker) entry(h *tar.Header, r io.Reader) error {
	name := path.Clean(h.Name)
	if path.IsAbs(h.Name) || !fs.ValidPath(name) {
		return errors.New("the name is outside of the folder")
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
		return u.root.Chmod(name, mode|0o700) // it must be writable, because later entries are in it
	case tar.TypeReg:
		return u.file(h, name, mode, r)
	case tar.TypeSymlink:
		if !Inside(name, h.Linkname) {
			return fmt.Errorf("the link to %q points outside of the folder", h.Linkname)
		}
		if err := u.clear(name); err != nil {
			return err
		}
		return u.root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		target := path.Clean(h.Linkname)
		if path.IsAbs(h.Linkname) || !fs.ValidPath(target) {
			return fmt.Errorf("the link to %q points outside of the folder", h.Linkname)
		}
		// A symbolic link with a different name may have a different target.
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

// parent creates the folder of an entry, because some archives contain no entry for the folder.
func (u *unpacker) parent(name string) error {
	if dir := path.Dir(name); dir != "." {
		return u.folder(dir)
	}
	return nil
}

func (u *unpacker) folder(name string) error { return u.make(name, 0o755) }

// make creates a folder with a mode, and its parents. No folder on the path may be a link. Otherwise, the depth of a name could
// differ from the depth of its target, and links below the folder could lead outside.
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
			return fmt.Errorf("%q is not a folder", name)
		}
		err = nil
	}
	u.folders[name] = err == nil
	return err
}

// clear removes the file or folder that an entry replaces. An archive may contain a name twice, and a job may be retried in the
// same folder.
func (u *unpacker) clear(name string) error {
	err := u.root.Remove(name)
	delete(u.folders, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// file writes a file under a temporary name. An existing file remains until the new file is complete.
func (u *unpacker) file(h *tar.Header, name string, mode fs.FileMode, r io.Reader) error {
	if u.left -= h.Size; u.left < 0 {
		return fmt.Errorf("the archive has more than %d bytes unpacked", int64(maxUnpacked))
	}
	if u.dense && sparse(h) {
		return errors.New("a sparse file is refused, because its size differs from the data received")
	}
	beside := path.Join(path.Dir(name), ".paictl-"+rand.Text())
	f, err := u.root.OpenFile(beside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, r)
	u.written += n
	if err == nil && !u.umask {
		err = f.Chmod(mode | 0o600) // the umask removed some bits
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, u.root.Remove(beside))
	}
	u.beside = beside
	if u.late {
		return nil
	}
	defer u.discard()
	return u.commit(name)
}

// commit renames the last file to its final name. It replaces a link instead of following it.
func (u *unpacker) commit(name string) error {
	if err := u.root.Rename(u.beside, name); err != nil {
		// The target may be an empty folder, which the file replaces.
		if cerr := u.clear(name); cerr != nil {
			return cerr
		}
		if err := u.root.Rename(u.beside, name); err != nil {
			return err
		}
	}
	delete(u.folders, name)
	u.beside = ""
	return nil
}

// discard removes the last file if the file still has its temporary name.
func (u *unpacker) discard() {
	if u.beside != "" {
		_ = u.root.Remove(u.beside) // the caller reports the first error
		u.beside = ""
	}
}

// sparse reports whether an entry is a file with holes. The reader fills holes with zeros.
func sparse(h *tar.Header) bool {
	for name := range h.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// Inside reports whether the target of a symbolic link is inside the folder. The target may contain ".." only at its beginning,
// because ".." after the name of another link could lead anywhere.
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
