package image

import (
	"bytes"
	"context"
	"encoding/json"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/oci"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/services/image"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/version"
)

const password = "open-sesame"

// newImages creates a folder with paictl's own images and one upstream image.
func newImages(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	w, err := bundle.Create(dir, &bundle.Manifest{Kubernetes: "v1.36.3", Arch: "amd64", Origin: bundle.OriginBuild})
	require.NoError(t, err)
	defer w.Close()
	refs := map[string]string{"prometheus": "quay.io/prometheus/prometheus:v3.15.0"}
	for _, o := range image.Owned() {
		refs[o.Name] = o.Ref
	}
	for name, ref := range refs {
		layer, err := oci.NewLayer(filepath.Join(t.TempDir(), "layer"), []oci.Entry{{Path: name, Data: []byte(name)}})
		require.NoError(t, err)
		img, err := oci.NewImage(oci.Config{Arch: "amd64"}, layer)
		require.NoError(t, err)
		a := bundle.Artifact{Name: name, Version: "v1", Kind: bundle.KindImage, Path: bundle.PathOf(bundle.KindImage, name), Image: ref}
		a.Digest, err = oci.WriteArchive(t.Context(), w.Work(name), ref, img)
		require.NoError(t, err)
		_, err = w.Add(t.Context(), a, name, w.Work(name))
		require.NoError(t, err)
	}
	_, err = w.Commit()
	require.NoError(t, err)
	return dir
}

