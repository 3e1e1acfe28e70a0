package code_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/code"
)

// home returns a target folder, and a function that checks that its other content didn't change.
func home(t *testing.T) (dir string, untouched func()) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "home")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".ssh"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".bashrc"), []byte("mine"), 0o600))
	return dir, func() {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(dir, ".bashrc"))
		require.NoError(t, err)
		assert.Equal(t, "mine", string(got))
		info, err := os.Stat(filepath.Join(dir, ".bashrc"))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode())
		list, err := os.ReadDir(filepath.Join(dir, ".ssh"))
		require.NoError(t, err)
		assert.Empty(t, list)
	}
}

func receive(t *testing.T, data []byte, dir string, p code.Parcel) (int64, []string, error) {
	t.Helper()
	var skipped []string
	p.Skipped = func(name, why string) { skipped = append(skipped, name+": "+why) }
	n, err := code.Receive(t.Context(), bytes.NewReader(data), dir, p)
	return n, skipped, err
}

func TestOfAFileNothingElseComes(t *testing.T) {
	for name, entries := range map[string][]tar.Header{
		"another name":               {file(".bashrc", "evil")},
		"a second file":              {file("model.pt", "m"), file(".bashrc", "evil")},
		"a file before it":           {file(".ssh/authorized_keys", "evil"), file("model.pt", "m")},
		"the same file again":        {file("model.pt", "m"), file("model.pt", "evil")},
		"a folder of its name":       {folder("model.pt"), file("model.pt/x", "evil")},
		"a link of its name":         {link("model.pt", ".bashrc")},
		"a second name for a file":   {hard("model.pt", ".bashrc")},
		"a link, then through it":    {link("model.pt", ".ssh"), file("model.pt/authorized_keys", "evil")},
		"a longer name":              {file("./model.pt", "m")},
		"nothing":                    {},
		"a name that leads back out": {file("model.pt/../.bashrc", "evil")},
	} {
		t.Run(name, func(t *testing.T) {
			dir, untouched := home(t)
			_, _, err := receive(t, archive(t, entries...), dir, code.Parcel{Name: "model.pt"})
			require.Error(t, err)
			untouched()
			if info, err := os.Lstat(filepath.Join(dir, "model.pt")); err == nil {
				assert.True(t, info.Mode().IsRegular())
			}
		})
	}
}

func TestOfAFolderNothingBesideItComes(t *testing.T) {
	for name, entries := range map[string][]tar.Header{
		"a file beside it":         {folder("out"), file(".bashrc", "evil")},
		"a folder beside it":       {folder("out"), folder(".ssh"), file(".ssh/authorized_keys", "evil")},
		"a name that leads out":    {folder("out"), file("out/../.bashrc", "evil")},
		"a name that begins alike": {folder("out"), file("out2", "evil")},
		"a second name for a file": {folder("out"), hard("out/x", ".bashrc")},
		"one for a file in it":     {folder("out"), file("out/a", "a"), hard("out/x", "out/a")},
		"a file of its name":       {file("out", "evil")},
		"a link of its name":       {link("out", ".ssh"), file("out/authorized_keys", "evil")},
		"a file through a link":    {folder("out"), folder("out/d"), link("out/l", "d"), file("out/l/x", "evil")},
		"nothing":                  {},
	} {
		t.Run(name, func(t *testing.T) {
			dir, untouched := home(t)
			_, _, err := receive(t, archive(t, entries...), dir, code.Parcel{Name: "out", Folder: true})
			require.Error(t, err)
			untouched()
		})
	}
}

func TestLinksThatAreThereAreNotFollowed(t *testing.T) {
	dir, untouched := home(t)
	require.NoError(t, os.Symlink(".bashrc", filepath.Join(dir, "model.pt")))
	_, _, err := receive(t, archive(t, file("model.pt", "model")), dir, code.Parcel{Name: "model.pt"})
	require.NoError(t, err, "the link is replaced")
	untouched()
	got, err := os.ReadFile(filepath.Join(dir, "model.pt"))
	require.NoError(t, err)
	assert.Equal(t, "model", string(got))

	require.NoError(t, os.Symlink(".ssh", filepath.Join(dir, "out")))
	_, _, err = receive(t, archive(t, folder("out"), file("out/authorized_keys", "evil")), dir, code.Parcel{Name: "out", Folder: true})
	require.EqualError(t, err, `"out" already exists, and is not a folder`)
	untouched()

	require.NoError(t, os.Mkdir(filepath.Join(dir, "deep"), 0o755))
	require.NoError(t, os.Symlink("../.ssh", filepath.Join(dir, "deep", "sub")))
	_, _, err = receive(t, archive(t, folder("deep"), file("deep/sub/authorized_keys", "evil")), dir, code.Parcel{Name: "deep", Folder: true})
	require.ErrorContains(t, err, "is not a folder")
	untouched()
}

func TestLinksThatLeadOutOfTheCopiedFolderAreLeftOut(t *testing.T) {
	dir, untouched := home(t)
	n, skipped, err := receive(t, archive(t, folder("out"), folder("out/d"), link("out/up", "../.bashrc"), link("out/d/up", "../../.bashrc"),
		link("out/abs", "/etc/passwd"), link("out/d/ok", "../a"), file("out/a", "abc")), dir, code.Parcel{Name: "out", Folder: true})
	require.NoError(t, err)
	assert.EqualValues(t, 3, n, "the bytes of its files")
	assert.Equal(t, []string{"out/up: a link to ../.bashrc", "out/d/up: a link to ../../.bashrc", "out/abs: a link to /etc/passwd"}, skipped)
	assert.NoFileExists(t, filepath.Join(dir, "out/up"))
	got, err := os.ReadFile(filepath.Join(dir, "out/d/ok"))
	require.NoError(t, err)
	assert.Equal(t, "abc", string(got))
	untouched()
}

