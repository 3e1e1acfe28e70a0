package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
)

func newBundle(t *testing.T, files map[string]string) *Bundle {
	t.Helper()
	dir := t.TempDir()
	w, err := Create(dir, &Manifest{Kubernetes: "v1.36.3", Arch: "amd64", Origin: OriginBuild})
	require.NoError(t, err)
	defer w.Close()
	for name, content := range files {
		add(t, w, name, content)
	}
	b, err := w.Commit()
	require.NoError(t, err)
	b.cacheFile = filepath.Join(t.TempDir(), "cache", "verified.json")
	return b
}

func add(t *testing.T, w *Writer, name, content string) Artifact {
	t.Helper()
	tmp := w.Work(name)
	require.NoError(t, os.WriteFile(tmp, []byte(content), 0o600))
	a := Artifact{Name: name, Version: "v1", Kind: KindBinary, Path: PathOf(KindBinary, name), Source: "example.org/" + name + "@v1"}
	a, err := w.Add(t.Context(), a, "inputs of "+content, tmp)
	require.NoError(t, err)
	return a
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func TestOpenOfAFolderWithoutAManifestNamesTheCommandThatMakesIt(t *testing.T) {
	_, err := Open(t.TempDir() + "/none")
	require.Error(t, err)
	assert.Contains(t, hint.Of(err), "paictl bundle build -o ")
}

func TestOpenRefusesAManifestThatCannotBe(t *testing.T) {
	good := "apiVersion: paictl.openpai.org/v1\nkind: Bundle\nkubernetes: v1.36.3\narch: amd64\norigin: build\nartifacts:\n"
	entry := func(name, kind, path, sha, rest string) string {
		return "- {name: " + name + ", version: v1, kind: " + kind + ", path: " + path + ", source: s, sha256: " + sha + ", size: 1" + rest + "}\n"
	}
	ok := strings.Repeat("ab", 32)
	tests := map[string]struct{ text, want string }{
		"an empty file":            {"", "empty"},
		"an unknown key":           {good + entry("a", "binary", "bin/a", ok, ", colour: red"), "colour"},
		"no artifacts":             {good, "artifacts is empty"},
		"another kind of document": {strings.Replace(good, "kind: Bundle", "kind: Pod", 1) + entry("a", "binary", "bin/a", ok, ""), `"Pod"`},
		"an unknown origin":        {strings.Replace(good, "origin: build", "origin: found", 1) + entry("a", "binary", "bin/a", ok, ""), `origin is "found"`},
		"a path out of the folder": {good + entry("a", "binary", "../../a", ok, ""), "is outside of the bundle"},
		"an absolute path":         {good + entry("a", "binary", "/bin/a", ok, ""), "is outside of the bundle"},
		"a short checksum":         {good + entry("a", "binary", "bin/a", "abcd", ""), "64 hexadecimal"},
		"an unknown kind":          {good + entry("a", "script", "bin/a", ok, ""), `unknown kind "script"`},
		"an unknown role":          {good + entry("a", "binary", "bin/a", ok, ", roles: [boss]"), `unknown role "boss"`},
		"an image without digest":  {good + entry("a", "image", "images/a.tar", ok, ", image: x/a:1"), "image and digest"},
		"a name twice":             {good + entry("a", "binary", "bin/a", ok, "") + entry("a", "binary", "bin/b", ok, ""), "binary/a is listed twice"},
		"a path twice":             {good + entry("a", "binary", "bin/a", ok, "") + entry("b", "binary", "bin/a", ok, ""), "path bin/a is listed twice"},
		"a second document":        {good + entry("a", "binary", "bin/a", ok, "") + "---\nx: 1\n", "more than one document"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, ManifestFile), []byte(tt.text), 0o644))
			_, err := Open(dir)
			require.ErrorContains(t, err, tt.want)
			assert.Contains(t, err.Error(), ManifestFile)
			assert.NotEmpty(t, hint.Of(err))
		})
	}
}

func TestLookupAndListFindArtifacts(t *testing.T) {
	b := newBundle(t, map[string]string{"kubelet": "k", "ctr": "c"})
	a, ok := b.Lookup(KindBinary, "kubelet")
	require.True(t, ok)
	assert.Equal(t, sum("k"), a.SHA256)
	assert.Equal(t, int64(1), a.Size)
	data, err := os.ReadFile(b.File(a))
	require.NoError(t, err)
	assert.Equal(t, "k", string(data))
	_, ok = b.Lookup(KindImage, "kubelet")
	assert.False(t, ok)
	assert.Len(t, b.List(""), 2)
	assert.Empty(t, b.List(KindImage))
}

