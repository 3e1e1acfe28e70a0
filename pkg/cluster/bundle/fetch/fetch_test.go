package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/download"
	"github.com/openpai/paictl/pkg/hint"
)

func TestAFetchGivesABundleAndALock(t *testing.T) {
	u := newUpstream(t)
	stock(t, u)
	dir := t.TempDir()
	b, out, err := fetchAll(t, u, dir)
	require.NoError(t, err)
	require.NoError(t, b.Verify(t.Context(), nil))
	assert.Equal(t, bundle.OriginFetch, b.Manifest().Origin)
	assert.Contains(t, out, "[ 5/5]")

	for kind, names := range map[string]map[string]string{
		bundle.KindCNIPlugin: {"bridge": "a bridge", "loopback": "a loop"},
		bundle.KindTool:      {"kwok": "kwoking"},
		bundle.KindBinary:    {"kubelet": strings.Repeat("kubelet ", 1000)},
	} {
		for name, content := range names {
			a, ok := b.Lookup(kind, name)
			require.True(t, ok, name)
			data, err := os.ReadFile(b.File(a))
			require.NoError(t, err)
			assert.Equal(t, content, string(data))
		}
	}
	kubelet, _ := b.Lookup(bundle.KindBinary, "kubelet")
	assert.Equal(t, kubeletURL, kubelet.Source, "the manifest names upstream, not the mirror")
	pause, ok := b.Lookup(bundle.KindImage, "pause")
	require.True(t, ok)
	assert.Equal(t, pauseRef, pause.Image)
	assert.Equal(t, []string{"master"}, pause.Roles)

	lock, err := os.ReadFile(filepath.Join(dir, LockName))
	require.NoError(t, err)
	assert.Contains(t, string(lock), "url: "+kubeletURL+"\n      digest: sha256:"+kubelet.SHA256)
	assert.Contains(t, string(lock), "url: "+pauseRef+"\n      digest: "+pause.Digest)
	assert.NotContains(t, string(lock), "127.0.0.1")
}

func TestASecondFetchAsksForNothing(t *testing.T) {
	u := newUpstream(t)
	stock(t, u)
	dir := t.TempDir()
	_, _, err := fetchAll(t, u, dir)
	require.NoError(t, err)
	u.requests()
	_, out, err := fetchAll(t, u, dir)
	require.NoError(t, err)
	assert.Empty(t, u.requests())
	assert.Contains(t, out, "is up to date: 5 artifacts")
}

// lineCounter closes reached after left lines.
type lineCounter struct {
	left    int
	reached chan struct{}
}

func (c *lineCounter) Write(p []byte) (int, error) {
	if c.left--; c.left == 0 {
		close(c.reached)
	}
	return len(p), nil
}

func TestWhatIsFinishedIsNotFetchedAgain(t *testing.T) {
	u := newUpstream(t)
	stock(t, u)
	dir := t.TempDir()
	three := &lineCounter{left: 3, reached: make(chan struct{})}
	u.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/git.example.org/cni.tgz" {
			return false
		}
		<-three.reached // kubelet, pause and kwok are finished
		_, _ = w.Write([]byte("damaged"))
		return true
	}
	_, err := Run(t.Context(), Options{Dir: dir, Mirror: u.URL, Catalogue: catalogue(), Progress: three, Wait: noWait})
	require.ErrorContains(t, err, "cni.tgz")
	_, err = bundle.Open(dir)
	require.Error(t, err, "half a bundle must not open")

	u.hook = nil
	u.requests()
	_, out, err := fetchAll(t, u, dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"GET /git.example.org/SHA256SUMS ", "GET /git.example.org/cni.tgz "}, u.requests())
	assert.Contains(t, out, "[ 5/5]")
}

