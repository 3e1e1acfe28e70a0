package code_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/code"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

func archive(tb testing.TB, entries ...tar.Header) []byte {
	tb.Helper()
	return build(tb, func(err error) bool { require.NoError(tb, err); return true }, entries)
}

// build returns an archive with the entries. It skips an invalid entry if keep returns false for its error.
func build(tb testing.TB, keep func(error) bool, entries []tar.Header) []byte {
	tb.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for _, h := range entries {
		body := ""
		if h.Typeflag == tar.TypeReg {
			body = h.Uname // the content of a file, in a field that the test doesn't use otherwise
			h.Uname, h.Size = "", int64(len(body))
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if !keep(w.WriteHeader(&h)) {
			continue
		}
		_, err := io.WriteString(w, body)
		require.NoError(tb, err)
	}
	require.NoError(tb, w.Close())
	require.NoError(tb, z.Close())
	return buf.Bytes()
}

func file(name, body string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Uname: body}
}

func link(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}

func hard(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}
}

func folder(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
}

func unpack(t *testing.T, data []byte) (string, error) {
	t.Helper()
	outer := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outer, "secret"), []byte("mine"), 0o600))
	dir := filepath.Join(outer, "code")
	return dir, code.Unpack(t.Context(), bytes.NewReader(data), dir)
}

func TestFilesFoldersAndLinksComeOutAsTheyWere(t *testing.T) {
	run := file("bin/run.sh", "#!/bin/sh\n")
	run.Mode = 0o4755
	dir, err := unpack(t, archive(t,
		folder("."), folder("data/"), file("data/a.txt", "a"), run, file("./deep/er/b", "b"),
		link("data/to-b", "../deep/er/b"), link("latest", "data"), hard("copy", "data/a.txt"), link("dangling", "nowhere"),
		file("data/a.txt", "again"),
	))
	require.NoError(t, err)
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(b)
	}
	assert.Equal(t, "again", read("data/a.txt"))
	assert.Equal(t, "a", read("copy"), "a second file of a name is another file")
	assert.Equal(t, "b", read("data/to-b"))
	assert.Equal(t, "again", read("latest/a.txt"))
	info, err := os.Stat(filepath.Join(dir, "bin/run.sh"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode(), "executable, and not setuid")
}

func TestNothingGetsOutOfTheFolder(t *testing.T) {
	device := tar.Header{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}
	pipe := tar.Header{Typeflag: tar.TypeFifo, Name: "pipe"}
	for name, entries := range map[string][]tar.Header{
		"a name that goes up":            {file("../evil", "x")},
		"a name that goes up later":      {file("a/../../evil", "x")},
		"an absolute name":               {file("/tmp/evil", "x")},
		"an absolute link":               {link("a", "/etc/passwd")},
		"a link that goes up":            {link("a", "../secret")},
		"a link that goes up from below": {folder("d"), link("d/a", "../../secret")},
		"a file through a link":          {folder("d"), link("a", "d"), file("a/x", "x")},
		"a folder through a link":        {folder("d"), link("a", "d"), folder("a/x")},
		"a link through a link, up":      {folder("d"), folder("d/e"), link("d/e/up", "../.."), link("d/e/x", "up/../secret")},
		"a link in a linked folder":      {folder("d"), link("a", "."), link("a/x", "../secret")},
		"a file with two names":          {hard("a", "../secret")},
		"a file with an absolute name":   {hard("a", "/etc/passwd")},
		"a link with two names":          {folder("d"), link("d/a", "../f"), hard("a", "d/a")},
		"a file that replaces a folder":  {folder("d"), file("d/f", "x"), file("d", "x")},
		"a device":                       {device},
		"a pipe":                         {pipe},
		"the folder as a file":           {file(".", "x")},
		"the folder as a link":           {link(".", "x")},
		"a folder made a link":           {folder("d"), link("d", "."), file("d/../evil", "x"), link("d/x", "../secret")},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := unpack(t, archive(t, entries...))
			require.Error(t, err)
			inside(t, dir)
		})
	}
}

// inside checks that all links in a folder stay inside the folder, and that no file was created next to the folder.
func inside(t testing.TB, dir string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	for _, e := range list {
		assert.Contains(t, []string{"code", "secret"}, e.Name())
	}
	real, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.Type()&os.ModeSymlink == 0 {
			return err
		}
		if to, err := filepath.EvalSymlinks(name); err == nil {
			assert.True(t, to == real || strings.HasPrefix(to, real+"/"), "%s leads to %s", name, to)
		}
		return nil
	}))
}

func TestDamagedArchivesAreErrors(t *testing.T) {
	whole := archive(t, file("a", strings.Repeat("text ", 1000)), file("b", "b"))
	for _, data := range [][]byte{nil, []byte("no archive"), whole[:len(whole)/2], whole[:len(whole)-3], append(whole[:len(whole)-8:len(whole)-8], 1, 2, 3, 4, 5, 6, 7, 8)} {
		_, err := unpack(t, data)
		assert.Error(t, err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, folder("d"), file("d/a", "x"), link("l", "d/a")), "x", "y")
	f.Add([]byte{}, "a", "../..")
	f.Fuzz(func(t *testing.T, raw []byte, name, target string) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "code")
		_ = code.Unpack(t.Context(), bytes.NewReader(raw), dir)
		inside(t, dir)
		if strings.ContainsRune(name+target, 0) || name == "" || len(name)+len(target) > 200 {
			return
		}
		data := build(t, func(err error) bool { return err == nil }, []tar.Header{
			folder("d"), folder("d/e"), link("d/e/up", "../.."), link(name, target), file(name+"/f", "x"),
			link("d/"+name, target), hard("h", name), file("d/e/"+target, "x"),
		})
		_ = code.Unpack(t.Context(), bytes.NewReader(data), dir)
		inside(t, dir)
	})
}

