package fetch

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/release"
	"github.com/openpai/paictl/pkg/release/releasetest"
)

type packed struct{ name, text string }

// kubelet returns the content of a program. Compression can't shrink it, so that its download can be interrupted.
func kubelet() string {
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 20000)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return string(data)
}

// files returns the files of a bundle with a program and a tool. The manifest is the first file.
func files(arch string) []packed {
	text := "apiVersion: " + bundle.APIVersion + "\nkind: Bundle\nkubernetes: v1.36.3\narch: " + arch + "\norigin: build\nartifacts:\n"
	for _, f := range []packed{{"bin/kubelet", kubelet()}, {"tools/kwok", "kwok"}} {
		kind := bundle.KindBinary
		if strings.HasPrefix(f.name, "tools/") {
			kind = bundle.KindTool
		}
		text += fmt.Sprintf("  - {name: %s, version: v1, kind: %s, path: %s, source: s, sha256: %s, size: %d}\n", filepath.Base(f.name), kind, f.name, sumOf([]byte(f.text)), len(f.text))
	}
	return []packed{{bundle.ManifestFile, text}, {"bin/kubelet", kubelet()}, {"tools/kwok", "kwok"}}
}

func tarZst(t *testing.T, files []packed) []byte {
	t.Helper()
	var out bytes.Buffer
	zw, err := zstd.NewWriter(&out)
	require.NoError(t, err)
	tw := tar.NewWriter(zw)
	for _, f := range files {
		require.NoError(t, tw.WriteHeader(&tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(f.text))}))
		_, err := tw.Write([]byte(f.text))
		require.NoError(t, err)
	}
	require.NoError(t, tw.Close())
	require.NoError(t, zw.Close())
	return out.Bytes()
}

const archiveName = "paictl-bundle_v1.2.3_linux_amd64.tar.zst"

// newRelease starts a server with a release that contains a bundle. It returns the options for fetching the bundle.
func newRelease(t *testing.T, files []packed, hook func(http.ResponseWriter, *http.Request) bool) (*releasetest.Release, ReleaseOptions, *bytes.Buffer) {
	t.Helper()
	r := releasetest.New(t, "v1.2.3", map[string][]byte{archiveName: tarZst(t, files)})
	key, err := release.ReadKey(r.Key)
	require.NoError(t, err)
	out := &bytes.Buffer{}
	return r, ReleaseOptions{
		Dir: t.TempDir(), Address: r.Serve(t, hook), Version: "v1.2.3", Arch: "amd64", Key: key, Progress: out, Wait: noWait,
	}, out
}

func TestABundleComesFromARelease(t *testing.T) {
	var archives atomic.Int32
	_, opts, out := newRelease(t, files("amd64"), func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, archiveName) {
			archives.Add(1)
		}
		return false
	})
	b, err := FromRelease(t.Context(), opts)
	require.NoError(t, err)
	require.NoError(t, b.Verify(t.Context(), nil))
	assert.Equal(t, bundle.OriginFetch, b.Manifest().Origin)
	a, ok := b.Lookup(bundle.KindBinary, "kubelet")
	require.True(t, ok)
	fi, err := os.Stat(b.File(a))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), fi.Mode().Perm())
	assert.Contains(t, out.String(), "is ready: 2 artifacts of v1.2.3")
	assert.Contains(t, out.String(), " 90 % of 0.0 MB")

	out.Reset()
	_, err = FromRelease(t.Context(), opts)
	require.NoError(t, err)
	assert.Contains(t, out.String(), "is up to date: 2 artifacts of v1.2.3")
	assert.EqualValues(t, 1, archives.Load(), "a bundle that is there is not downloaded again")

	require.NoError(t, os.Remove(b.File(a)))
	b, err = FromRelease(t.Context(), opts)
	require.NoError(t, err)
	require.NoError(t, b.Verify(t.Context(), nil))
	assert.EqualValues(t, 2, archives.Load())
}

func TestAMirrorServesTheRelease(t *testing.T) {
	_, opts, _ := newRelease(t, files("amd64"), func(_ http.ResponseWriter, r *http.Request) bool {
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/code.example.org/paictl")
		return false
	})
	opts.Mirror, opts.Address = strings.TrimSuffix(opts.Address, "/releases"), "https://code.example.org/paictl/releases"
	a, err := FindRelease(t.Context(), opts)
	require.NoError(t, err)
	assert.Contains(t, a.URL, "/code.example.org/paictl/releases/download/v1.2.3/"+archiveName)
	_, err = FromRelease(t.Context(), opts)
	require.NoError(t, err)
}

