package transfer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

func TestAListingOfAHostileTaskIsRefusedOrMapped(t *testing.T) {
	whole := func(change func(l *transfer.Listing)) *transfer.Listing {
		l := &transfer.Listing{Path: "/work", Entry: transfer.Entry{Name: "work", Kind: transfer.Folder}, Entries: transfer.Entries{{Name: "a", Kind: transfer.File, Size: 5}}}
		change(l)
		return l
	}
	for name, change := range map[string]func(l *transfer.Listing){
		"a relative path":      func(l *transfer.Listing) { l.Path = "work" },
		"a long path":          func(l *transfer.Listing) { l.Path = "/" + strings.Repeat("x", 25_000) },
		"no name":              func(l *transfer.Listing) { l.Entries[0].Name = "" },
		"the folder above":     func(l *transfer.Listing) { l.Entries[0].Name = ".." },
		"a path as a name":     func(l *transfer.Listing) { l.Entries[0].Name = "../etc/passwd" },
		"a long name":          func(l *transfer.Listing) { l.Entries[0].Name = strings.Repeat("x", 766) },
		"a long link":          func(l *transfer.Listing) { l.Entries[0].Link = strings.Repeat("x", 12_289) },
		"a negative size":      func(l *transfer.Listing) { l.Entries[0].Size = -1 },
		"a negative file size": func(l *transfer.Listing) { l.Size = -1 },
	} {
		assert.Error(t, whole(change).Check(), name)
	}
	l := whole(func(l *transfer.Listing) { l.Entries[0].Kind, l.Name = "<b>", "of another" })
	require.NoError(t, l.Check())
	assert.Equal(t, transfer.Other, l.Entries[0].Kind, "a kind of a later version is shown as neither a file nor a folder")
	assert.Equal(t, "work", l.Name)

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, strings.Repeat("x", 255)), nil, 0o600))
	require.NoError(t, os.Symlink(strings.Repeat("y", 4095), filepath.Join(dir, "link")))
	for _, name := range []string{dir, "/", filepath.Join(dir, "none")} {
		l, err := transfer.List(name)
		require.NoError(t, err)
		assert.NoError(t, l.Check(), name)
	}
}