// server serves an archive and simulates network failures.
type server struct {
	*httptest.Server
	data     []byte
	cutAfter atomic.Int64 // bytes of each answer, where positive
	fail     atomic.Int64 // answers with 503 that are left
	noRanges bool
	requests atomic.Int64
}

func serve(t *testing.T, data []byte) *server {
	t.Helper()
	s := &server{data: data}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if s.fail.Add(-1) >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if s.noRanges {
			r.Header.Del("Range")
		}
		if n := s.cutAfter.Load(); n > 0 {
			w = &cutter{ResponseWriter: w, left: n}
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.data))
	}))
	t.Cleanup(s.Close)
	return s
}

// cutter ends the connection in the middle of a response.
type cutter struct {
	http.ResponseWriter
	left int64
}

func (c *cutter) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		panic(http.ErrAbortHandler)
	}
	c.left -= int64(len(p))
	return c.ResponseWriter.Write(p)
}

func (s *server) code(t *testing.T) *spec.Code {
	t.Helper()
	sum := sha256.Sum256(s.data)
	return &spec.Code{URL: s.URL, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(s.data)), Dir: filepath.Join(t.TempDir(), "code")}
}

// big returns an archive with incompressible content.
func big(t *testing.T) []byte {
	t.Helper()
	b := make([]byte, 600<<10)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return archive(t, file("big", string(b)), file("main.py", "print()"))
}

func TestCodeIsFetchedCheckedAndUnpacked(t *testing.T) {
	s := serve(t, big(t))
	c := s.code(t)
	tmp := t.TempDir()
	require.NoError(t, code.Get(t.Context(), c, "token", tmp, t.Logf))
	assert.FileExists(t, filepath.Join(c.Dir, "main.py"))
	list, err := os.ReadDir(tmp)
	require.NoError(t, err)
	assert.Empty(t, list, "the archive is removed")
	assert.EqualValues(t, 1, s.requests.Load())
}

func TestADownloadThatIsCutGoesOnWhereItWas(t *testing.T) {
	for _, ranges := range []bool{true, false} {
		s := serve(t, big(t))
		s.noRanges = !ranges
		s.fail.Store(1)
		s.cutAfter.Store(int64(len(s.data)/2 + 10))
		c := s.code(t)
		said := 0
		err := code.Get(t.Context(), c, "token", t.TempDir(), func(string, ...any) {
			if said++; said == 2 && !ranges {
				s.cutAfter.Store(0)
			}
		})
		require.NoError(t, err)
		assert.FileExists(t, filepath.Join(c.Dir, "main.py"))
		assert.EqualValues(t, 3, s.requests.Load(), "a failure, the first half, the rest")
	}
}

func TestADownloadWaitsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := archive(t, file("main.py", "print()"))
		asked := 0
		sum := sha256.Sum256(data)
		c := &spec.Code{URL: "http://controller/code", SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data)), Dir: filepath.Join(t.TempDir(), "code")}
		answer := func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked <= 40 {
				w.Header().Set("Retry-After", "2")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write(data)
		}
		require.NoError(t, code.GetBy(t.Context(), c, http.HandlerFunc(answer), t.TempDir(), t.Logf))
		assert.FileExists(t, filepath.Join(c.Dir, "main.py"))
		assert.Equal(t, 41, asked)

		asked = -1000
		require.ErrorContains(t, code.GetBy(t.Context(), c, http.HandlerFunc(answer), t.TempDir(), t.Logf), "busy")
	})
}

func TestCodeThatIsNotWhatWasSubmittedIsNeverUnpacked(t *testing.T) {
	s := serve(t, archive(t, file("evil", "x")))
	c := s.code(t)
	c.SHA256 = strings.Repeat("0", 64)
	ctx, cancel := context.WithCancelCause(t.Context())
	gaveUp := errors.New("enough")
	n := 0
	err := code.Get(ctx, c, "token", t.TempDir(), func(format string, args ...any) {
		if n++; n == 2 {
			cancel(gaveUp) // otherwise it would retry for a minute
		}
	})
	require.ErrorIs(t, err, gaveUp)
	assert.NoFileExists(t, filepath.Join(c.Dir, "evil"))

	c = s.code(t)
	c.Size--
	require.ErrorContains(t, code.Get(t.Context(), c, "token", t.TempDir(), t.Logf), "more than")
	c.Size = spec.MaxCode + 1
	require.ErrorContains(t, code.Get(t.Context(), c, "token", t.TempDir(), t.Logf), "more than")
	assert.NoDirExists(t, c.Dir)
}

func TestAFolderThatCannotBeWrittenIsNamed(t *testing.T) {
	s := serve(t, archive(t, file("a", "x")))
	c := s.code(t)
	require.NoError(t, os.WriteFile(c.Dir, nil, 0o600))
	require.ErrorContains(t, code.Get(t.Context(), c, "token", t.TempDir(), t.Logf), c.Dir)
}
