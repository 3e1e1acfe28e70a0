// Package code packs a code folder, which is sent with a job, for an upload to the cluster.
// In: a folder. Out: a gzipped tar archive without the files that .gitignore excludes, identified by its SHA-256. Equal files make equal
// archives.
package code

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
)

// Limits of an unpacked folder. Larger data belongs on the job's storage.
const (
	MaxBytes = 256 << 20
	MaxFiles = 50_000
	// largest is how many files an error names if the folder is too large.
	largest = 5
)

// Archive is a packed folder in a temporary file, which Close removes.
type Archive struct {
	SHA256 string
	Size   int64 // the size of the archive
	Bytes  int64 // the size in bytes of the files in it
	Files  int
	// Ignored is how many files and folders .gitignore excludes. A folder counts as one, with everything in it.
	Ignored int
	// Skipped lists links to targets outside the folder, and entries that are neither a file nor a folder. They aren't packed.
	Skipped []string
	// Windows lists scripts with Windows line ends, which Linux shells can't run.
	Windows []string
	// Marked lists scripts that begin with a byte order mark, which a shell would take for a part of the first command.
	Marked []string

	file *os.File
}

// Pack packs a folder into an archive. The caller must close the archive.
func Pack(ctx context.Context, dir string) (*Archive, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, hint.Errorf("name the folder with the program", "there is no folder %s", dir)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, hint.Errorf("name its folder", "%s is not a folder", dir)
	}
	w, err := newWalk(dir)
	if err != nil {
		return nil, err
	}
	if err := w.folder(ctx, ""); err != nil {
		return nil, fmt.Errorf("read the folder %s: %w", dir, err)
	}
	a := &Archive{Bytes: w.bytes, Ignored: w.ignored, Skipped: w.left}
	for _, e := range w.entries {
		if !e.mode.IsDir() {
			a.Files++
		}
	}
	if err := w.check(a); err != nil {
		return nil, err
	}
	if a.file, err = os.CreateTemp("", "paictl-code-*.tar.gz"); err != nil {
		return nil, err
	}
	if err := a.write(ctx, dir, w.entries); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// check returns an error if the folder has no files or is too large. In the second case, the error names the largest files or folders.
func (w *walk) check(a *Archive) error {
	switch {
	case a.Files == 0:
		return hint.Errorf("put the program into it; files that .gitignore names are not sent", "the folder %s has no files", w.dir)
	case a.Bytes > MaxBytes:
		slices.SortStableFunc(w.entries, func(a, b entry) int { return cmp.Compare(b.size, a.size) })
		var names []string
		for _, e := range w.entries[:min(largest, len(w.entries))] {
			names = append(names, fmt.Sprintf("%s (%s)", e.path, Size(e.size)))
		}
		return hint.Errorf("keep data and models on storage of the job, or name them in .gitignore; the largest are "+strings.Join(names, ", "),
			"the folder %s has %s, but code may have at most %s", w.dir, Size(a.Bytes), Size(MaxBytes))
	case a.Files > MaxFiles:
		return hint.Errorf("name folders such as node_modules or data in .gitignore; most files are in "+strings.Join(w.crowded(), ", "),
			"the folder %s has %d files, but code may have at most %d", w.dir, a.Files, MaxFiles)
	}
	return nil
}

// Close removes the temporary file with the archive.
func (a *Archive) Close() {
	_ = a.file.Close()
	_ = os.Remove(a.file.Name())
}

// Content returns a reader of the archive that starts at its beginning.
func (a *Archive) Content() *io.SectionReader { return io.NewSectionReader(a.file, 0, a.Size) }

// String returns a short description of the archive: its number of files and its sizes.
func (a *Archive) String() string {
	files := "files"
	if a.Files == 1 {
		files = "file"
	}
	text := fmt.Sprintf("%d %s, %s, packed %s", a.Files, files, Size(a.Bytes), Size(a.Size))
	if a.Ignored > 0 {
		text += fmt.Sprintf("; %d left out by .gitignore", a.Ignored)
	}
	return text
}

// write packs the entries without their owners and times, so that equal files make the same archive on every machine.
func (a *Archive) write(ctx context.Context, dir string, entries []entry) error {
	hash := sha256.New()
	z := gzip.NewWriter(io.MultiWriter(a.file, hash))
	t := tar.NewWriter(z)
	for _, e := range entries {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		var text scan
		if err := e.write(t, dir, &text); err != nil {
			return fmt.Errorf("pack %s: %w", e.path, err)
		}
		switch {
		case !e.script(text.head):
		case mark(text.head) > 0:
			a.Marked = append(a.Marked, e.path)
		case text.crlf:
			a.Windows = append(a.Windows, e.path)
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return fmt.Errorf("pack the folder %s: %w", dir, err)
	}
	size, err := a.file.Seek(0, io.SeekCurrent)
	a.Size, a.SHA256 = size, hex.EncodeToString(hash.Sum(nil))
	return err
}

// scan is a writer that records the beginning and the line ends of the file that is written to it.
type scan struct {
	head []byte // its beginning
	crlf bool   // a line has the end of Windows
	cr   bool   // the last byte is a carriage return
}

func (s *scan) Write(p []byte) (int, error) {
	const most = 16
	s.head = append(s.head, p[:min(len(p), most-len(s.head))]...)
	if len(p) > 0 {
		s.crlf = s.crlf || s.cr && p[0] == '\n' || bytes.Contains(p, []byte("\r\n"))
		s.cr = p[len(p)-1] == '\r'
	}
	return len(p), nil
}

// mark returns the length of the byte order mark at the beginning of a file, which may be for UTF-8 or UTF-16, or 0 if the file has no such mark.
func mark(head []byte) int {
	for _, m := range []string{"\xEF\xBB\xBF", "\xFF\xFE", "\xFE\xFF"} {
		if bytes.HasPrefix(head, []byte(m)) {
			return len(m)
		}
	}
	return 0
}

// script reports whether a file is a script: either its name has the extension of a shell script, or it begins with "#!".
func (e *entry) script(head []byte) bool {
	start := bytes.ReplaceAll(head[mark(head):], []byte{0}, nil) // UTF-16 has a zero beside each letter
	return bytes.HasPrefix(start, []byte("#!")) || slices.Contains([]string{".sh", ".bash", ".zsh", ".ksh", ".env"}, path.Ext(e.path))
}

func (e *entry) write(t *tar.Writer, dir string, text *scan) error {
	h := &tar.Header{Name: e.path, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	switch {
	case e.mode.IsDir():
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, e.path+"/", 0o755
	case e.target != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.target, 0o777
	default:
		h.Typeflag, h.Size, h.Mode = tar.TypeReg, e.size, 0o644
		if e.mode&0o111 != 0 {
			h.Mode = 0o755
		}
	}
	if err := t.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(e.path)))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	if n, err := io.Copy(t, io.TeeReader(f, text)); err != nil || n != e.size {
		return hint.Errorf("submit again when no program writes to it", "the file changed while it was read")
	}
	return nil
}

// Size formats a number of bytes with a unit, such as 1.5 MiB.
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
