package code

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Parcel describes a file or a folder to copy, and its name.
type Parcel struct {
	Name   string
	Folder bool
	// Skipped is called for each link to a target outside the folder. Receive skips such links.
	Skipped func(name, why string)
}

// errUnasked is the error for an unrequested file.
var errUnasked = errors.New("it was not requested, and is refused")

// Receive unpacks one parcel into dir, and returns the size of its files in bytes. It doesn't trust the sender. It writes only
// the named file or folder, and doesn't follow existing links. An existing file remains until the new file is complete. As with
// cp, new files and folders get the source's mode without the bits of the umask. Existing folders keep their modes.
func Receive(ctx context.Context, r io.Reader, dir string, p Parcel) (int64, error) {
	if p.Name == "." || !fs.ValidPath(p.Name) || strings.Contains(p.Name, "/") {
		return 0, fmt.Errorf("%q is not the name of a file", p.Name)
	}
	root, err := openFolder(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	if p.Folder {
		return receiveFolder(ctx, r, root, p)
	}
	return receiveFile(ctx, r, root, p.Name)
}

// receiveFile unpacks an archive that must contain exactly one file.
func receiveFile(ctx context.Context, r io.Reader, root *os.Root, name string) (int64, error) {
	u, came := newUnpacker(root, unlimited), false
	u.umask, u.late = true, true
	defer u.discard()
	err := each(ctx, r, func(h *tar.Header, body io.Reader) error {
		if h.Name != name || h.Typeflag != tar.TypeReg || came {
			return errUnasked
		}
		came = true
		return u.entry(h, body)
	})
	if err == nil && !came {
		err = errors.New("the file was not received")
	}
	if err == nil {
		err = u.commit(name)
	}
	return u.written, err
}

// receiveFolder unpacks one folder. It opens the folder as a separate root, so that links in the folder can't lead outside.
func receiveFolder(ctx context.Context, r io.Reader, root *os.Root, p Parcel) (int64, error) {
	made := root.Mkdir(p.Name, 0o755)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return 0, made
	}
	if info, err := root.Lstat(p.Name); err != nil {
		return 0, err
	} else if !info.IsDir() {
		return 0, fmt.Errorf("%q already exists, and is not a folder", p.Name)
	}
	own, err := root.OpenRoot(p.Name)
	if err != nil {
		return 0, err
	}
	defer own.Close()
	u, came := newUnpacker(own, unlimited), false
	u.umask = true
	err = each(ctx, r, func(h *tar.Header, body io.Reader) error {
		name := path.Clean(h.Name)
		if name == p.Name && h.Typeflag == tar.TypeDir {
			came = true
			return nil
		}
		below, ok := strings.CutPrefix(name, p.Name+"/")
		switch {
		case !ok, h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeSymlink:
			return errUnasked
		case h.Typeflag == tar.TypeSymlink && !Inside(below, h.Linkname):
			p.Skipped(name, "a link to "+h.Linkname)
			return nil
		}
		came = true
		h.Name = below
		return u.entry(h, body)
	})
	if err == nil && !came {
		err = errors.New("the folder was not received")
	}
	return u.written, err
}
