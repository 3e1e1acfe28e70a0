package bundle

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func header() *Manifest {
	return &Manifest{Kubernetes: "v1.36.3", Arch: "amd64", Origin: OriginBuild}
}

func create(t *testing.T, dir string) *Writer {
	t.Helper()
	w, err := Create(dir, header())
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func TestAFinishedArtifactSurvivesAnInterruption(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir)
	a := add(t, w, "kubelet", "k")
	require.NoError(t, w.Close())
	_, err := Open(dir)
	require.Error(t, err, "an unfinished bundle must not open")

	w = create(t, dir)
	require.True(t, w.Has(KindBinary, "kubelet", "inputs of k"))
	assert.Equal(t, a, w.Keep(KindBinary, "kubelet"))
	b, err := w.Commit()
	require.NoError(t, err)
	assert.Equal(t, []Artifact{a}, b.List(""))
}

func TestAnArtifactIsStale(t *testing.T) {
	tests := map[string]func(t *testing.T, file string) string{
		"when its inputs changed": func(*testing.T, string) string { return "other inputs" },
		"when its file is gone": func(t *testing.T, f string) string {
			require.NoError(t, os.Remove(f))
			return "inputs of k"
		},
		"when its file was written again": func(t *testing.T, f string) string {
			age(t, f)
			return "inputs of k"
		},
		"when its file has another size": func(t *testing.T, f string) string {
			require.NoError(t, os.Truncate(f, 0))
			return "inputs of k"
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			w := create(t, t.TempDir())
			add(t, w, "kubelet", "k")
			inputs := change(t, filepath.Join(w.Dir(), "bin/kubelet"))
			assert.False(t, w.Has(KindBinary, "kubelet", inputs))
		})
	}
}

func TestTheOldManifestGoesBeforeAFileChanges(t *testing.T) {
	b := newBundle(t, map[string]string{"kubelet": "old"})
	w := create(t, b.Dir())
	add(t, w, "kubelet", "new")
	_, err := Open(b.Dir())
	require.Error(t, err)
	b, err = w.Commit()
	require.NoError(t, err)
	require.NoError(t, b.Verify(t.Context(), nil))
}

func TestCommitRemovesOnlyItsOwnFormerFiles(t *testing.T) {
	b := newBundle(t, map[string]string{"kubelet": "k", "former": "f"})
	mine := filepath.Join(b.Dir(), "bin", "notes.txt")
	require.NoError(t, os.WriteFile(mine, nil, 0o644))
	w := create(t, b.Dir())
	w.Keep(KindBinary, "kubelet")
	_, err := w.Commit()
	require.NoError(t, err)
	assert.NoFileExists(t, filepath.Join(b.Dir(), "bin", "former"))
	assert.FileExists(t, mine)
}

func TestASecondWriterIsTurnedAway(t *testing.T) {
	dir := t.TempDir()
	create(t, dir)
	_, err := Create(dir, header())
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	assert.Equal(t, 5, locked.ExitCode())
}

func TestProgramsAreExecutableAndImagesAreNot(t *testing.T) {
	w := create(t, t.TempDir())
	add(t, w, "kubelet", "k")
	tmp := w.Work("pause.tar")
	require.NoError(t, os.WriteFile(tmp, []byte("tar"), 0o600))
	a := Artifact{Name: "pause", Version: "1", Kind: KindImage, Path: PathOf(KindImage, "pause"), Image: "x/pause:1", Digest: "sha256:" + sum("d")}
	_, err := w.Add(t.Context(), a, "i", tmp)
	require.NoError(t, err)
	for file, mode := range map[string]os.FileMode{"bin/kubelet": 0o755, "images/pause.tar": 0o644} {
		fi, err := os.Stat(filepath.Join(w.Dir(), file))
		require.NoError(t, err)
		assert.Equal(t, mode, fi.Mode().Perm(), file)
	}
}
