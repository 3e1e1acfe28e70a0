package transfer

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sparse creates a file that consists only of a hole.
func sparse(t *testing.T, name string, size int64) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	require.NoError(t, os.Truncate(name, size))
}

func TestAHugeSparseFileIsNotCopiedForever(t *testing.T) {
	dir := t.TempDir()
	huge := filepath.Join(dir, "huge")
	sparse(t, huge, maxHoles+1)
	sparse(t, filepath.Join(dir, "small"), 1<<20)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "weights"), []byte("weights"), 0o600))

	var b bytes.Buffer
	_, err := Pack(t.Context(), &b, huge, "huge", nil)
	require.ErrorContains(t, err, "is sparse: with it, more than 64 GiB")
	require.ErrorContains(t, err, "tar --sparse", "the remedy")
	assert.Less(t, b.Len(), 100, "nothing of it was sent")

	b.Reset()
	var skipped []string
	n, err := Pack(t.Context(), &b, dir, "all", func(name, _ string) { skipped = append(skipped, name) })
	require.NoError(t, err)
	assert.Equal(t, []string{"all/huge"}, skipped, "a folder is copied without it")
	assert.EqualValues(t, 1<<20+7, n)
	z, err := gzip.NewReader(&b)
	require.NoError(t, err)
	var names []string
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		names = append(names, h.Name)
	}
	assert.Equal(t, []string{"all/", "all/small", "all/weights"}, names)
}

func TestTheHolesOfAllFilesCount(t *testing.T) {
	p := packer{ctx: t.Context(), tar: tar.NewWriter(io.Discard), skipped: func(string, string) {}, holes: maxHoles}
	name := filepath.Join(t.TempDir(), "one")
	sparse(t, name, 1<<20)
	var refused *holesError
	require.ErrorAs(t, p.file(name, "one"), &refused)
}

func TestOnlyBytesWithoutDataAreHoles(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(3<<20))
	for _, at := range []int64{1 << 20, 2 << 20} {
		_, err = f.WriteAt(bytes.Repeat([]byte("x"), 64<<10), at)
		require.NoError(t, err)
	}
	n, err := holes(f, 3<<20, maxHoles)
	require.NoError(t, err)
	assert.EqualValues(t, 3<<20-128<<10, n)
	n, err = holes(f, 3<<20, 1)
	require.NoError(t, err)
	assert.Greater(t, n, int64(1), "it ends as soon as there are more than allowed")
	at, err := f.Seek(0, io.SeekCurrent)
	require.NoError(t, err)
	assert.Zero(t, at, "the file is read from its beginning")
	full, err := holes(f, 0, maxHoles)
	require.NoError(t, err)
	assert.Zero(t, full)
}
