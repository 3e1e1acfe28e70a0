package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	helmregistry "helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// archive packs a small chart with the given version, and returns the name of the archive.
func archive(t *testing.T, dir, version string) string {
	t.Helper()
	c, err := loader.LoadDir("../testdata/charts/base")
	require.NoError(t, err)
	c.Metadata.Version = version
	file, err := chartutil.Save(c, dir)
	require.NoError(t, err)
	return file
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return data
}

// fetcher returns a Fetcher with a separate cache and separate logins, so that the user's files aren't used.
func fetcher(t *testing.T, o Options) *Fetcher {
	t.Helper()
	home := t.TempDir()
	t.Setenv("DOCKER_CONFIG", home)
	t.Setenv("REGISTRY_AUTH_FILE", filepath.Join(home, "none.json"))
	t.Setenv("HELM_CONFIG_HOME", home)
	if o.Cache == "" {
		o.Cache = filepath.Join(home, "charts")
	}
	return New(o)
}

// serveRegistry starts a registry with two versions of the chart base and an image. The registry requires the login unless login is empty.
func serveRegistry(t *testing.T, login string) (server *httptest.Server, archiveDigest, manifestDigest string) {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	open := httptest.NewServer(handler)
	defer open.Close()
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "c.json")))
	require.NoError(t, err)
	for _, version := range []string{"1.9.0", "1.10.0+build.7"} {
		data := read(t, archive(t, t.TempDir(), version))
		pushed, err := client.Push(data, strings.TrimPrefix(open.URL, "http://")+"/charts/base:"+version)
		require.NoError(t, err)
		archiveDigest, manifestDigest = digestOf(data), pushed.Manifest.Digest
	}
	img, err := random.Image(10, 1)
	require.NoError(t, err)
	ref, err := name.ParseReference(strings.TrimPrefix(open.URL, "http://") + "/images/app:v1")
	require.NoError(t, err)
	require.NoError(t, remote.Write(ref, img))

	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); login != "" && user+":"+password != login {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server, archiveDigest, manifestDigest
}

func oci(server *httptest.Server, path string) string {
	return strings.Replace(server.URL, "http://", "oci://", 1) + path
}

func TestAChartComesFromARegistryOnce(t *testing.T) {
	server, digest, _ := serveRegistry(t, "")
	f := fetcher(t, Options{})
	ref := catalogue.ChartRef{Chart: oci(server, "/charts/base"), Version: "1.10.0+build.7"}
	c, err := f.Fetch(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, "base", c.Name())
	info, err := os.Stat(string(f.cache))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	server.Close()
	c, err = f.Fetch(t.Context(), ref)
	require.NoError(t, err, "the second time needs no network")
	assert.Equal(t, "1.10.0+build.7", c.Metadata.Version)

	pinned := ref
	pinned.Digest = digest
	_, err = f.Fetch(t.Context(), pinned)
	require.Error(t, err, "another reference is another entry")
	assert.Contains(t, hint.Of(err), "connect this machine to the network")

	require.NoError(t, os.WriteFile(f.cache.archive(digest), []byte("rotten"), 0o600))
	_, err = f.Fetch(t.Context(), ref)
	require.Error(t, err, "what rotted in the cache is not used")
}

func TestADigestPinsAChartOfARegistry(t *testing.T) {
	server, digest, manifest := serveRegistry(t, "")
	wrong := "sha256:" + strings.Repeat("0", 64)
	for title, c := range map[string]struct{ version, digest, want string }{
		"of the archive":                  {"1.10.0+build.7", digest, ""},
		"of the manifest":                 {"1.10.0+build.7", manifest, ""},
		"of the manifest without version": {"", manifest, ""},
		"another one":                     {"1.10.0+build.7", wrong, "has the digest " + digest + ", not " + wrong},
		"that of another version":         {"1.9.0", digest, "has the digest sha256:"},
	} {
		t.Run(title, func(t *testing.T) {
			f := fetcher(t, Options{})
			_, err := f.Fetch(t.Context(), catalogue.ChartRef{Chart: oci(server, "/charts/base"), Version: c.version, Digest: c.digest})
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.want)
			assert.Contains(t, hint.Of(err), "the chart was replaced")
			files, _ := os.ReadDir(string(f.cache))
			assert.Empty(t, files, "it is not kept")
		})
	}
}