func TestAFetchIsRefused(t *testing.T) {
	tests := map[string]struct {
		spoil      func(t *testing.T, u *upstream)
		want, hint string
	}{
		"when a download is damaged": {
			func(_ *testing.T, u *upstream) { u.put("/dl.example.org/release/kubelet", []byte("other bytes")) },
			"has sha256 " + sumOf([]byte("other bytes")) + ", but the published one is ", "proxy",
		},
		"when no checksum is published": {
			func(_ *testing.T, u *upstream) { delete(u.files, "/dl.example.org/release/kubelet.sha256") },
			"404 Not Found", "a mirror must have kubelet.sha256 too",
		},
		"when the list of checksums doesn't name the file": {
			func(_ *testing.T, u *upstream) {
				u.put("/git.example.org/SHA256SUMS", []byte(sumOf([]byte("x"))+"  other.tgz\n"))
			},
			"has no SHA-256 of cni.tgz", "proxy",
		},
		"when a proxy answers with a page": {
			func(_ *testing.T, u *upstream) {
				u.put("/dl.example.org/release/kubelet.sha256", []byte("<html>sign in</html>"))
			},
			"has no SHA-256 of kubelet", "proxy",
		},
		"when an archive lacks a program": {
			func(t *testing.T, u *upstream) {
				cni := tarGz(t, map[string]string{"./bridge": "a bridge"})
				u.put("/git.example.org/cni.tgz", cni)
				u.put("/git.example.org/SHA256SUMS", []byte(sumOf(cni)+"  cni.tgz\n"))
			},
			"unpack cni.tgz: it contains no file loopback", "",
		},
		"when an image lacks its program": {
			func(t *testing.T, u *upstream) { u.push(t, kwokRef, "bin/other", "x") },
			"it contains no file usr/local/bin/kwok", "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t)
			stock(t, u)
			tt.spoil(t, u)
			_, _, err := fetchAll(t, u, t.TempDir())
			require.ErrorContains(t, err, tt.want)
			assert.Contains(t, hint.Of(err), tt.hint)
		})
	}
}

func TestALockedFetchIsRefused(t *testing.T) {
	tests := map[string]struct {
		change func(t *testing.T, u *upstream)
		url    string
	}{
		"when a file and its published checksum changed together": {
			func(_ *testing.T, u *upstream) {
				u.put("/dl.example.org/release/kubelet", []byte("evil"))
				u.put("/dl.example.org/release/kubelet.sha256", []byte(sumOf([]byte("evil"))))
			}, kubeletURL,
		},
		"when a tag names another image": {
			func(t *testing.T, u *upstream) { u.push(t, pauseRef, "pause", "evil") }, pauseRef,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t)
			stock(t, u)
			first := t.TempDir()
			_, _, err := fetchAll(t, u, first)
			require.NoError(t, err)
			lock := filepath.Join(first, LockName)
			before, err := os.ReadFile(lock)
			require.NoError(t, err)

			tt.change(t, u)
			_, err = Run(t.Context(), Options{Dir: t.TempDir(), Lock: lock, Mirror: u.URL, Catalogue: catalogue(), Wait: noWait})
			var changed *ChangedError
			require.ErrorAs(t, err, &changed)
			assert.Equal(t, tt.url, changed.URL)
			assert.Contains(t, hint.Of(err), "remove its entry from "+lock)
			after, err := os.ReadFile(lock)
			require.NoError(t, err)
			assert.Equal(t, string(before), string(after))
		})
	}
}

func TestServicesImagesAndChartsAreFetchedFromAMirror(t *testing.T) {
	u := newUpstream(t)
	c, err := Upstream("amd64")
	require.NoError(t, err)
	c.Files = nil
	for i, img := range c.Images {
		file := "hello"
		if slices.Contains([]string{"kwok", "pai-api-proxy", "pai-peer"}, img.Output.Name) {
			file = img.Output.Member
		} else if strings.Contains(img.Ref, "/prometheus:") {
			file = "bin/promtool" // one image carries both
		}
		digest := u.push(t, img.Ref, file, img.Ref)
		if img.Output.Name == "grafana" {
			c.Images[i].Digest = digest // as a chart may pin it
		}
	}
	dir := t.TempDir()
	opts := Options{Dir: dir, Mirror: u.URL, Catalogue: c, Wait: noWait}
	b, err := Run(t.Context(), opts)
	require.NoError(t, err)
	require.NoError(t, b.Verify(t.Context(), nil))
	for _, name := range []string{"prometheus", "alertmanager", "node-exporter", "kube-state-metrics", "grafana"} {
		a, ok := b.Lookup(bundle.KindImage, name)
		require.True(t, ok, name)
		assert.NotContains(t, a.Image, "paictl.openpai.org", "upstream's image has upstream's name")
	}
	promtool, ok := b.Lookup(bundle.KindTool, "promtool")
	require.True(t, ok)
	assert.FileExists(t, b.File(promtool))
	assert.Len(t, b.List(bundle.KindChart), len(c.Charts))

	u.requests()
	_, err = Run(t.Context(), opts)
	require.NoError(t, err)
	assert.Empty(t, u.requests())
}

func TestAnImageThatIsNotWhatItsChartPinsIsRefused(t *testing.T) {
	u := newUpstream(t)
	u.push(t, pauseRef, "pause", "evil")
	c := catalogue()
	c.Files, c.Images = nil, c.Images[:1]
	c.Images[0].Digest = "sha256:" + strings.Repeat("0", 64)
	_, err := Run(t.Context(), Options{Dir: t.TempDir(), Mirror: u.URL, Catalogue: c, Wait: noWait})
	require.ErrorContains(t, err, "the chart says sha256:0000")
}

