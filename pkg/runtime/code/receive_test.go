package code_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/code"
)

// home is a person's folder into which something is copied, and what must still be in it afterwards.
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
	require.EqualError(t, err, `"out" is there, and is no folder`)
	untouched()

	require.NoError(t, os.Mkdir(filepath.Join(dir, "deep"), 0o755))
	require.NoError(t, os.Symlink("../.ssh", filepath.Join(dir, "deep", "sub")))
	_, _, err = receive(t, archive(t, folder("deep"), file("deep/sub/authorized_keys", "evil")), dir, code.Parcel{Name: "deep", Folder: true})
	require.ErrorContains(t, err, "is no folder")
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
