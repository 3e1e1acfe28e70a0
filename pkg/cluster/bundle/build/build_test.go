package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/hint"
)

// tiny returns a recipe that builds in a second. It contains one Go program, one C program, and an image with these programs.
func tiny() Recipe {
	return Recipe{
		Modules: []Module{{
			Name: "tiny", Path: "example.org/hello", LDFlags: "-X main.version={version}",
			Programs: []Program{
				{Name: "kubelet", Kind: bundle.KindBinary},
				{Name: "wait", C: "wait.c", Version: "3.2.1"},
			},
		}},
		Images: []Image{{
			Name: "wait", Ref: "example.org/wait:{number}", Roles: []string{master}, Entrypoint: []string{"/wait"},
			Files: []File{{"wait", "wait"}, {"kubelet", "usr/bin/kubelet"}},
		}},
	}
}

func runTiny(t *testing.T, dir string, r Recipe) (*bundle.Bundle, string, error) {
	t.Helper()
	var out bytes.Buffer
	b, err := Run(t.Context(), Options{Dir: dir, Source: "testdata/tiny", Recipe: &r, Progress: &out})
	return b, out.String(), err
}

func needCompilers(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"go", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("skipped: this machine has no %s", tool)
		}
	}
	if !staticLibrary(t.Context(), "libc.a") {
		t.Skip("skipped: this machine has no static C library (Debian: libc6-dev)")
	}
}

func TestABuildMakesProgramsImagesAndAManifest(t *testing.T) {
	needCompilers(t)
	b, out, err := runTiny(t, t.TempDir(), tiny())
	require.NoError(t, err)
	require.NoError(t, b.Verify(t.Context(), nil))
	assert.Contains(t, out, "[ 1/2] binary     kubelet")
	assert.Contains(t, out, "[ 2/2] image      wait")
	assert.Equal(t, "v1.2.3", b.Manifest().Kubernetes)
	assert.Equal(t, bundle.OriginBuild, b.Manifest().Origin)

	program, ok := b.Lookup(bundle.KindBinary, "kubelet")
	require.True(t, ok)
	assert.Equal(t, "example.org/hello@v1.2.3", program.Source)
	said, err := exec.CommandContext(t.Context(), b.File(program)).CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, "v1.2.3\n", string(said))

	image, ok := b.Lookup(bundle.KindImage, "wait")
	require.True(t, ok)
	assert.Equal(t, "example.org/wait:3.2.1", image.Image)
	assert.Equal(t, []string{"master"}, image.Roles)
	img, err := tarball.ImageFromPath(b.File(image), nil)
	require.NoError(t, err)
	root := t.TempDir()
	unpack := exec.CommandContext(t.Context(), "tar", "x", "-C", root)
	unpack.Stdin = mutate.Extract(img)
	require.NoError(t, unpack.Run())
	said, err = exec.CommandContext(t.Context(), filepath.Join(root, "wait")).Output()
	require.NoError(t, err)
	assert.Equal(t, "v3.2.1\n", string(said))
	assert.FileExists(t, filepath.Join(root, "usr/bin/kubelet"))
}

func TestTwoBuildsInDifferentFoldersGiveTheSameManifest(t *testing.T) {
	needCompilers(t)
	var manifests []bundle.Manifest
	for range 2 {
		b, _, err := runTiny(t, t.TempDir(), tiny())
		require.NoError(t, err)
		manifests = append(manifests, b.Manifest())
	}
	assert.Equal(t, manifests[0], manifests[1])
}

func TestASecondBuildHasNothingToDo(t *testing.T) {
	needCompilers(t)
	dir := t.TempDir()
	_, _, err := runTiny(t, dir, tiny())
	require.NoError(t, err)
	before, err := os.Stat(filepath.Join(dir, bundle.ManifestFile))
	require.NoError(t, err)
	_, out, err := runTiny(t, dir, tiny())
	require.NoError(t, err)
	assert.Contains(t, out, "is up to date: 2 artifacts")
	assert.NotContains(t, out, "compiling")
	after, err := os.Stat(filepath.Join(dir, bundle.ManifestFile))
	require.NoError(t, err)
	assert.Equal(t, before.ModTime(), after.ModTime())
}

