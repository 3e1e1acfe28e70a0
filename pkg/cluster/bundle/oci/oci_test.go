package oci

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newImage(t *testing.T, dir string, entries []Entry) v1.Image {
	t.Helper()
	l, err := NewLayer(filepath.Join(dir, "layer"), entries)
	require.NoError(t, err)
	img, err := NewImage(Config{Arch: "amd64", Entrypoint: []string{"/hello"}, Labels: map[string]string{"a": "b"}}, l)
	require.NoError(t, err)
	return img
}

func someEntries(t *testing.T) []Entry {
	src := filepath.Join(t.TempDir(), "hello")
	require.NoError(t, os.WriteFile(src, []byte("hello world"), 0o700))
	return []Entry{
		{Path: "usr/bin/hello", Mode: 0o755, Source: src},
		{Path: "/etc/passwd", Mode: 0o644, Data: []byte("root")},
		{Path: "bin", Link: "usr/bin"},
		{Path: "tmp", Mode: 0o1777, Dir: true},
	}
}

func TestALayerIsSortedDatedAtTheEpochAndOwnedByRoot(t *testing.T) {
	l, err := NewLayer(filepath.Join(t.TempDir(), "layer"), someEntries(t))
	require.NoError(t, err)
	r, err := l.Uncompressed()
	require.NoError(t, err)
	defer r.Close()
	var names []string
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		names = append(names, h.Name)
		assert.Zero(t, h.ModTime.Unix(), h.Name)
		assert.Zero(t, h.Uid+h.Gid, h.Name)
	}
	assert.Equal(t, []string{"bin", "etc/", "etc/passwd", "tmp/", "usr/", "usr/bin/", "usr/bin/hello"}, names)
}

func TestTheSameFilesGiveTheSameArchive(t *testing.T) {
	var archives [][]byte
	for range 2 {
		dir := t.TempDir()
		file := filepath.Join(dir, "hello.tar")
		_, err := WriteArchive(t.Context(), file, "example.org/hello:v1", newImage(t, dir, someEntries(t)))
		require.NoError(t, err)
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		archives = append(archives, data)
	}
	assert.True(t, bytes.Equal(archives[0], archives[1]))
}

func TestAnArchiveIsReadBackUnderItsName(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hello.tar")
	made := newImage(t, dir, someEntries(t))
	digest, err := WriteArchive(t.Context(), file, "example.org/hello:v1", made)
	require.NoError(t, err)
	want, err := made.Digest()
	require.NoError(t, err)
	assert.Equal(t, want.String(), digest)

	read, err := tarball.ImageFromPath(file, nil)
	require.NoError(t, err)
	requireValid(t, read)
	c, err := read.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, []string{"/hello"}, c.Config.Entrypoint)
	assert.Equal(t, "amd64", c.Architecture)
	m, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(file) })
	require.NoError(t, err)
	assert.Equal(t, []string{"example.org/hello:v1"}, m[0].RepoTags)
}

func TestTheIndexGivesContainerdTheDigestAndTheFullName(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hello.tar")
	digest, err := WriteArchive(t.Context(), file, "example.org/hello:v1", newImage(t, dir, someEntries(t)))
	require.NoError(t, err)
	files := map[string][]byte{}
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	tr := tar.NewReader(f)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		files[h.Name], err = io.ReadAll(tr)
		require.NoError(t, err)
	}
	assert.JSONEq(t, `{"imageLayoutVersion":"1.0.0"}`, string(files["oci-layout"]))
	var index v1.IndexManifest
	require.NoError(t, json.Unmarshal(files["index.json"], &index))
	require.Len(t, index.Manifests, 1)
	assert.Equal(t, digest, index.Manifests[0].Digest.String())
	assert.Equal(t, "example.org/hello:v1", index.Manifests[0].Annotations["io.containerd.image.name"])
	got, _, err := v1.SHA256(bytes.NewReader(files[blobPath(index.Manifests[0].Digest)]))
	require.NoError(t, err)
	assert.Equal(t, digest, got.String())
}

func TestAnImageIsValid(t *testing.T) {
	requireValid(t, newImage(t, t.TempDir(), someEntries(t)))
}

// requireValid checks all checksums of an image. The registry client's full check doesn't support zstd.
func requireValid(t *testing.T, img v1.Image) {
	t.Helper()
	require.NoError(t, validate.Image(img, validate.Fast))
	c, err := img.ConfigFile()
	require.NoError(t, err)
	layers, err := img.Layers()
	require.NoError(t, err)
	require.Len(t, layers, len(c.RootFS.DiffIDs))
	for i, l := range layers {
		plain, err := l.Uncompressed()
		require.NoError(t, err)
		got, _, err := v1.SHA256(plain)
		require.NoError(t, err)
		require.NoError(t, plain.Close())
		assert.Equal(t, c.RootFS.DiffIDs[i], got)
	}
}

func TestAFailedArchiveLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	img := newImage(t, dir, someEntries(t))
	require.NoError(t, os.Remove(filepath.Join(dir, "layer")))
	file := filepath.Join(dir, "hello.tar")
	_, err := WriteArchive(t.Context(), file, "example.org/hello:v1", img)
	require.ErrorContains(t, err, "example.org/hello:v1")
	assert.NoFileExists(t, file)
}

func TestALayerNamesAFileThatIsMissing(t *testing.T) {
	_, err := NewLayer(filepath.Join(t.TempDir(), "layer"), []Entry{{Path: "a", Source: "/nonexistent"}})
	require.ErrorContains(t, err, "add a to a layer")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAnArchiveGivesBackTheImageThatWasWritten(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hello.tar")
	made := newImage(t, dir, someEntries(t))
	digest, err := WriteArchive(t.Context(), file, "example.org/hello:v1", made)
	require.NoError(t, err)
	a, err := OpenArchive(file)
	require.NoError(t, err)
	defer a.Close()
	assert.Equal(t, "example.org/hello:v1", a.Ref)
	got, err := a.Digest()
	require.NoError(t, err)
	assert.Equal(t, digest, got.String())
	requireValid(t, a)
}

func TestAnArchiveThatIsNotWholeIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hello.tar")
	_, err := WriteArchive(t.Context(), file, "example.org/hello:v1", newImage(t, dir, someEntries(t)))
	require.NoError(t, err)
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"cut off":            {whole[:len(whole)/2], "open image bad.tar"},
		"empty":              {nil, "it contains no index.json"},
		"another manifest":   {bytes.Replace(whole, []byte(`"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest`), []byte(`"schemaVersion":1,"mediaType":"application/vnd.oci.image.manifest`), 1), "its manifest has digest"},
		"an index of no use": {bytes.Replace(whole, []byte(`"manifests":[{`), []byte(`"nanifests":[{`), 1), "lists 0 images"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := filepath.Join(t.TempDir(), "bad.tar")
			require.NoError(t, os.WriteFile(bad, tt.data, 0o644))
			_, err := OpenArchive(bad)
			require.ErrorContains(t, err, tt.want)
		})
	}
}
