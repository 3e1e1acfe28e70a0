package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/bundle"
	"github.com/openpai/paictl/pkg/bundle/oci"
	"github.com/openpai/paictl/pkg/hint"
)

// upstream is a server that is at once a mirror of release sites and a registry. It refuses
// what it doesn't hold.
type upstream struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string][]byte
	seen  []string
	// hook may answer a request itself and returns whether it did.
	hook func(w http.ResponseWriter, r *http.Request) bool
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{files: map[string][]byte{}}
	reg := registry.New(registry.Logger(log.New(new(bytes.Buffer), "", 0)))
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v2/") {
			u.note(r)
			reg.ServeHTTP(w, r)
			return
		}
		u.note(r)
		u.mu.Lock()
		data, ok := u.files[r.URL.Path]
		hook := u.hook
		u.mu.Unlock()
		switch {
		case hook != nil && hook(w, r):
		case ok:
			http.ServeContent(w, r, "", zeroTime, bytes.NewReader(data))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) note(r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen = append(u.seen, r.Method+" "+r.URL.Path+" "+r.Header.Get("Range"))
}

// requests returns what was asked for since the last call.
func (u *upstream) requests() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	seen := u.seen
	u.seen = nil
	return seen
}

func (u *upstream) put(path string, data []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.files[path] = data
}

// push stores an image that holds one file and returns its digest.
func (u *upstream) push(t *testing.T, ref, file, content string) string {
	t.Helper()
	l, err := oci.NewLayer(filepath.Join(t.TempDir(), "layer"), []oci.Entry{{Path: file, Mode: 0o755, Data: []byte(content)}})
	require.NoError(t, err)
	img, err := oci.NewImage(oci.Config{Arch: "amd64", Entrypoint: []string{"/" + file}}, l)
	require.NoError(t, err)
	full, err := name.ParseReference(strings.TrimPrefix(u.URL, "http://")+"/"+ref, name.Insecure)
	require.NoError(t, err)
	require.NoError(t, remote.Write(full, img))
	return digestOf(t, img)
}

func digestOf(t *testing.T, img v1.Image) string {
	t.Helper()
	d, err := img.Digest()
	require.NoError(t, err)
	return d.String()
}

func sumOf(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

func tarGz(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for name, content := range files {
		require.NoError(t, tw.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}))
		_, err := tw.Write([]byte(content))
		require.NoError(t, err)
	}
	require.NoError(t, tw.Close())
	require.NoError(t, zw.Close())
	return buf.Bytes()
}

const (
	kubeletURL = "https://dl.example.org/release/kubelet"
	cniURL     = "https://git.example.org/cni.tgz"
	pauseRef   = "registry.example.org/pause:3"
	kwokRef    = "registry.example.org/kwok/kwok:v1"
)

// catalogue is one of each: a bare program, an archive, an image, a program in an image.
func catalogue() Catalogue {
	return Catalogue{Kubernetes: "v1.36.3", Arch: "amd64",
		Files: []File{
			{URL: kubeletURL, Sums: kubeletURL + ".sha256", Outputs: []Output{{Name: "kubelet", Version: "v1.36.3", Kind: bundle.KindBinary}}},
			{URL: cniURL, Sums: "https://git.example.org/SHA256SUMS", Outputs: []Output{
				{Member: "bridge", Name: "bridge", Version: "v1", Kind: bundle.KindCNIPlugin},
				{Member: "loopback", Name: "loopback", Version: "v1", Kind: bundle.KindCNIPlugin},
			}},
		},
		Images: []Image{
			{Ref: pauseRef, Output: Output{Name: "pause", Version: "3", Kind: bundle.KindImage, Roles: []string{"master"}}},
			{Ref: kwokRef, Output: Output{Member: "usr/local/bin/kwok", Name: "kwok", Version: "v1", Kind: bundle.KindTool}},
		},
	}
}

// stock fills a server with everything in catalogue.
func stock(t *testing.T, u *upstream) {
	t.Helper()
	kubelet := []byte(strings.Repeat("kubelet ", 1000))
	u.put("/dl.example.org/release/kubelet", kubelet)
	u.put("/dl.example.org/release/kubelet.sha256", []byte(sumOf(kubelet)))
	cni := tarGz(t, map[string]string{"./bridge": "a bridge", "./loopback": "a loop", "./README": "no"})
	u.put("/git.example.org/cni.tgz", cni)
	u.put("/git.example.org/SHA256SUMS", []byte(sumOf([]byte("x"))+"  other.tgz\n"+sumOf(cni)+" *cni.tgz\n"))
	u.push(t, pauseRef, "pause", "pausing")
	u.push(t, kwokRef, "usr/local/bin/kwok", "kwoking")
	u.requests()
}

func fetchAll(t *testing.T, u *upstream, dir string) (*bundle.Bundle, string, error) {
	t.Helper()
	var out bytes.Buffer
	b, err := Run(t.Context(), Options{Dir: dir, Mirror: u.URL, Catalogue: catalogue(), Progress: &out, Wait: noWait})
	return b, out.String(), err
}

func noWait(ctx context.Context, _ int) error { return ctx.Err() }

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

// lineCounter closes reached when that many lines were written.
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
		<-three.reached // kubelet, pause and kwok are there
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
			"has sha256 " + sumOf([]byte("other bytes")) + ", published is ", "proxy",
		},
		"when no checksum is published": {
			func(_ *testing.T, u *upstream) { delete(u.files, "/dl.example.org/release/kubelet.sha256") },
			"404 Not Found", "a mirror must carry kubelet.sha256 too",
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
			"unpack cni.tgz: it holds no file loopback", "",
		},
		"when an image lacks its program": {
			func(t *testing.T, u *upstream) { u.push(t, kwokRef, "bin/other", "x") },
			"it holds no file usr/local/bin/kwok", "",
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
	broken := false
	u.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if broken || r.URL.Path != "/dl.example.org/release/kubelet" {
			return false
		}
		broken = true
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
	n := 0
	u.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/dl.example.org/release/kubelet" {
			return false
		}
		n++
		if n == 1 {
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
	left, asked := 2, 0
	u.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/dl.example.org/release/kubelet" {
			return false
		}
		asked++
		if left > 0 {
			left--
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	_, _, err := fetchAll(t, u, t.TempDir())
	require.NoError(t, err)
	assert.Equal(t, 3, asked)

	left, asked = 1000, 0
	_, _, err = fetchAll(t, u, t.TempDir())
	var status *StatusError
	require.ErrorAs(t, err, &status)
	assert.Equal(t, http.StatusServiceUnavailable, status.Code)
	assert.LessOrEqual(t, asked, attempts)
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