func TestARegistryWithoutTheChartSaysWhatItHas(t *testing.T) {
	server, _, _ := serveRegistry(t, "")
	for title, c := range map[string]struct {
		path, version string
		want, remedy  string
	}{
		"another version": {"/charts/base", "2.0.0", "there is no version 2.0.0", "the versions are 1.10.0+build.7, 1.9.0"},
		"another chart":   {"/charts/none", "1.9.0", "NAME_UNKNOWN", "check chart and version"},
		"an image":        {"/images/app", "v1", "it contains no chart", "write the reference of a chart"},
		"no repository":   {"/charts/base:1.9.0", "1.9.0", "is not a repository of a registry", "the version as version"},
	} {
		t.Run(title, func(t *testing.T) {
			_, err := fetcher(t, Options{}).Fetch(t.Context(), catalogue.ChartRef{Chart: oci(server, c.path), Version: c.version})
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.want)
			assert.Contains(t, hint.Of(err), c.remedy)
		})
	}
}

func TestARegistryThatWantsALoginGetsIt(t *testing.T) {
	server, _, _ := serveRegistry(t, "robot:hunter2")
	host := strings.TrimPrefix(server.URL, "http://")
	ref := catalogue.ChartRef{Chart: oci(server, "/charts/base"), Version: "1.9.0"}

	_, err := fetcher(t, Options{}).Fetch(t.Context(), ref)
	require.Error(t, err)
	assert.Contains(t, hint.Of(err), "docker login "+host)

	_, err = fetcher(t, Options{Registry: config.DockerRegistry{Domain: host, Username: "robot", Password: "hunter2"}}).Fetch(t.Context(), ref)
	require.NoError(t, err, "cluster.docker-registry is the same host")

	_, err = fetcher(t, Options{Registry: config.DockerRegistry{Domain: "other.example.com", Username: "robot", Password: "hunter2"}}).Fetch(t.Context(), ref)
	require.Error(t, err, "cluster.docker-registry is another host")
	assert.NotContains(t, err.Error()+hint.Of(err), "hunter2")

	f := fetcher(t, Options{})
	login := base64.StdEncoding.EncodeToString([]byte("robot:hunter2"))
	require.NoError(t, os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), fmt.Appendf(nil, `{"auths": {%q: {"auth": %q}}}`, host, login), 0o600))
	_, err = f.Fetch(t.Context(), ref)
	require.NoError(t, err, "docker is logged in")
}

type plainServer struct {
	target *url.URL

	mu     sync.Mutex
	logins []string
}

func (s *plainServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "https" {
		return nil, tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}
	}
	s.mu.Lock()
	s.logins = append(s.logins, r.Header.Get("Authorization"))
	s.mu.Unlock()
	r = r.Clone(r.Context())
	r.URL.Host = s.target.Host
	return http.DefaultTransport.RoundTrip(r)
}