func TestVerifyNamesEveryBadFileWithBothChecksums(t *testing.T) {
	b := newBundle(t, map[string]string{"good": "good", "changed": "before", "gone": "gone"})
	require.NoError(t, os.WriteFile(filepath.Join(b.Dir(), "bin/changed"), []byte("after!"), 0o755))
	require.NoError(t, os.Remove(filepath.Join(b.Dir(), "bin/gone")))
	n := 0
	err := b.Verify(t.Context(), func(Artifact) { n++ })
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt)
	assert.Equal(t, 3, n)
	require.Len(t, corrupt.Bad, 2)
	assert.ErrorContains(t, err, sum("before"))
	assert.ErrorContains(t, err, sum("after!"))
	assert.ErrorContains(t, err, "bin/gone is missing")
	assert.Contains(t, hint.Of(err), "rm -f bin/changed) && paictl bundle build -o "+b.Dir())
}

func TestVerifyStopsWhenItIsCancelled(t *testing.T) {
	b := newBundle(t, map[string]string{"a": "a"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.Verify(ctx, nil), context.Canceled)
}

// age makes a file's modification time old enough for the cache.
func age(t *testing.T, file string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(file, old, old))
}

func TestVerifyArtifactsHashesAnUnchangedFileOnce(t *testing.T) {
	b := newBundle(t, map[string]string{"kubelet": "first"})
	list := b.List("")
	file := b.File(list[0])
	age(t, file)
	require.NoError(t, b.VerifyArtifacts(t.Context(), list))

	// The size, inode and time are unchanged. The check succeeds, which shows that the file wasn't hashed.
	require.NoError(t, os.WriteFile(file, []byte("FIRST"), 0o755))
	old, err := os.Stat(b.cacheFile)
	require.NoError(t, err)
	k := readStamps(b.cacheFile)[file]
	require.NoError(t, os.Chtimes(file, time.Unix(0, k.MTime), time.Unix(0, k.MTime)))
	require.NoError(t, b.VerifyArtifacts(t.Context(), list))
	assert.Equal(t, os.FileMode(0o600), old.Mode().Perm())

	age(t, file)
	require.Error(t, b.VerifyArtifacts(t.Context(), list), "another time, another hash")
}

func TestVerifyArtifactsNoticesEveryChange(t *testing.T) {
	tests := map[string]func(t *testing.T, file string){
		"new content":      func(t *testing.T, f string) { require.NoError(t, os.WriteFile(f, []byte("other"), 0o755)) },
		"a byte more":      func(t *testing.T, f string) { require.NoError(t, os.WriteFile(f, []byte("first!"), 0o755)); age(t, f) },
		"the file is gone": func(t *testing.T, f string) { require.NoError(t, os.Remove(f)) },
		"another file in its place": func(t *testing.T, f string) {
			fi, err := os.Stat(f)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(f+".new", []byte("other"), 0o755))
			require.NoError(t, os.Chtimes(f+".new", fi.ModTime(), fi.ModTime()))
			require.NoError(t, os.Rename(f+".new", f))
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBundle(t, map[string]string{"kubelet": "first"})
			file := b.File(b.List("")[0])
			age(t, file)
			require.NoError(t, b.VerifyArtifacts(t.Context(), b.List("")))
			change(t, file)
			var corrupt *CorruptError
			require.ErrorAs(t, b.VerifyArtifacts(t.Context(), b.List("")), &corrupt)
		})
	}
}

func TestVerifyArtifactsDoesNotTrustAFileThatWasJustWritten(t *testing.T) {
	b := newBundle(t, map[string]string{"kubelet": "first"})
	require.NoError(t, b.VerifyArtifacts(t.Context(), b.List("")))
	assert.Empty(t, readStamps(b.cacheFile))
}

func TestVerifyArtifactsWorksWithoutItsMemory(t *testing.T) {
	b := newBundle(t, map[string]string{"kubelet": "first"})
	b.cacheFile = ""
	age(t, b.File(b.List("")[0]))
	require.NoError(t, b.VerifyArtifacts(t.Context(), b.List("")))
	b.cacheFile = filepath.Join(t.TempDir(), "broken.json")
	require.NoError(t, os.WriteFile(b.cacheFile, []byte("{"), 0o600))
	require.NoError(t, b.VerifyArtifacts(t.Context(), b.List("")))
	assert.Len(t, readStamps(b.cacheFile), 1)
}

func TestVerifyArtifactsHashesAFileAgainWhoseManifestExpectsAnother(t *testing.T) {
	b := newBundle(t, map[string]string{"kubelet": "first"})
	list := b.List("")
	age(t, b.File(list[0]))
	require.NoError(t, b.VerifyArtifacts(t.Context(), list))
	list[0].SHA256 = sum("second")
	var corrupt *CorruptError
	require.ErrorAs(t, b.VerifyArtifacts(t.Context(), list), &corrupt)
}
