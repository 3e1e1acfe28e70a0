// Package transfer packs a file or a folder that is copied to or from a task. The other end unpacks it with pkg/runtime/code,
// which never writes outside of its folder. In: a path. Out: a gzipped tar. It works in images without tar.
package transfer

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
	"path/filepath"
	"strings"

	"github.com/openpai/paictl/pkg/runtime/code"
)

// Kind is the kind of a path.
type Kind string

// The kinds of paths.
const (
	None   Kind = "none"
	File   Kind = "file"
	Folder Kind = "folder"
	Other  Kind = "other" // a device or a socket
)

// KindOf returns the kind of a path. It follows links.
func KindOf(name string) (Kind, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return None, nil
	case err != nil:
		return Other, err
	case info.IsDir():
		return Folder, nil
	case info.Mode().IsRegular():
		return File, nil
	}
	return Other, nil
}

// Pack writes a file or a folder under the name as, and returns the size of its files in bytes. It omits links to targets
// outside the folder, and entries that are neither files nor folders. It calls skipped for each omitted entry.
func Pack(ctx context.Context, w io.Writer, from, as string, skipped func(name, why string)) (int64, error) {
	if as == "" || as == "." || as == ".." || strings.ContainsAny(as, "/\x00") {
		return 0, fmt.Errorf("%q is not the name of a file", as)
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return 0, err
	}
	p := packer{ctx: ctx, tar: tar.NewWriter(z), skipped: skipped}
	info, err := os.Stat(from)
	if err != nil {
		return 0, err
	}
	if err := p.entry(from, as, info); err != nil {
		return p.packed, err
	}
	return p.packed, errors.Join(p.tar.Close(), z.Close())
}

type packer struct {
	ctx     context.Context
	tar     *tar.Writer
	skipped func(name, why string)
	packed  int64 // bytes of the files
	holes   int64 // the holes in the files so far
}

// maxHoles is the maximum total size of holes in all files of an archive. A program can quickly create a file with a hole of an
// exabyte, and a copy of this file would never end. Archives contain holes as zeros, because archive/tar doesn't write sparse
// files.
const maxHoles = 64 << 30

// holesError is the error for a file with too large holes.
type holesError struct{ name string }

func (e *holesError) Error() string {
	return fmt.Sprintf("%s is sparse: with it, more than %d GiB without data would be copied as zeros; copy it with tar --sparse in the task", e.name, int64(maxHoles)>>30)
}

func (p *packer) entry(at, name string, info fs.FileInfo) error {
	if err := context.Cause(p.ctx); err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return p.folder(at, name, info)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(at)
		if err != nil {
			return err
		}
		// The first part of the name is the folder itself.
		_, below, _ := strings.Cut(name, "/")
		if target = filepath.ToSlash(target); !code.Inside(below, target) {
			p.skipped(name, "a link to "+target)
			return nil
		}
		return p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777, ModTime: info.ModTime()})
	case info.Mode().IsRegular():
		err := p.file(at, name)
		if sparse := (*holesError)(nil); errors.As(err, &sparse) && strings.Contains(name, "/") {
			p.skipped(name, sparse.Error())
			return nil
		}
		return err
	}
	p.skipped(name, "neither a file nor a folder")
	return nil
}

func (p *packer) folder(at, name string, info fs.FileInfo) error {
	if err := p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}); err != nil {
		return err
	}
	list, err := os.ReadDir(at)
	if err != nil {
		return err
	}
	for _, d := range list {
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed in the meantime
		}
		if err != nil {
			return err
		}
		if err := p.entry(filepath.Join(at, d.Name()), path.Join(name, d.Name()), info); err != nil {
			return err
		}
	}
	return nil
}

// file packs a file with its size at opening, because logs and checkpoints may grow during the copy.
func (p *packer) file(at, name string) error {
	f, err := os.Open(at)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	info, err := f.Stat()
	if err != nil {
		return err
	}
	n, err := holes(f, info.Size(), maxHoles-p.holes)
	switch {
	case err != nil:
		return err
	case n > maxHoles-p.holes:
		return &holesError{at}
	}
	p.holes += n
	if err := p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}); err != nil {
		return err
	}
	n, err = io.Copy(p.tar, io.LimitReader(f, info.Size()))
	p.packed += n
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	} else if n < info.Size() {
		return fmt.Errorf("%s became shorter while it was read", at)
	}
	return nil
}
