package transfer

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/code"
)

func TestWhatIsPackedIsUnpackedUnderItsNewName(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(from, "a/empty"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(from, "a/run.sh"), []byte("x"), 0o755))
	require.NoError(t, os.Symlink("run.sh", filepath.Join(from, "a/link")))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(from, "a/out")))
	l, err := net.Listen("unix", filepath.Join(from, "a/sock"))
	require.NoError(t, err)
	defer l.Close()
	var b bytes.Buffer
	var skipped []string
	require.NoError(t, os.Symlink("../secret", filepath.Join(from, "a/beside")))
	n, err := Pack(t.Context(), &b, filepath.Join(from, "a"), "new", func(name, why string) { skipped = append(skipped, name+": "+why) })
	require.NoError(t, err)
	assert.EqualValues(t, 1, n, "the bytes of its only file")
	assert.Equal(t, []string{"new/beside: a link to ../secret", "new/out: a link to /etc/passwd", "new/sock: neither a file nor a folder"}, skipped)
	require.NoError(t, code.Unpack(t.Context(), &b, to))
	got, err := os.ReadFile(filepath.Join(to, "new/link"))
	require.NoError(t, err)
	assert.Equal(t, "x", string(got))
	assert.DirExists(t, filepath.Join(to, "new/empty"))
	info, err := os.Stat(filepath.Join(to, "new/run.sh"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode())
}

func TestALinkThatIsNamedIsFollowed(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(from, "f"), []byte("x"), 0o600))
	require.NoError(t, os.Symlink("f", filepath.Join(from, "link")))
	var b bytes.Buffer
	_, err := Pack(t.Context(), &b, filepath.Join(from, "link"), "g", nil)
	require.NoError(t, err)
	require.NoError(t, code.Unpack(t.Context(), &b, to))
	got, err := os.ReadFile(filepath.Join(to, "g"))
	require.NoError(t, err)
	assert.Equal(t, "x", string(got))
}

func TestPathsAndNamesThatCannotBeAreRefused(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "/"} {
		_, err := Pack(t.Context(), &bytes.Buffer{}, t.TempDir(), name, nil)
		require.Error(t, err, name)
	}
	_, err := Pack(t.Context(), &bytes.Buffer{}, filepath.Join(t.TempDir(), "none"), "x", nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestKindsOfPaths(t *testing.T) {
	dir := t.TempDir()
	f := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(f, nil, 0o600))
	for name, want := range map[string]Kind{dir: Folder, f: File, filepath.Join(dir, "none"): None, os.DevNull: Other} {
		got, err := KindOf(name)
		require.NoError(t, err)
		assert.Equal(t, want, got, name)
	}
	got, err := KindOf(filepath.Join(f, "below"))
	require.Error(t, err)
	assert.Equal(t, Other, got)
}