func TestModesAreLessWhatTheUmaskTakesAndFoldersKeepTheirs(t *testing.T) {
	dir, _ := home(t)
	open := file("out/run", "x")
	open.Mode = 0o6777
	wide := folder("out")
	wide.Mode = 0o777
	require.NoError(t, os.Mkdir(filepath.Join(dir, "out"), 0o700))
	_, _, err := receive(t, archive(t, wide, open), dir, code.Parcel{Name: "out", Folder: true})
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(dir, "out"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	probe := filepath.Join(dir, "probe")
	f, err := os.OpenFile(probe, os.O_CREATE|os.O_WRONLY, 0o777)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	want, err := os.Stat(probe)
	require.NoError(t, err)
	info, err = os.Stat(filepath.Join(dir, "out/run"))
	require.NoError(t, err)
	assert.Equal(t, want.Mode(), info.Mode())
}

func TestOnlyNamesOfFilesAreReceived(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "/a"} {
		_, err := code.Receive(t.Context(), strings.NewReader(""), t.TempDir(), code.Parcel{Name: name})
		require.Error(t, err, name)
	}
	_, err := code.Receive(t.Context(), io.LimitReader(strings.NewReader("no archive"), 5), t.TempDir(), code.Parcel{Name: "a"})
	require.Error(t, err)
}

func TestAFileStaysUntilTheNewOneIsWhole(t *testing.T) {
	model := file("model.pt", strings.Repeat("new", 1<<16))
	whole := archive(t, model)
	inside := archive(t, folder("out"), file("out/model.pt", strings.Repeat("new", 1<<16)))
	for name, c := range map[string]struct {
		data []byte
		p    code.Parcel
	}{
		"it breaks off":            {whole[:len(whole)/2], code.Parcel{Name: "model.pt"}},
		"its end is missing":       {whole[:len(whole)-4], code.Parcel{Name: "model.pt"}},
		"something else follows":   {archive(t, model, file("x", "x")), code.Parcel{Name: "model.pt"}},
		"in a folder that is sent": {inside[:len(inside)/2], code.Parcel{Name: "out", Folder: true}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, untouched := home(t)
			at := filepath.Join(dir, "model.pt")
			if c.p.Folder {
				require.NoError(t, os.Mkdir(filepath.Join(dir, "out"), 0o755))
				at = filepath.Join(dir, "out", "model.pt")
			}
			require.NoError(t, os.WriteFile(at, []byte("old"), 0o600))
			_, _, err := receive(t, c.data, dir, c.p)
			require.Error(t, err)
			got, err := os.ReadFile(at)
			require.NoError(t, err)
			assert.Equal(t, "old", string(got))
			left, err := filepath.Glob(filepath.Join(filepath.Dir(at), ".paictl-*"))
			require.NoError(t, err)
			assert.Empty(t, left, "nothing stays beside it")
			untouched()
		})
	}
}

// sparse returns a small archive with one file that consists only of a hole.
func sparse(t *testing.T, name string, size int64) []byte {
	t.Helper()
	records := ""
	for _, kv := range []string{"GNU.sparse.major=0", "GNU.sparse.minor=1", "GNU.sparse.name=" + name, "GNU.sparse.size=" + strconv.FormatInt(size, 10), "GNU.sparse.numblocks=1", "GNU.sparse.map=0,0"} {
		n := len(kv) + 3
		for len(strconv.Itoa(n))+len(kv)+2 != n {
			n++
		}
		records += strconv.Itoa(n) + " " + kv + "\n"
	}
	raw := func(name string, kind byte, body string) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(body)), Format: tar.FormatUSTAR}))
		_, err := io.WriteString(w, body)
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		block := b.Bytes()
		sum := 0
		block[156] = kind
		copy(block[148:156], "        ")
		for _, c := range block[:512] {
			sum += int(c)
		}
		copy(block[148:156], fmt.Sprintf("%06o\x00 ", sum))
		return block
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(slices.Concat(raw("pax", 'x', records), raw(name, '0', ""), make([]byte, 1024)))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return out.Bytes()
}

func TestACopyHasNoLimitAndNoHoles(t *testing.T) {
	dir, untouched := home(t)
	_, _, err := receive(t, sparse(t, "model.pt", 1<<20), dir, code.Parcel{Name: "model.pt"})
	require.ErrorContains(t, err, "a sparse file")
	assert.NoFileExists(t, filepath.Join(dir, "model.pt"))
	untouched()
	require.ErrorContains(t, code.UnpackCopy(t.Context(), bytes.NewReader(sparse(t, "model.pt", 1<<20)), dir), "a sparse file")

	large := hugeHeader(t, "model.pt", 40<<30)
	require.ErrorContains(t, code.Unpack(t.Context(), bytes.NewReader(large), t.TempDir()), "more than 34359738368 bytes unpacked")
	require.ErrorIs(t, code.UnpackCopy(t.Context(), bytes.NewReader(large), t.TempDir()), io.ErrUnexpectedEOF)
	_, _, err = receive(t, large, dir, code.Parcel{Name: "model.pt"})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "it breaks off, and isn't refused")
}

// hugeHeader returns the beginning of an archive that contains a file of this size. Real data of that size would take minutes.
func hugeHeader(t *testing.T, name string, size int64) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size}))
	_, err := io.WriteString(w, "begin")
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return out.Bytes()
}