func TestABuildRepeatsOnlyWhatItsInputsTouch(t *testing.T) {
	needCompilers(t)
	tests := map[string]struct {
		change func(r *Recipe, dir string)
		want   []string
	}{
		"a flag changes its programs and their images": {
			func(r *Recipe, _ string) { r.Modules[0].LDFlags = "-X main.version=other" }, []string{"kubelet", "wait"},
		},
		"an image's own setting changes that image": {
			func(r *Recipe, _ string) { r.Images[0].Entrypoint = nil }, []string{"wait"},
		},
		"a deleted file comes back": {
			func(_ *Recipe, dir string) { _ = os.Remove(filepath.Join(dir, "bin", "kubelet")) }, []string{"kubelet"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, _, err := runTiny(t, dir, tiny())
			require.NoError(t, err)
			r := tiny()
			tt.change(&r, dir)
			b, out, err := runTiny(t, dir, r)
			require.NoError(t, err)
			require.NoError(t, b.Verify(t.Context(), nil))
			var made []string
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, "[") {
					made = append(made, strings.Fields(strings.SplitN(line, "]", 2)[1])[1])
				}
			}
			assert.Equal(t, tt.want, made)
		})
	}
}

func TestAFailedBuildShowsTheCompilersWordsAndItsLog(t *testing.T) {
	needCompilers(t)
	dir := t.TempDir()
	r := tiny()
	r.Modules[0].Programs[0].Package = "example.org/hello/cmd/broken"
	_, _, err := runTiny(t, dir, r)
	require.ErrorContains(t, err, "undefined: undefinedName")
	assert.Contains(t, hint.Of(err), filepath.Join(dir, ".work", "tiny.log"))
	assert.NoFileExists(t, filepath.Join(dir, bundle.ManifestFile))

	_, _, err = runTiny(t, dir, tiny())
	require.NoError(t, err, "a repaired build goes on")
}

func TestALongCompilationSaysThatItGoesOn(t *testing.T) {
	needCompilers(t)
	r := tiny()
	var out bytes.Buffer
	beats := make(chan time.Time, 1)
	beats <- time.Time{}
	_, err := Run(t.Context(), Options{Dir: t.TempDir(), Source: "testdata/tiny", Recipe: &r, Progress: &out, Beat: func() <-chan time.Time { return beats }})
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(out.String(), "still compiling tiny"))
}

func TestAnOldGoIsToldBeforeAnyWork(t *testing.T) {
	mod := "module x\n\ngo 1.26.6\n"
	require.NoError(t, checkGo("containerd", mod, "go1.26.6"))
	require.NoError(t, checkGo("containerd", mod, "go1.27.0 X:some"))
	err := checkGo("containerd", mod, "go1.22.2")
	require.ErrorContains(t, err, "containerd needs Go 1.26.6, this machine has 1.22.2")
	assert.Contains(t, hint.Of(err), "GOTOOLCHAIN=auto")
}

func TestABuildNamesWhatIsWrongWithItsSource(t *testing.T) {
	needCompilers(t)
	empty := t.TempDir()
	other := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(other, "tiny"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(other, "tiny", "go.mod"), []byte("module x\n"), 0o644))
	for source, want := range map[string]string{empty: "has no module tiny", other: "requires no version of example.org/hello"} {
		r := tiny()
		_, err := Run(t.Context(), Options{Dir: t.TempDir(), Source: source, Recipe: &r})
		require.ErrorContains(t, err, want)
	}
}

func TestAMachineWithoutToolsIsToldAllPackagesAtOnce(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := checkMachine(t.Context(), needs{goTool: true, gcc: true, seccomp: true, apt: true})
	require.ErrorContains(t, err, "this machine doesn't have go, gcc, pkg-config, libseccomp's headers, apt-get, dpkg-deb")
	assert.Contains(t, hint.Of(err), "apt-get install -y apt dpkg gcc golang-go libc6-dev libseccomp-dev pkg-config")
}

