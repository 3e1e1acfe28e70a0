package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/oci"
)

// upstream is a server that is both a mirror of release sites and a registry. It rejects requests for unknown files.
type upstream struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string][]byte
	seen  []string
	// hook may respond to a request instead of the server. It returns true in that case.
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

// catalogue returns a catalogue with one download of each kind: a single program, an archive, an image, and a program in an image.
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
