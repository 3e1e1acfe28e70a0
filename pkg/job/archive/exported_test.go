package archive_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/archive"
)

func TestAnExportIsTheArchiveAsItWas(t *testing.T) {
	o := filled(t, 5)
	s, _ := reopen(t, o)
	data, size, err := s.Export(t.Context(), false)
	require.NoError(t, err)
	_, _, err = s.Export(t.Context(), false)
	require.ErrorIs(t, err, archive.ErrExporting)
	require.NoError(t, s.SaveJob(t.Context(), job("alice", "later", 9, 1)))
	text, err := io.ReadAll(data)
	require.NoError(t, err)
	require.NoError(t, data.Close())
	assert.Len(t, text, int(size))

	copied := archive.Options{Path: filepath.Join(t.TempDir(), "archive.db")}
	require.NoError(t, os.WriteFile(copied.Path, text, 0o600))
	other, replaced := reopen(t, copied)
	assert.Nil(t, replaced)
	assert.Equal(t, 5, count(t, other))
	assert.Equal(t, 6, count(t, s))

	left, err := filepath.Glob(o.Path + ".export*")
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestAnExportGoesOnAfterOneThatWasKilled(t *testing.T) {
	o := filled(t, 1)
	require.NoError(t, os.WriteFile(o.Path+".export", []byte("half of it"), 0o600))
	s, _ := reopen(t, o)
	for range 2 {
		data, size, err := s.Export(t.Context(), false)
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, data)
		require.NoError(t, err)
		assert.Equal(t, size, n)
		require.NoError(t, data.Close())
		require.Error(t, data.Close(), "a file is closed once, and its turn ends once")
	}
}
