package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/templates"
)

// The packed files are equal to the files in the repository. Packing them again results in the same bytes.
func TestPackedFilesAreThoseOfTheRepository(t *testing.T) {
	root := filepath.Join("..", "..")
	all, err := pack(root)
	require.NoError(t, err)
	again, err := pack(root)
	require.NoError(t, err)
	require.Equal(t, again, all)

	archive := all["templates/charts.zip"]
	charts, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	require.NoError(t, err)
	var names []string
	require.NoError(t, fs.WalkDir(templates.Charts(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		names = append(names, name)
		want, err := fs.ReadFile(templates.Charts(), name)
		require.NoError(t, err)
		have, err := fs.ReadFile(charts, name)
		require.NoError(t, err)
		require.Equal(t, want, have, name)
		return nil
	}))
	require.NoError(t, fstest.TestFS(charts, names...))
	require.Len(t, charts.File, len(names))

	want, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(modules)))
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(all[modules+".gz"]))
	require.NoError(t, err)
	have, err := io.ReadAll(z)
	require.NoError(t, err)
	require.Equal(t, want, have)
}