// newRegistry starts a registry on this machine that requires a login, and returns its address.
func newRegistry(t *testing.T) string {
	t.Helper()
	reg := registry.New(registry.Logger(log.New(new(bytes.Buffer), "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pw, _ := r.BasicAuth(); user != "pai" || pw != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		reg.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// newConfig writes a configuration whose registry is host, and returns its folder.
func newConfig(t *testing.T, host string) string {
	t.Helper()
	quickStart := filepath.Join(t.TempDir(), "quick-start.yaml")
	require.NoError(t, os.WriteFile(quickStart, []byte("machines: [10.0.0.1]\nssh-username: ubuntu\n"), 0o600))
	dir := t.TempDir()
	_, err := config.Generate(t.Context(), config.Generation{QuickStart: quickStart, OutDir: dir, Offline: true, Force: true})
	require.NoError(t, err)
	text := "apiVersion: paictl.openpai.org/v1\nkind: ServicesConfiguration\ncluster:\n  common: {cluster-id: pai}\n  docker-registry:\n" +
		"    domain: " + host + "\n    namespace: team\n    docker-tag: v9\n    mirror: " + host + "/cache\n" +
		"    username: pai\n    password: " + password + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, config.ServicesFile), []byte(text), 0o600))
	return dir
}

// paictl runs "paictl image" with the given arguments in an empty folder. The settings and logins of this machine are not used.
func paictl(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DOCKER_CONFIG"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("REGISTRY_AUTH_FILE", "")
	t.Chdir(t.TempDir())
	f := cmdutil.New("test")
	var o, e *bytes.Buffer
	f.IO, _, o, e = iostreams.Test()
	f.Getenv = func(string) string { return "" }
	cmd := NewCmdImage(f)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(o)
	cmd.SetErr(e)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

func TestPushBringsImagesToTheConfiguredRegistry(t *testing.T) {
	host := newRegistry(t)
	conf, from := newConfig(t, host), newImages(t)
	out, errOut, err := paictl(t, "push", "-p", conf, "--from", from, "--all", "-o", "json")
	require.NoError(t, err)
	var list []pushed
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	got := map[string]image.State{}
	for _, p := range list {
		got[p.Target] = p.State
	}
	assert.Equal(t, map[string]image.State{
		host + "/team/pai-agent:v9":                   image.Pushed,
		host + "/team/pai-alert-handler:v9":           image.Pushed,
		host + "/team/pai-api-proxy:v9":               image.Pushed,
		host + "/team/pai-api-vip:v9":                 image.Pushed,
		host + "/team/pai-backup:v9":                  image.Pushed,
		host + "/team/pai-controller:v9":              image.Pushed,
		host + "/team/pai-csr-approver:v9":            image.Pushed,
		host + "/team/pai-logs:v9":                    image.Pushed,
		host + "/team/pai-peer:v9":                    image.Pushed,
		host + "/team/pai-runtime:v9":                 image.Pushed,
		host + "/team/pai-scheduler:v9":               image.Pushed,
		host + "/team/pai-server:v9":                  image.Pushed,
		host + "/team/pai-volume:v9":                  image.Pushed,
		host + "/team/pai-watchdog:v9":                image.Pushed,
		host + "/cache/prometheus/prometheus:v3.15.0": image.Pushed,
	}, got)
	assert.Contains(t, errOut, "note: programs of v1 are tagged v9")
	assert.Contains(t, errOut, "[1/15] "+host+"/team/pai-agent:v9  pushed\n")
	assert.NotContains(t, out+errOut, password)

	out, _, err = paictl(t, "push", "-p", conf, "--from", from)
	require.NoError(t, err)
	assert.Equal(t, 14, strings.Count(out, "present"), out)
}

func TestListShowsWhatTheRegistryHas(t *testing.T) {
	host := newRegistry(t)
	conf, from := newConfig(t, host), newImages(t)
	_, _, err := paictl(t, "push", "pai-volume", "-p", conf, "--from", from)
	require.NoError(t, err)
	out, _, err := paictl(t, "list", "--remote", "-p", conf, "--from", from, "--all")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^NAME +IMAGE +DIGEST +MB +BUNDLE +REGISTRY +TARGET$`, out)
	assert.Regexp(t, `(?m)^pai-volume +docker\.io/openpai/pai-volume:\S+ +sha256:[0-9a-f]{12} +0\.0 +yes +present +`+host+`/team/pai-volume:v9$`, out)
	assert.Regexp(t, `(?m)^pai-watchdog .* yes +missing `, out)
	assert.Regexp(t, `(?m)^prometheus +quay\.io/\S+ .* yes +missing +`+host+`/cache/prometheus/prometheus:v3\.15\.0$`, out)
}

func TestListKnowsOwnImagesWithoutABundle(t *testing.T) {
	out, errOut, err := paictl(t, "list")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^pai-volume +docker\.io/openpai/pai-volume:`+version.Tag()+` +- +- +no$`, out)
	assert.Contains(t, errOut, "no images in dist/bundle")
	out, _, err = paictl(t, "list", "-o", "name")
	require.NoError(t, err)
	assert.Equal(t, "pai-agent\npai-alert-handler\npai-api-proxy\npai-api-vip\npai-backup\npai-controller\npai-csr-approver\npai-logs\npai-peer\npai-runtime\npai-scheduler\npai-server\npai-volume\npai-watchdog\n", out)
}

func TestUpstreamImagesNeedAMirrorToBeLookedFor(t *testing.T) {
	host := newRegistry(t)
	conf, from := newConfig(t, host), newImages(t)
	file := filepath.Join(conf, config.ServicesFile)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "    mirror: "+host+"/cache\n", "", 1)), 0o600))
	out, _, err := paictl(t, "list", "--remote", "-p", conf, "--from", from, "--all")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^prometheus .* yes +- +-$`, out)
}

func TestAFailedPushShowsWhatWasPushed(t *testing.T) {
	host := newRegistry(t)
	conf, from := newConfig(t, host), newImages(t)
	out, _, err := paictl(t, "push", "-p", conf, "--from", from, "--all", "--mirror", "127.0.0.1:1")
	require.ErrorContains(t, err, "127.0.0.1:1/prometheus/prometheus:v3.15.0")
	assert.Equal(t, cmdutil.ExitFailure, cmdutil.ExitCode(err))
	assert.Equal(t, 14, strings.Count(out, "pushed"), out)
	assert.NotContains(t, err.Error(), password)
}

func TestCommandLinesThatMeanNothingAreRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"push to nowhere":              {"push"},
		"names and --all":              {"push", "pai-volume", "--all", "--registry", "r.example.org/x"},
		"a registry that is a URL":     {"push", "--registry", "https://r.example.org/x"},
		"insecure to another machine":  {"push", "--registry", "r.example.org/x", "--insecure"},
		"insecure to another's mirror": {"push", "--registry", "127.0.0.1:5000/x", "--mirror", "m.example.org", "--insecure"},
		"a remote list of nowhere":     {"list", "--remote"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := paictl(t, args...)
			require.Error(t, err)
			assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err), err)
		})
	}
}

func TestFlagsReachTheRun(t *testing.T) {
	f := cmdutil.New("test")
	f.IO, _, _, _ = iostreams.Test()
	f.Getenv = func(string) string { return "" }
	t.Chdir(t.TempDir())

	t.Run("build", func(t *testing.T) {
		var got *buildOptions
		cmd := newCmdBuild(f, func(_ context.Context, o *buildOptions) error { got = o; return nil })
		cmd.SetArgs([]string{"a", "-n", "b,c"})
		require.NoError(t, cmd.Execute())
		assert.Equal(t, buildOptions{IO: f.IO, Dir: image.DefaultDir, Names: []string{"b", "c", "a"}}, *got)
	})
	t.Run("push without a configuration", func(t *testing.T) {
		var got *pushOptions
		cmd := newCmdPush(f, func(_ context.Context, o *pushOptions) error { got = o; return nil })
		cmd.SetArgs([]string{"--registry", "r.example.org/x", "--dry-run", "--from", "d"})
		require.NoError(t, cmd.Execute())
		assert.Equal(t, image.Destination{Registry: "r.example.org/x", Tag: version.Tag()}, got.Destination)
		assert.True(t, got.DryRun)
		assert.Equal(t, "d", got.From)
		assert.Empty(t, got.Access.Username)
	})
	t.Run("flags win over the configuration", func(t *testing.T) {
		var got *pushOptions
		cmd := newCmdPush(f, func(_ context.Context, o *pushOptions) error { got = o; return nil })
		cmd.SetArgs([]string{"-p", newConfig(t, "r.example.org"), "--tag", "v1", "--mirror", "m.example.org", "--registry", "other.example.org/y"})
		require.NoError(t, cmd.Execute())
		assert.Equal(t, image.Destination{Registry: "other.example.org/y", Tag: "v1", Mirror: "m.example.org"}, got.Destination)
		assert.Equal(t, "r.example.org", got.Access.Host, "the login is for the configuration's registry")
	})
}

func TestImagesAreTakenFromWhereTheyWereBuilt(t *testing.T) {
	f := cmdutil.New("test")
	f.Getenv = func(string) string { return "" }
	t.Chdir(t.TempDir())
	dir, err := from(f, "")
	require.NoError(t, err)
	assert.Equal(t, bundle.DefaultDir, dir)
	require.NoError(t, os.MkdirAll(image.DefaultDir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(image.DefaultDir, bundle.ManifestFile), nil, 0o644))
	dir, err = from(f, "")
	require.NoError(t, err)
	assert.Equal(t, image.DefaultDir, dir)
	dir, err = from(f, "given")
	require.NoError(t, err)
	assert.Equal(t, "given", dir)
}

func TestProgressOnATerminalCounts(t *testing.T) {
	io, _, _, errOut := iostreams.Test()
	show := progress(io)
	e := image.Event{Item: image.Item{Target: "r/x:v1"}, N: 1, Total: 2, Sent: 1500000, Bytes: 3000000}
	show(e)
	assert.Empty(t, errOut.String(), "a file gets whole lines only")
	io.SetTerminal(true)
	show(e)
	assert.Contains(t, errOut.String(), "[1/2] r/x:v1  1.5 of 3.0 MB")
	e.State = image.Pushed
	show(e)
	assert.True(t, strings.HasSuffix(errOut.String(), "[1/2] r/x:v1  pushed\n"))
}
