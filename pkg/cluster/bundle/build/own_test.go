package build

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/chart"
	"github.com/openpai/paictl/pkg/version"
	"github.com/openpai/paictl/templates"
)

// stamped returns a recipe for a module that is part of paictl, in the given version.
func stamped(version string, files map[string]string) Recipe {
	own := map[string]string{
		"go.mod":           "module example.org/own\n\ngo 1.26.0\n",
		"cmd/said/main.go": "package main\n\nvar version string\n\nfunc main() { println(version) }\n",
	}
	for name, body := range files {
		own[name] = body
	}
	return Recipe{
		Modules: []Module{{
			Name: "own", Path: "example.org/own", Own: own, Version: version, LDFlags: "-X main.version={version}",
			Programs: []Program{{Name: "said", Package: "example.org/own/cmd/said"}},
		}},
		Images: []Image{{
			Name: "said", Ref: "docker.io/openpai/said:{tag}", User: ownUser, Entrypoint: []string{"/said"},
			Files: []File{{"said", "said"}}, Labels: map[string]string{"org.opencontainers.image.revision": "1a2b"},
		}},
	}
}

func TestAnOwnImageSaysWhoItIsAndRunsAsNobody(t *testing.T) {
	needCompilers(t)
	b, _, err := runTiny(t, t.TempDir(), stamped("v1.2.3+1a2b", nil))
	require.NoError(t, err)
	a, ok := b.Lookup(bundle.KindImage, "said")
	require.True(t, ok)
	assert.Equal(t, "docker.io/openpai/said:v1.2.3_1a2b", a.Image)
	assert.Equal(t, version.Kubernetes, b.Manifest().Kubernetes, "it belongs to the Kubernetes of this paictl")
	img, err := tarball.ImageFromPath(b.File(a), nil)
	require.NoError(t, err)
	c, err := img.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, "65532", c.Config.User)
	assert.Equal(t, map[string]string{
		"org.opencontainers.image.title":       "said",
		"org.opencontainers.image.version":     "v1.2.3+1a2b",
		"org.opencontainers.image.source":      "example.org/own@v1.2.3+1a2b",
		"org.opencontainers.image.revision":    "1a2b",
		"org.opencontainers.image.description": "built from source by paictl",
	}, c.Config.Labels)
}

func TestAnotherVersionMakesItsImageAnewAndNothingElse(t *testing.T) {
	needCompilers(t)
	dir := t.TempDir()
	both := func(version string) Recipe {
		r := tiny()
		own := stamped(version, nil)
		return Recipe{Modules: append(r.Modules, own.Modules...), Images: append(r.Images, own.Images...)}
	}
	_, _, err := runTiny(t, dir, both("v1.0.0"))
	require.NoError(t, err)
	b, out, err := runTiny(t, dir, both("v1.0.1"))
	require.NoError(t, err)
	assert.Contains(t, out, "compiling own v1.0.1: said")
	assert.NotContains(t, out, "compiling tiny")
	a, _ := b.Lookup(bundle.KindImage, "said")
	assert.Equal(t, "docker.io/openpai/said:v1.0.1", a.Image)
}

func TestAFileThatThisPaictlNoLongerHasIsNotCompiled(t *testing.T) {
	needCompilers(t)
	dir := t.TempDir()
	broken := map[string]string{"cmd/said/old.go": "package main\n\nvar _ = 1\n"}
	_, _, err := runTiny(t, dir, stamped("v1.0.0", broken))
	require.NoError(t, err)
	_, _, err = runTiny(t, dir, stamped("v1.0.1", nil))
	require.NoError(t, err)
	assert.NoFileExists(t, filepath.Join(dir, ".work", "own", "own", "cmd", "said", "old.go"))
}

func TestOwnProgramsCarryPaictlsVersion(t *testing.T) {
	r := Own()
	require.NotEmpty(t, r.Images)
	v, err := Versions()
	require.NoError(t, err)
	for _, img := range r.Images {
		assert.Equal(t, "docker.io/openpai/"+img.Name+":"+version.Tag(), img.Reference(v[img.Name]))
		assert.Equal(t, ownUser, img.User)
		if img.Name != "pai-agent" {
			assert.Empty(t, img.Debian)
		}
	}
	for _, m := range r.Modules {
		assert.Equal(t, m.Name == "pai-nvml" || m.Name == "nvidia-container-toolkit", m.CGO)
		if m.Name != "nvidia-container-toolkit" {
			assert.NotEmpty(t, m.Own["go.sum"])
		}
	}
}

func TestOwnImagesGoWhereTheirServicesRun(t *testing.T) {
	charts, err := chart.List(templates.Charts())
	require.NoError(t, err)
	roles := map[string][]string{}
	for _, c := range charts {
		roles[c.Name] = c.Roles
	}
	for _, img := range Own().Images {
		if slices.Contains([]string{"pai-runtime", "pai-api-proxy", "pai-peer"}, img.Name) {
			assert.Empty(t, img.Roles, "jobs run everywhere")
			continue
		}
		if slices.Contains([]string{"pai-api-vip", "pai-csr-approver"}, img.Name) {
			assert.Equal(t, []string{master}, img.Roles, "its manifest of cluster up wants masters")
			continue
		}
		service := map[string]string{"pai-controller": "job-controller", "pai-scheduler": "scheduler", "pai-watchdog": "watchdog", "pai-volume": "storage", "pai-logs": "log-manager", "pai-agent": "agent", "pai-alert-handler": "alert-handler", "pai-backup": "cluster-backup", "pai-server": "rest-server"}[img.Name]
		require.Contains(t, roles, service, "name the service of %s here", img.Name)
		assert.Equal(t, roles[service], img.Roles, img.Name)
	}
}

func TestChartsArePartOfABundle(t *testing.T) {
	needCompilers(t)
	root := t.TempDir()
	chartDir := filepath.Join(root, "charts", "hello")
	require.NoError(t, os.MkdirAll(chartDir, 0o755))
	write := func(version string) {
		text := "apiVersion: v2\nname: hello\nversion: " + version + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(chartDir, "Chart.yaml"), []byte(text), 0o644))
	}
	r := tiny()
	r.Charts = os.DirFS(root)
	dir := t.TempDir()
	for _, version := range []string{"0.1.0", "0.2.0"} {
		write(version)
		b, out, err := runTiny(t, dir, r)
		require.NoError(t, err)
		require.NoError(t, b.Verify(t.Context(), nil))
		a, ok := b.Lookup(bundle.KindChart, "hello")
		require.True(t, ok)
		assert.Equal(t, "charts/hello-"+version+".tgz", a.Path)
		assert.Contains(t, out, "chart      hello")
	}
	assert.NoFileExists(t, filepath.Join(dir, "charts", "hello-0.1.0.tgz"), "the old version is gone")
	_, out, err := runTiny(t, dir, r)
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(out, "is up to date: 3 artifacts\n"), out)
}