func TestNothingComesWithoutTLSUnlessItIsPinned(t *testing.T) {
	server, digest, _ := serveRegistry(t, "")
	target, err := url.Parse(server.URL)
	require.NoError(t, err)
	login := config.DockerRegistry{Domain: "10.0.0.9:5000", Username: "robot", Password: "hunter2"}
	for _, ref := range []catalogue.ChartRef{
		{Chart: "oci://10.0.0.9:5000/charts/base", Version: "1.10.0+build.7"},
		{Chart: "oci://10.0.0.9:5000/charts/base", Version: "1.10.0+build.7", Digest: digest},
		{Chart: "oci://10.0.0.9:5000/charts/base", Version: "1.10.0+build.7", PlainHTTP: true},
		{Chart: "http://10.0.0.9:5000/base-1.9.0.tgz"},
	} {
		plain := &plainServer{target: target}
		_, err = fetcher(t, Options{Transport: plain, Registry: login}).Fetch(t.Context(), ref)
		require.Error(t, err)
		assert.Contains(t, hint.Of(err), "TLS", "%v: %v", ref, err)
		assert.Empty(t, plain.logins, "nothing is asked")
	}
	plain := &plainServer{target: target}
	_, err = fetcher(t, Options{Transport: plain, Registry: login}).Fetch(t.Context(), catalogue.ChartRef{
		Chart: "oci://10.0.0.9:5000/charts/base", Version: "1.10.0+build.7", Digest: digest, PlainHTTP: true})
	require.NoError(t, err)
	assert.NotEmpty(t, plain.logins)
	assert.Empty(t, strings.Join(plain.logins, ""), "the login stays here")
}

// serveRepository starts a chart repository. The repository requires the login unless login is empty.
func serveRepository(t *testing.T, login string, change func(*repo.IndexFile)) *httptest.Server {
	t.Helper()
	dir := t.TempDir()
	for _, version := range []string{"1.9.0", "1.10.0", "v2.0.0"} {
		archive(t, dir, version)
	}
	index, err := repo.IndexDirectory(dir, "")
	require.NoError(t, err)
	if change != nil {
		change(index)
	}
	require.NoError(t, index.WriteFile(filepath.Join(dir, "index.yaml"), 0o644))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); login != "" && user+":"+password != login {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.FileServer(http.Dir(dir)).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestAChartComesFromARepository(t *testing.T) {
	server := serveRepository(t, "", nil)
	for title, c := range map[string]struct {
		ref          catalogue.ChartRef
		version      string
		want, remedy string
	}{
		"by version":                   {catalogue.ChartRef{Chart: "#base", Version: "1.10.0"}, "1.10.0", "", ""},
		"by version without its v":     {catalogue.ChartRef{Chart: "#base", Version: "2.0.0"}, "v2.0.0", "", ""},
		"as an archive":                {catalogue.ChartRef{Chart: "/base-1.9.0.tgz"}, "1.9.0", "", ""},
		"but not of another version":   {catalogue.ChartRef{Chart: "/base-1.9.0.tgz", Version: "1.8.0"}, "", "is version 1.9.0, not 1.8.0", "write that version"},
		"but not of no version":        {catalogue.ChartRef{Chart: "#base", Version: "3.0.0"}, "", "there is no version 3.0.0", "the versions are v2.0.0, 1.10.0, 1.9.0"},
		"but not under another name":   {catalogue.ChartRef{Chart: "#bsae", Version: "1.9.0"}, "", "the repository has no chart bsae", `did you mean "base"?`},
		"but not with a wrong digest":  {catalogue.ChartRef{Chart: "#base", Version: "1.9.0", Digest: "sha256:" + strings.Repeat("1", 64)}, "", "has the digest sha256:", "the chart was replaced"},
		"but not where there is none":  {catalogue.ChartRef{Chart: "/none-1.9.0.tgz"}, "", "404 Not Found", "check chart and version"},
		"but not from a file of text":  {catalogue.ChartRef{Chart: "/index.yaml"}, "", "read http", ""},
		"but not without a repository": {catalogue.ChartRef{Chart: "/folder#base", Version: "1.9.0"}, "", "404 Not Found", "check chart and version"},
	} {
		t.Run(title, func(t *testing.T) {
			c.ref.Chart = server.URL + c.ref.Chart
			got, err := fetcher(t, Options{}).Fetch(t.Context(), c.ref)
			if c.want == "" {
				require.NoError(t, err)
				assert.Equal(t, c.version, got.Metadata.Version)
				return
			}
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.want)
			assert.Contains(t, hint.Of(err), c.remedy)
		})
	}
}

