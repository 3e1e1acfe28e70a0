// Package releasetest creates signed releases for tests.
// In: files. Out: a folder with the files, their checksums and a signature, and the key that made the signature.
package releasetest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/release"
)

// Release is a signed release.
type Release struct {
	Version string
	Dir     string
	// Key is the public key that verifies the signature, as one word.
	Key             string
	List, Signature []byte
	secret          minisign.PrivateKey
}

// New returns a release with the given files, by name. All releases are signed with the same key.
func New(t *testing.T, version string, files map[string][]byte) *Release {
	t.Helper()
	public, secret, err := minisign.GenerateKey(bytes.NewReader(bytes.Repeat([]byte("seed"), 8)))
	require.NoError(t, err)
	r := &Release{Version: version, Dir: t.TempDir(), Key: public.String(), secret: secret}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		r.List = fmt.Appendf(r.List, "%x  %s\n", sha256.Sum256(files[name]), name)
		require.NoError(t, os.WriteFile(filepath.Join(r.Dir, name), files[name], 0o600))
	}
	r.Signature = r.Sign(r.List, release.Comment(version, time.Unix(1700000000, 0)))
	require.NoError(t, os.WriteFile(filepath.Join(r.Dir, release.ListFile), r.List, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(r.Dir, release.SignatureFile), r.Signature, 0o600))
	return r
}

// Sign signs a list with the key of the release.
func (r *Release) Sign(list []byte, comment string) []byte {
	reader := minisign.NewReader(bytes.NewReader(list))
	_, _ = io.Copy(io.Discard, reader)
	return reader.SignWithComments(r.secret, comment, "release of paictl")
}

// Serve publishes the release as the newest release, and returns the address. hook may respond to requests, and returns true for requests to which
// it has responded. It may be nil.
func (r *Release) Serve(t *testing.T, hook func(w http.ResponseWriter, req *http.Request) bool) string {
	t.Helper()
	files := http.FileServer(http.Dir(r.Dir))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if hook != nil && hook(w, req) {
			return
		}
		for _, prefix := range []string{"/releases/latest/download", "/releases/download/" + r.Version} {
			if rest, ok := strings.CutPrefix(req.URL.Path, prefix); ok {
				req.URL.Path = rest
				files.ServeHTTP(w, req)
				return
			}
		}
		http.NotFound(w, req)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/releases"
}
