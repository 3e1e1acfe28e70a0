package support

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/openpai/paictl/pkg/diagnose/support/redact"
	"github.com/openpai/paictl/pkg/hint"
)

// archive writes a tar.gz. Its methods are safe for concurrent use.
type archive struct {
	name  string // the folder in it
	set   *redact.Set
	spool string
	max   int64
	now   time.Time
	// broken is called once, with the first error that prevents further writes to the archive.
	broken func(error)

	mu    sync.Mutex
	out   *counter
	zip   *gzip.Writer
	tar   *tar.Writer
	index Index
	names map[string]bool
	err   error
}

// reserve is the number of bytes that are reserved for the index and the end of the archive.
const reserve = 4 << 20

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func newArchive(w io.Writer, o *Options, set *redact.Set, broken func(error)) *archive {
	out := &counter{w: w}
	zip := gzip.NewWriter(out)
	return &archive{name: o.Name, set: set, spool: o.SpoolDir, max: o.MaxSize, now: o.Clock(), broken: broken,
		out: out, zip: zip, tar: tar.NewWriter(zip), names: map[string]bool{}}
}

// add writes the output of write into a file of the archive, without secrets. If write fails, the file contains the partial output, and the index
// contains the error. Empty files are omitted.
func (a *archive) add(name, what string, write func(io.Writer) error) {
	a.file(name, what, 0, 0, write)
}

// log is like add, but for output that may be long. It keeps head bytes of the beginning and tail bytes of the end.
func (a *archive) log(name, what string, head, tail int, write func(io.Writer) error) {
	a.file(name, what, head, tail, write)
}

func (a *archive) file(name, what string, head, tail int, write func(io.Writer) error) {
	f := &spooled{dir: a.spool}
	defer f.close()
	var ends *bothEnds
	var to io.Writer = f
	if head+tail > 0 {
		ends = &bothEnds{w: f, head: head, tail: tail}
		to = ends
	}
	// Remove secrets before the text is truncated, because a truncated secret would not be recognized.
	clean := a.set.Writer(to)
	err := write(clean)
	closed := clean.Close()
	e := Entry{Name: name, What: what, Redacted: maps.Clone(clean.Counts())}
	if ends != nil {
		closed = errors.Join(closed, ends.Close())
		e.Cut = ends.dropped
	}
	if f.err != nil {
		a.fail(fmt.Errorf("write a temporary file: %w", f.err))
		return
	}
	if err == nil {
		err = closed
	}
	if err != nil {
		a.missing(name, err)
	}
	if f.size > 0 {
		a.put(e, f)
	}
}

func (a *archive) missing(what string, why error) {
	text := why.Error()
	if h := hint.Of(why); h != "" {
		text += " -> " + h
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.index.Missing = append(a.index.Missing, Missing{a.set.String(what), a.set.String(text)})
}

// note adds a note for readers of the bundle to the index.
func (a *archive) note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.index.Notes = append(a.index.Notes, a.set.String(fmt.Sprintf(format, args...)))
}

// put appends a file to the archive, unless the archive would become too large.
func (a *archive) put(e Entry, f *spooled) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.Name = a.unique(a.set.String(e.Name))
	e.Size = f.size
	// Assume that the content can't be compressed, so that the archive never exceeds the limit.
	if a.err == nil && a.max > 0 && a.out.n+f.size+reserve > a.max {
		if err := a.zip.Flush(); err != nil { // buffered bytes count, too
			a.failed(err)
			return
		}
		if a.out.n+f.size+reserve > a.max {
			a.index.Missing = append(a.index.Missing, Missing{e.Name, fmt.Sprintf("with %d more bytes the archive would be larger than --max-size", f.size)})
			return
		}
	}
	if err := a.write(e.Name, f.size, f.copyTo); err != nil {
		a.failed(err)
		return
	}
	a.index.Files = append(a.index.Files, e)
}

func (a *archive) write(name string, size int64, copyTo func(io.Writer) error) error {
	if a.err != nil {
		return a.err
	}
	h := &tar.Header{Name: path.Join(a.name, name), Mode: 0o600, Size: size, ModTime: a.now, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if err := a.tar.WriteHeader(h); err != nil {
		return err
	}
	return copyTo(a.tar)
}

// unique returns a name that can't lead out of the archive and that the archive doesn't contain yet.
func (a *archive) unique(name string) string {
	var parts []string
	for p := range strings.SplitSeq(name, "/") {
		if p = strings.Trim(strings.Map(safe, p), "."); p != "" {
			parts = append(parts, p)
		}
	}
	name = strings.Join(parts, "/")
	out := name
	for n := 2; a.names[out]; n++ {
		out = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, path.Ext(name)), n, path.Ext(name))
	}
	a.names[out] = true
	return out
}

func safe(r rune) rune {
	if r > ' ' && r < 0x7f && !strings.ContainsRune(`\:*?"<>|`, r) {
		return r
	}
	return '-'
}

func (a *archive) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed(err)
}

func (a *archive) failed(err error) {
	if a.err != nil {
		return
	}
	a.err = fmt.Errorf("write the archive: %w", err)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		a.err = hint.Wrap(a.err, "free space there, name another place with -o, or collect less with --since, --without or --max-size")
	}
	a.broken(a.err)
}

func (a *archive) finish(ix Index) (*Index, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ix.Files, ix.Missing, ix.Notes = a.index.Files, a.index.Missing, append(ix.Notes, a.index.Notes...)
	ix.sort()
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{{"index.json", ix.writeJSON}, {"index.html", ix.writeHTML}} {
		var s spooled
		clean := a.set.Writer(&s)
		if err := errors.Join(f.write(clean), clean.Close()); err != nil {
			return nil, err
		}
		if err := a.write(f.name, s.size, s.copyTo); err != nil {
			a.failed(err)
		}
	}
	if a.err == nil {
		if err := errors.Join(a.tar.Close(), a.zip.Close()); err != nil {
			a.failed(err)
		}
	}
	return &ix, a.err
}
