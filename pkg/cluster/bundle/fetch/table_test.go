package fetch

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle/build"
	"github.com/openpai/paictl/pkg/cluster/bundle/chart"
	"github.com/openpai/paictl/pkg/hint"
)

var zeroTime time.Time

func TestAFetchGivesWhatABuildGives(t *testing.T) {
	c, err := Upstream("amd64")
	require.NoError(t, err)
	var got, want []string
	add := func(list *[]string, kind, name, version string) { *list = append(*list, kind+"/"+name+" "+version) }
	for _, f := range c.Files {
		u, err := url.Parse(f.URL)
		require.NoError(t, err)
		assert.Equal(t, "https", u.Scheme)
		assert.True(t, strings.HasPrefix(f.Sums, "https://"+u.Host+"/"), f.Sums)
		for _, o := range f.Outputs {
			add(&got, o.Kind, o.Name, o.Version)
		}
	}
	for _, i := range c.Images {
		if !ofServices(c, i.Output.Name) {
			add(&got, i.Output.Kind, i.Output.Name, i.Output.Version)
		}
	}
	versions, err := build.Versions()
	require.NoError(t, err)
	versions["examples-python"] = "3" // its tag: only a build knows the package's version
	r := build.Default()
	for _, m := range r.Modules {
		for _, p := range m.Programs {
			if p.Kind != "" {
				add(&want, p.Kind, p.Name, versions[p.Name])
			}
		}
	}
	for _, i := range r.Images {
		if !ofServices(c, i.Name) {
			add(&want, "image", i.Name, versions[i.Name])
		}
	}
	assert.ElementsMatch(t, want, got)
}

func ofServices(c Catalogue, name string) bool {
	return slices.ContainsFunc(c.Charts, func(ch chart.Chart) bool {
		return slices.ContainsFunc(ch.Images, func(i chart.Image) bool { return i.Name() == name })
	})
}

func TestImagesOfServicesAreFetchedByTheNamesInTheirCharts(t *testing.T) {
	c, err := Upstream("amd64")
	require.NoError(t, err)
	refs := map[string]Output{}
	for _, i := range c.Images {
		if i.Output.Member == "" {
			refs[i.Ref] = i.Output
		}
	}
	for _, ch := range c.Charts {
		for _, img := range ch.Images {
			assert.Equal(t, img.Name(), refs[img.Ref()].Name, img.Ref())
			assert.Equal(t, ch.Roles, refs[img.Ref()].Roles, "an image goes where its service may run")
		}
	}
}

// A build and a chart must use the same release. An image of a service must have the same name in a build and in the service's chart.
func TestABuildMakesTheVersionsThatChartsName(t *testing.T) {
	versions, err := build.Versions()
	require.NoError(t, err)
	c, err := Upstream("amd64")
	require.NoError(t, err)
	named := map[string]string{}
	roles := map[string][]string{}
	for _, ch := range c.Charts {
		for _, img := range ch.Images {
			named[img.Name()], roles[img.Name()] = img.Tag, ch.Roles
		}
	}
	for _, img := range build.Default().Images {
		if strings.HasPrefix(img.Ref, "paictl.openpai.org/") && img.Name != "netcheck" {
			require.Contains(t, named, img.Name, "no chart names the image %s", img.Name)
			assert.Equal(t, roles[img.Name], img.Roles, "%s goes where its service may run", img.Name)
			if img.Package == "" && img.Name != "alertmanager" { // later modules don't compile, see the recipe
				assert.Equal(t, versions[img.Name], named[img.Name], img.Name)
			}
		}
	}
}

func TestURLsFollowTheVersionAndTheArchitecture(t *testing.T) {
	c, err := Upstream("arm64")
	require.NoError(t, err)
	var urls []string
	for _, f := range c.Files {
		urls = append(urls, f.URL)
	}
	assert.Subset(t, urls, []string{
		"https://dl.k8s.io/release/v1.36.3/bin/linux/arm64/kubelet",
		"https://github.com/containerd/containerd/releases/download/v2.4.2/containerd-2.4.2-linux-arm64.tar.gz",
		"https://github.com/opencontainers/runc/releases/download/v1.5.2/runc.arm64",
		"https://github.com/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-arm64-v1.9.1.tgz",
		"https://github.com/etcd-io/etcd/releases/download/v3.6.8/etcd-v3.6.8-linux-arm64.tar.gz",
	})
}

func TestAMirrorCarriesTheUpstreamsHostInItsPath(t *testing.T) {
	tests := map[string]struct{ mirror, file, image string }{
		"none":              {"", "https://dl.k8s.io/a/b", "registry.k8s.io/coredns/coredns:v1"},
		"a host":            {"https://m.example.org", "https://m.example.org/dl.k8s.io/a/b", "m.example.org/registry.k8s.io/coredns/coredns:v1"},
		"a host and prefix": {"https://m.example.org/p/", "https://m.example.org/p/dl.k8s.io/a/b", "m.example.org/p/registry.k8s.io/coredns/coredns:v1"},
		"plain http":        {"http://m.example.org:5000", "http://m.example.org:5000/dl.k8s.io/a/b", "m.example.org:5000/registry.k8s.io/coredns/coredns:v1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := parseMirror(tt.mirror)
			require.NoError(t, err)
			file, err := m.file("https://dl.k8s.io/a/b")
			require.NoError(t, err)
			assert.Equal(t, tt.file, file)
			ref, err := m.image("registry.k8s.io/coredns/coredns:v1")
			require.NoError(t, err)
			assert.Equal(t, tt.image, ref.Name())
			want := "https"
			if strings.HasPrefix(tt.mirror, "http:") {
				want = "http"
			}
			assert.Equal(t, want, ref.Context().Scheme())
		})
	}
}

func TestAMirrorHasDockersImagesUnderTheirOwnName(t *testing.T) {
	m, err := parseMirror("https://m.example.org")
	require.NoError(t, err)
	ref, err := m.image("docker.io/grafana/grafana:12.0.0")
	require.NoError(t, err)
	assert.Equal(t, "m.example.org/docker.io/grafana/grafana:12.0.0", ref.Name())
}

func TestAMirrorThatIsNoPlainURLIsRefused(t *testing.T) {
	for _, s := range []string{"m.example.org", "ftp://m.example.org", "https://", "https://user:pw@m.example.org", "https://m.example.org?a=b", "://"} {
		_, err := parseMirror(s)
		require.Error(t, err, s)
		assert.Contains(t, hint.Of(err), "--mirror https://")
		assert.NotContains(t, err.Error(), "user:pw")
	}
}

func TestALockThatCannotBeIsRefused(t *testing.T) {
	head := "apiVersion: paictl.openpai.org/v1\nkind: BundleLock\nentries:\n"
	good := "- {url: 'https://a', digest: 'sha256:" + strings.Repeat("ab", 32) + "'}\n"
	for text, want := range map[string]string{
		"kind: Pod\n":                          `"Pod"`,
		head + "- {url: x, digest: 'md5:1'}\n": "entries[0] needs url and a digest",
		head + good + good:                     "entries[1]: https://a is listed twice",
		head + "- {url: x, colour: red}\n":     "colour",
	} {
		file := filepath.Join(t.TempDir(), LockName)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		_, err := readLock(file)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, file)
	}
}