func TestAnIndexIsHeldAgainstWhatItNames(t *testing.T) {
	for title, c := range map[string]struct {
		change func(*repo.ChartVersion)
		want   string
	}{
		"another digest":         {func(v *repo.ChartVersion) { v.Digest = strings.Repeat("2", 64) }, "the repository's index says sha256:2222"},
		"an archive in registry": {func(v *repo.ChartVersion) { v.URLs = []string{"oci://example.com/base"} }, "the repository keeps the chart in a registry: oci://example.com/base"},
		"no archive":             {func(v *repo.ChartVersion) { v.URLs = nil }, "there is no version 1.9.0"},
		"another chart's":        {func(v *repo.ChartVersion) { v.URLs, v.Digest = []string{"base-1.10.0.tgz"}, "" }, "is version 1.10.0, not 1.9.0"},
		"an archive without TLS": {func(v *repo.ChartVersion) { v.URLs = []string{"http://charts.example.com/base-1.9.0.tgz"} }, "the server has no TLS: charts.example.com"},
	} {
		t.Run(title, func(t *testing.T) {
			server := serveRepository(t, "", func(index *repo.IndexFile) {
				v, err := index.Get("base", "1.9.0")
				require.NoError(t, err)
				c.change(v)
			})
			_, err := fetcher(t, Options{}).Fetch(t.Context(), catalogue.ChartRef{Chart: server.URL + "#base", Version: "1.9.0"})
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.want)
		})
	}
}

func TestARepositorysLoginIsForItsOwnHost(t *testing.T) {
	var seen []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		_, _ = w.Write(read(t, archive(t, t.TempDir(), "1.10.0")))
	}))
	defer elsewhere.Close()
	server := serveRepository(t, "robot:hunter2", func(index *repo.IndexFile) {
		v, err := index.Get("base", "1.10.0")
		require.NoError(t, err)
		v.URLs, v.Digest = []string{elsewhere.URL + "/base-1.10.0.tgz"}, ""
	})
	ref := catalogue.ChartRef{Chart: server.URL + "#base", Version: "1.9.0"}
	f := fetcher(t, Options{})
	_, err := f.Fetch(t.Context(), ref)
	require.Error(t, err)
	assert.Contains(t, hint.Of(err), "log in")

	entries := repo.NewFile()
	entries.Add(&repo.Entry{Name: "lab", URL: server.URL + "/", Username: "robot", Password: "hunter2"})
	require.NoError(t, entries.WriteFile(filepath.Join(os.Getenv("HELM_CONFIG_HOME"), "repositories.yaml"), 0o600))
	_, err = f.Fetch(t.Context(), ref)
	require.NoError(t, err)
	ref.Version = "1.10.0"
	_, err = f.Fetch(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, []string{""}, seen)

	_, err = fetcher(t, Options{Registry: config.DockerRegistry{Domain: strings.TrimPrefix(server.URL, "http://"), Username: "robot", Password: "hunter2"}}).Fetch(t.Context(), ref)
	require.NoError(t, err, "cluster.docker-registry is the same host")
}

func TestAServerThatNeverEndsIsLeft(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		zeros := make([]byte, 1<<20)
		for r.Context().Err() == nil {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	_, err := fetcher(t, Options{}).Fetch(t.Context(), catalogue.ChartRef{Chart: server.URL + "/a.tgz"})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "the answer has more than 32 MiB")

	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	_, err = fetcher(t, Options{Timeout: 1}).Fetch(t.Context(), catalogue.ChartRef{Chart: silent.URL + "/a.tgz"})
	require.Error(t, err)
	assert.Contains(t, hint.Of(err), "connect this machine to the network")
}

