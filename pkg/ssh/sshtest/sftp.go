package sshtest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/sftp"
)

// sftp serves files below Root. sftp returns errors for other paths, so that a mistake in a test can't change the machine's own files.
func (h Shell) sftp(e *Exec) int {
	files := &files{h: h}
	server := sftp.NewRequestServer(channel{e.Stdin, e.Stdout}, sftp.Handlers{FileGet: files, FilePut: files, FileCmd: files, FileList: files})
	err := server.Serve()
	_ = server.Close()
	if err != nil && !errors.Is(err, io.EOF) {
		return 255
	}
	return 0
}

// channel combines the two directions of a session. Close does nothing, because the session closes the directions.
type channel struct {
	io.Reader
	io.Writer
}

func (channel) Close() error { return nil }

// files implements the file operations that uploads and backups use.
type files struct{ h Shell }

func (f *files) path(r *sftp.Request) (string, error) {
	root := filepath.Clean(f.h.Root)
	p := filepath.Clean(r.Filepath)
	if p != root && !strings.HasPrefix(p, root+"/") {
		return "", sftp.ErrSSHFxPermissionDenied
	}
	return p, nil
}

func (f *files) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	p, err := f.path(r)
	if err != nil {
		return nil, err
	}
	return os.Open(p)
}

func (f *files) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	p, err := f.path(r)
	if err != nil {
		return nil, err
	}
	flags := os.O_WRONLY
	want := r.Pflags()
	if want.Creat {
		flags |= os.O_CREATE
	}
	if want.Trunc {
		flags |= os.O_TRUNC
	}
	if want.Excl {
		flags |= os.O_EXCL
	}
	file, err := os.OpenFile(p, flags, 0o666) // as sftp-server: its client sets the mode
	if err != nil {
		return nil, err
	}
	if f.h.Corrupt == nil {
		return file, nil
	}
	return &corrupting{File: file, change: f.h.Corrupt}, nil
}

// corrupting is a file that changes the written bytes.
type corrupting struct {
	*os.File
	change func(path string, offset int64, b []byte)
}

func (c *corrupting) WriteAt(b []byte, offset int64) (int, error) {
	b = append([]byte(nil), b...)
	c.change(c.Name(), offset, b)
	return c.File.WriteAt(b, offset)
}

// Filecmd handles requests that set the size or mode, remove files, and create and remove folders.
func (f *files) Filecmd(r *sftp.Request) error {
	p, err := f.path(r)
	if err != nil {
		return err
	}
	switch r.Method {
	case "Setstat":
		if r.AttrFlags().Size {
			return os.Truncate(p, int64(r.Attributes().Size))
		}
		if r.AttrFlags().Permissions {
			return os.Chmod(p, r.Attributes().FileMode())
		}
		return nil
	case "Remove":
		return os.Remove(p)
	case "Mkdir":
		return os.Mkdir(p, 0o777)
	case "Rmdir":
		return os.Remove(p)
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename renames a file and overwrites an existing target.
func (f *files) PosixRename(r *sftp.Request) error {
	from, err := f.path(r)
	if err != nil {
		return err
	}
	to, err := f.path(&sftp.Request{Filepath: r.Target})
	if err != nil {
		return err
	}
	return os.Rename(from, to)
}

func (f *files) Lstat(r *sftp.Request) (sftp.ListerAt, error) {
	p, err := f.path(r)
	if err != nil {
		return nil, err
	}
	stat, err := os.Lstat(p)
	if err != nil {
		return nil, err
	}
	return lister{stat}, nil
}

func (f *files) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	p, err := f.path(r)
	if err != nil {
		return nil, err
	}
	if r.Method == "List" {
		all, err := os.ReadDir(p)
		if err != nil {
			return nil, err
		}
		var out lister
		for _, e := range all {
			if info, err := e.Info(); err == nil {
				out = append(out, info)
			}
		}
		return out, nil
	}
	stat, err := os.Stat(p)
	if err != nil {
		return nil, err
	}
	return lister{stat}, nil
}

type lister []os.FileInfo

func (l lister) ListAt(to []os.FileInfo, offset int64) (int, error) {
	if offset >= int64(len(l)) {
		return 0, io.EOF
	}
	n := copy(to, l[offset:])
	if n < len(to) {
		return n, io.EOF
	}
	return n, nil
}
