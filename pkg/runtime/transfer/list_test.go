package transfer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/runtime/transfer"
)

func TestAFolderIsListed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "logs"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.pt"), []byte("weights"), 0o600))
	require.NoError(t, os.Symlink("model.pt", filepath.Join(dir, "latest")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "broken")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	t.Chdir(dir)
	list, err := transfer.List(".")
	require.NoError(t, err)
	here, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, here, list.Path)
	assert.Equal(t, transfer.Folder, list.Kind)
	var got []string
	for _, e := range list.Entries {
		got = append(got, fmt.Sprint(e.Name, " ", e.Kind, " ", e.Size, " ", e.Link))
		assert.Equal(t, e.Name == "broken", e.Modified == nil, e.Name)
	}
	assert.Equal(t, []string{"broken none 0 nowhere", "latest file 7 model.pt", "logs folder 0 ", "model.pt file 7 ", "pipe other 0 "}, got)
}

func TestAFileIsListedAlone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(name, []byte("12345"), 0o600))
	list, err := transfer.List(name)
	require.NoError(t, err)
	assert.Equal(t, transfer.File, list.Kind)
	assert.Equal(t, int64(5), list.Size)
	assert.Empty(t, list.Entries)
}

func TestAMissingPathHasTheKindNone(t *testing.T) {
	list, err := transfer.List(filepath.Join(t.TempDir(), "a", "b"))
	require.NoError(t, err)
	assert.Equal(t, transfer.None, list.Kind)
}

func TestAPathBelowAFileIsAnError(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	_, err := transfer.List(filepath.Join(name, "b"))
	require.ErrorIs(t, err, unix.ENOTDIR)
}

func TestALargeFolderIsListedInPart(t *testing.T) {
	dir := t.TempDir()
	for i := range transfer.MaxEntries + 3 {
		require.NoError(t, os.Mkdir(filepath.Join(dir, fmt.Sprintf("%05d", i)), 0o700))
	}
	list, err := transfer.List(dir)
	require.NoError(t, err)
	assert.Len(t, list.Entries, transfer.MaxEntries)
	assert.True(t, list.More)
}