func TestACancelledBuildLeavesNoCompilerBehind(t *testing.T) {
	work := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	pidFile := filepath.Join(work, "pid")
	done := make(chan error, 1)
	go func() {
		// As in the go command, a child process does the work. A signal to its parent doesn't reach the child.
		done <- compiler{work: work}.run(ctx, "slow", work, false, "sh", "-c", "sleep 600 & echo $! > pid.new; mv pid.new pid; wait")
	}()
	var pid string
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(pidFile)
		pid = strings.TrimSpace(string(data))
		return err == nil
	}, eventually, tick)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Eventually(t, func() bool { return !alive(pid) }, eventually, tick)
}

// alive returns false for a process that doesn't exist, and for a zombie.
func alive(pid string) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestAProgramIsNamedAsTheGoCommandNamesIt(t *testing.T) {
	for pkg, want := range map[string]string{
		"k8s.io/kubernetes/cmd/kubelet":       "kubelet",
		"go.etcd.io/etcd/server/v3":           "server",
		"github.com/opencontainers/runc":      "runc",
		"example.org/vault":                   "vault",
		"github.com/containerd/containerd/v2": "containerd",
	} {
		assert.Equal(t, want, executable(pkg))
	}
}

func TestTheDefaultRecipeIsConsistent(t *testing.T) {
	made := map[string]bool{}
	for _, m := range Default().Modules {
		for _, p := range m.Programs {
			assert.False(t, made[p.Name], "%s is made twice", p.Name)
			made[p.Name] = true
		}
	}
	for _, img := range Default().Images {
		for _, f := range img.Files {
			assert.True(t, made[f.Program], "image %s holds %s", img.Name, f.Program)
		}
		if img.Package == "" {
			assert.NotEmpty(t, img.Files, img.Name)
		} else {
			assert.Contains(t, img.Debian, img.Package)
		}
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "kubelet", "kubeadm", "kubectl"} {
		assert.True(t, made[name], name)
	}
}

func TestImageNamesAreThoseThatKubeadmAsksFor(t *testing.T) {
	v, err := Versions()
	require.NoError(t, err)
	var got []string
	for _, img := range Default().Images {
		if img.Package == "" && !strings.HasPrefix(img.Ref, "docker.io/openpai/") {
			got = append(got, img.Reference(v[img.Name]))
		}
	}
	// The images of "kubeadm config images list --kubernetes-version v1.36.3", and the images of flannel, the demo and monitoring.
	assert.ElementsMatch(t, []string{
		"registry.k8s.io/kube-apiserver:v1.36.3",
		"registry.k8s.io/kube-controller-manager:v1.36.3",
		"registry.k8s.io/kube-scheduler:v1.36.3",
		"registry.k8s.io/kube-proxy:v1.36.3",
		"registry.k8s.io/coredns/coredns:v1.14.2",
		"registry.k8s.io/pause:3.10.2",
		"registry.k8s.io/etcd:3.6.8-0",
		"ghcr.io/flannel-io/flannel:v0.26.7",
		"paictl.openpai.org/netcheck:v1",
		"paictl.openpai.org/prometheus:v3.15.0",
		"paictl.openpai.org/node-exporter:v1.12.1",
		"paictl.openpai.org/alertmanager:v0.31.1",
	}, got)
}

func TestPrometheusReleaseIsThatOfItsModule(t *testing.T) {
	v, err := Versions()
	require.NoError(t, err)
	dir, err := sourceDir("", t.TempDir())
	require.NoError(t, err)
	i := slices.IndexFunc(Default().Modules, func(m Module) bool { return m.Name == "prometheus" })
	p, err := readPin(dir, Default().Modules[i])
	require.NoError(t, err)
	// Module v0.315.0 is release v3.15.0, because the module's path contains no major version.
	var minor, patch int
	_, err = fmt.Sscanf(p.version, "v0.3%d.%d", &minor, &patch)
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("v3.%d.%d", minor, patch), v["prometheus"])
	assert.Equal(t, v["prometheus"], v["promtool"])
}

func TestTheEmbeddedModulesCanBeWrittenOut(t *testing.T) {
	dir, err := sourceDir("", t.TempDir())
	require.NoError(t, err)
	for _, m := range Default().Modules {
		if m.Own != nil {
			continue
		}
		p, err := readPin(dir, m)
		require.NoError(t, err)
		assert.Regexp(t, `^v\d+\.\d+\.\d+$`, p.version, m.Name)
	}
}