func TestAnOwnImageThatIsNotPublishedSaysWhatToDo(t *testing.T) {
	u := newUpstream(t)
	c := catalogue()
	c.Files, c.Images = nil, []Image{{Ref: "docker.io/openpai/pai-volume:v0", Own: true, Output: Output{Name: "pai-volume", Version: "v0", Kind: bundle.KindImage}}}
	opts := Options{Dir: t.TempDir(), Mirror: u.URL, Catalogue: c, Wait: noWait}
	_, err := Run(t.Context(), opts)
	require.ErrorContains(t, err, "docker.io/openpai/pai-volume:v0")
	assert.Contains(t, hint.Of(err), "paictl bundle build")
	c.Images[0].Own = false
	_, err = Run(t.Context(), opts)
	require.Error(t, err)
	assert.Empty(t, hint.Of(err), "an upstream image is not ours to build")
}

func TestALockStandsInForAChecksumThatTheMirrorLacks(t *testing.T) {
	u := newUpstream(t)
	stock(t, u)
	first := t.TempDir()
	_, _, err := fetchAll(t, u, first)
	require.NoError(t, err)
	delete(u.files, "/dl.example.org/release/kubelet.sha256")
	_, err = Run(t.Context(), Options{Dir: t.TempDir(), Lock: filepath.Join(first, LockName), Mirror: u.URL, Catalogue: catalogue(), Wait: noWait})
	require.NoError(t, err)
}

func TestABrokenDownloadGoesOnWhereItWas(t *testing.T) {
	u := newUpstream(t)
	stock(t, u)
	data := u.files["/dl.example.org/release/kubelet"]
	var broken atomic.Bool
	u.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/dl.example.org/release/kubelet" || broken.Swap(true) {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:3000])
		panic(http.ErrAbortHandler)
	}
	_, _, err := fetchAll(t, u, t.TempDir())
	require.NoError(t, err)
	assert.Contains(t, u.requests(), "GET /dl.example.org/release/kubelet bytes=3000-")
}

func TestAServerWithoutRangesSendsAllAgain(t *testing.T) {
	u := newUpstream(t)
	stock(t, u)
	data := u.files["/dl.example.org/release/kubelet"]
	var broken atomic.Bool
	u.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/dl.example.org/release/kubelet" {
			return false
		}
		if !broken.Swap(true) {
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			_, _ = w.Write(data[:3000])
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(data)
		return true
	}
	b, _, err := fetchAll(t, u, t.TempDir())
	require.NoError(t, err)
	require.NoError(t, b.Verify(t.Context(), nil))
}

func TestAServerThatIsBusyIsAskedAgainButNotForever(t *testing.T) {
	u := newUpstream(t)
	stock(t, u)
	var left, asked atomic.Int32
	left.Store(2)
	u.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/dl.example.org/release/kubelet" {
			return false
		}
		asked.Add(1)
		if left.Add(-1) >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	_, _, err := fetchAll(t, u, t.TempDir())
	require.NoError(t, err)
	assert.EqualValues(t, 3, asked.Load())

	left.Store(1000)
	asked.Store(0)
	_, _, err = fetchAll(t, u, t.TempDir())
	var status *download.StatusError
	require.ErrorAs(t, err, &status)
	assert.Equal(t, http.StatusServiceUnavailable, status.Code)
	assert.LessOrEqual(t, int(asked.Load()), download.Attempts)
}

func TestAFetchEndsWhenItIsCancelled(t *testing.T) {
	u := newUpstream(t)
	stock(t, u)
	ctx, cancel := context.WithCancel(t.Context())
	u.hook = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/dl.example.org/release/kubelet" {
			return false
		}
		cancel()
		<-r.Context().Done()
		return true
	}
	_, err := Run(ctx, Options{Dir: t.TempDir(), Mirror: u.URL, Catalogue: catalogue(), Wait: noWait})
	require.ErrorIs(t, err, context.Canceled)
}

// brokenLayer returns an error before any data, like a download whose connection is lost.
type brokenLayer struct{ v1.Layer }

func (brokenLayer) Uncompressed() (io.ReadCloser, error) {
	return io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)), nil
}

func TestAnImageThatBreaksOffIsNotTakenForOneWithoutTheFile(t *testing.T) {
	img, err := mutate.AppendLayers(empty.Image, brokenLayer{static.NewLayer([]byte("x"), types.OCIUncompressedLayer)})
	require.NoError(t, err)
	err = memberOfImage(t.Context(), img, "usr/local/bin/kwok", filepath.Join(t.TempDir(), "kwok"))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