func TestAChartLiesOnThisMachine(t *testing.T) {
	dir := t.TempDir()
	file := archive(t, dir, "1.9.0")
	require.NoError(t, os.CopyFS(filepath.Join(dir, "folder"), os.DirFS("../testdata/charts/base")))
	digest := digestOf(read(t, file))
	for title, c := range map[string]struct {
		ref  catalogue.ChartRef
		want string
	}{
		"a folder beside the configuration":   {catalogue.ChartRef{Chart: "folder", Dir: dir}, ""},
		"an archive":                          {catalogue.ChartRef{Chart: "./base-1.9.0.tgz", Dir: dir, Version: "1.9.0", Digest: digest}, ""},
		"an absolute path":                    {catalogue.ChartRef{Chart: file}, ""},
		"a path from the cluster":             {catalogue.ChartRef{Chart: "folder"}, "the configuration comes from the cluster, where the path folder is not available"},
		"an archive that was changed":         {catalogue.ChartRef{Chart: file, Digest: "sha256:0"}, "has the digest " + digest + ", not sha256:0"},
		"a folder with a digest":              {catalogue.ChartRef{Chart: "folder", Dir: dir, Digest: digest}, "a folder has no digest"},
		"nothing":                             {catalogue.ChartRef{Chart: "none", Dir: dir}, "no such file"},
		"an archive of another version":       {catalogue.ChartRef{Chart: file, Version: "2.0.0"}, "is version 1.9.0, not 2.0.0"},
		"an archive that leaves its folder":   {catalogue.ChartRef{Chart: pack(t, "base/../../evil", 1)}, "illegally"},
		"an archive that grows":               {catalogue.ChartRef{Chart: pack(t, "base/values.yaml", 64<<20)}, "larger than the maximum file size"},
		"an archive that is none":             {catalogue.ChartRef{Chart: "../testdata/charts/base/Chart.yaml", Dir: "."}, "gzip"},
		"a chart that lacks what it needs":    {catalogue.ChartRef{Chart: chartFolder(t, &chart.Metadata{Dependencies: []*chart.Dependency{{Name: "redis", Version: "1.0.0", Repository: "https://example.com"}}})}, "doesn't contain the chart redis"},
		"a library, which can't be installed": {catalogue.ChartRef{Chart: chartFolder(t, &chart.Metadata{Type: "library"})}, "is a library"},
	} {
		t.Run(title, func(t *testing.T) {
			got, err := fetcher(t, Options{}).Fetch(t.Context(), c.ref)
			if c.want == "" {
				require.NoError(t, err)
				assert.Equal(t, "base", got.Name())
				return
			}
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.want)
		})
	}
}

// pack returns an archive with a file of zeros.
func pack(t *testing.T, path string, size int64) string {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	require.NoError(t, tw.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: size}))
	_, err := io.CopyN(tw, zeros{}, size)
	require.NoError(t, errors.Join(err, tw.Close(), zw.Close()))
	file := filepath.Join(t.TempDir(), "a.tgz")
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
	return file
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func chartFolder(t *testing.T, m *chart.Metadata) string {
	t.Helper()
	m.Name, m.Version, m.APIVersion = "base", "1.0.0", "v2"
	dir := t.TempDir()
	require.NoError(t, chartutil.SaveDir(&chart.Chart{Metadata: m}, dir))
	return filepath.Join(dir, "base")
}

func TestABundleHoldsChartsByDigest(t *testing.T) {
	bundle := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(bundle, "charts"), 0o755))
	data := read(t, archive(t, filepath.Join(bundle, "charts"), "1.9.0"))
	ref := catalogue.ChartRef{Chart: "oci://127.0.0.1:1/charts/base", Version: "1.9.0", Digest: digestOf(data)}
	c, err := fetcher(t, Options{Bundle: bundle}).Fetch(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, "1.9.0", c.Metadata.Version)
	ref.Digest = ""
	_, err = fetcher(t, Options{Bundle: bundle}).Fetch(t.Context(), ref)
	require.Error(t, err, "without a digest nobody knows that it is the same chart")
}