func TestAnInterruptedDownloadOfAReleaseContinues(t *testing.T) {
	var broken atomic.Bool
	var ranges atomic.Value
	r, opts, _ := newRelease(t, files("amd64"), func(w http.ResponseWriter, req *http.Request) bool {
		if !strings.HasSuffix(req.URL.Path, archiveName) {
			return false
		}
		if broken.Swap(true) {
			ranges.Store(req.Header.Get("Range"))
			return false
		}
		w.Header().Set("Content-Length", "20000")
		_, _ = w.Write(tarZst(t, files("amd64"))[:3000])
		panic(http.ErrAbortHandler)
	})
	_, err := FromRelease(t.Context(), opts)
	require.NoError(t, err)
	assert.Equal(t, "bytes=3000-", ranges.Load())
	assert.NotEmpty(t, r.List)
}

func TestAnUnpackedPartIsKept(t *testing.T) {
	_, opts, out := newRelease(t, files("amd64"), nil)
	ctx, cancel := context.WithCancel(t.Context())
	opts.Progress = writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "kubelet") {
			cancel() // after the first of two files
		}
		return out.Write(p)
	})
	_, err := FromRelease(ctx, opts)
	require.ErrorIs(t, err, context.Canceled)
	_, err = bundle.Open(opts.Dir)
	require.Error(t, err, "half a bundle must not open")
	out.Reset()
	opts.Progress = out
	b, err := FromRelease(t.Context(), opts)
	require.NoError(t, err)
	require.NoError(t, b.Verify(t.Context(), nil))
	assert.NotContains(t, out.String(), "binary     kubelet")
	assert.Contains(t, out.String(), "kwok")
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestABundleOfAReleaseIsRefused(t *testing.T) {
	flip := func(name string) func(*testing.T, *releasetest.Release) {
		return func(t *testing.T, r *releasetest.Release) {
			t.Helper()
			file := filepath.Join(r.Dir, name)
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			data[len(data)/2] ^= 1
			require.NoError(t, os.WriteFile(file, data, 0o600))
		}
	}
	good := files("amd64")
	tests := map[string]struct {
		files []packed
		spoil func(*testing.T, *releasetest.Release)
		want  string
	}{
		"when a bit of the archive is flipped":       {good, flip(archiveName), "but the published one is"},
		"when a bit of the checksums is flipped":     {good, flip(release.ListFile), "doesn't match its signature"},
		"when a bit of the signature is flipped":     {good, flip(release.SignatureFile), "checksums.txt"},
		"when it is for another architecture":        {files("arm64"), nil, "it is a bundle for arm64, not for amd64"},
		"when the manifest isn't the first file":     {[]packed{good[1], good[0]}, nil, `its first file is "bin/kubelet"`},
		"when a file is missing":                     {good[:2], nil, "it contains no file tools/kwok"},
		"when a file isn't in the manifest":          {append(files("amd64"), packed{"bin/../../x", "x"}), nil, "its manifest doesn't list"},
		"when a file isn't the one of the manifest":  {[]packed{good[0], {"bin/kubelet", "other"}, good[2]}, nil, "but the manifest says"},
		"when it has a manifest that can't be right": {[]packed{{bundle.ManifestFile, "kind: Other\n"}}, nil, "apiVersion and kind are"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, opts, _ := newRelease(t, tt.files, nil)
			if tt.spoil != nil {
				tt.spoil(t, r)
			}
			_, err := FromRelease(t.Context(), opts)
			require.ErrorContains(t, err, tt.want)
			_, err = bundle.Open(opts.Dir)
			require.Error(t, err)
			_, err = FromRelease(t.Context(), opts)
			require.ErrorContains(t, err, tt.want, "a second run must not take the files of the first one")
		})
	}
}

func TestAReleaseThatDoesNotExistSaysWhatToDo(t *testing.T) {
	_, opts, _ := newRelease(t, files("amd64"), nil)
	opts.Version = "v9.9.9"
	_, err := FromRelease(t.Context(), opts)
	require.ErrorContains(t, err, "404 Not Found")
	assert.Contains(t, hint.Of(err), "paictl bundle build")
}
