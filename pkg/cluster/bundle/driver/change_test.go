package driver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/bundletest"
	"github.com/openpai/paictl/pkg/cluster/gpudriver"
	"github.com/openpai/paictl/pkg/hint"
)

func newBundle(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build(t, dir, "v1")
	return dir
}

// build builds the program in the bundle again, like "bundle build".
func build(t *testing.T, dir, version string) {
	t.Helper()
	w, err := bundle.Create(dir, &bundle.Manifest{Kubernetes: "v1.36.3", Arch: "amd64", Origin: bundle.OriginBuild})
	require.NoError(t, err)
	defer w.Close()
	file := w.Work("kubelet")
	require.NoError(t, os.WriteFile(file, []byte(version), 0o600))
	_, err = w.Add(t.Context(), bundle.Artifact{Name: "kubelet", Version: version, Kind: bundle.KindBinary, Path: "bin/kubelet", Source: "s"}, version, file)
	require.NoError(t, err)
	_, err = w.Commit()
	require.NoError(t, err)
}

func nvidia570(t *testing.T, release string) string {
	t.Helper()
	dir, v := t.TempDir(), release+"-1"
	bundletest.Deb(t, dir, "nvidia-driver-cuda", v, "amd64", "Depends: libnvidia-ml1 (= "+v+"), libc6 (>= 2.31)")
	bundletest.Deb(t, dir, "nvidia-persistenced", v, "amd64")
	bundletest.Deb(t, dir, "libnvidia-ml1", v, "amd64")
	bundletest.Deb(t, dir, "nvidia-kernel-open-dkms", v, "amd64", "Depends: dkms (>= 3)")
	bundletest.Deb(t, dir, "dkms", "3.0.10-8+deb12u1", "all")
	return dir
}

func names(b *bundle.Bundle) []string {
	var out []string
	for _, a := range b.List(bundle.KindDriver) {
		out = append(out, a.System+" "+a.Name+" "+a.Version)
	}
	return out
}

func open(t *testing.T, dir string) *bundle.Bundle {
	t.Helper()
	b, err := bundle.Open(dir)
	require.NoError(t, err)
	require.NoError(t, b.Verify(t.Context(), nil))
	return b
}

func add(t *testing.T, dir, system string, paths ...string) *Report {
	t.Helper()
	r, err := Add(t.Context(), Addition{Bundle: dir, Paths: paths, System: system})
	require.NoError(t, err)
	return r
}

var whole570 = []string{
	"debian12 dkms 3.0.10-8+deb12u1", "debian12 libnvidia-ml1 570.133.20-1", "debian12 nvidia-driver-cuda 570.133.20-1",
	"debian12 nvidia-kernel-open-dkms 570.133.20-1", "debian12 nvidia-persistenced 570.133.20-1",
}

func TestPackagesAreAddedOnceAndSurviveABuild(t *testing.T) {
	dir, debs := newBundle(t), nvidia570(t, "570.133.20")
	dry, err := Add(t.Context(), Addition{Bundle: dir, Paths: []string{debs}, DryRun: true})
	require.NoError(t, err)
	assert.Equal(t, 5, dry.Pending())
	assert.Empty(t, names(open(t, dir)))

	r := add(t, dir, "", debs)
	assert.Equal(t, 5, r.Pending())
	require.Len(t, r.Drivers, 1)
	assert.Equal(t, gpudriver.Offer{System: "debian12", Release: "570.133.20", Of: "nvidia", Modules: []string{"open"}, Packages: r.Drivers[0].Packages}, r.Drivers[0])
	assert.Equal(t, map[string][]string{"debian12": {"libc6"}}, r.Needs)
	good, bad := r.Lines()
	assert.Equal(t, []string{
		"debian12: the driver 570.133.20 (nvidia) can be installed, with the open module",
		"debian12: the machines, or their apt sources, must have 1 package that the bundle doesn't have: libc6",
	}, good)
	require.Len(t, bad, 1)
	assert.Contains(t, bad[0], "no linux-headers")
	assert.Equal(t, whole570, names(open(t, dir)))
	assert.FileExists(t, filepath.Join(dir, "driver/debian12/dkms_3.0.10-8+deb12u1_all.deb"))

	manifest, err := os.ReadFile(filepath.Join(dir, bundle.ManifestFile))
	require.NoError(t, err)
	assert.Zero(t, add(t, dir, "", debs).Pending(), "a second run has nothing to do")
	again, err := os.ReadFile(filepath.Join(dir, bundle.ManifestFile))
	require.NoError(t, err)
	assert.Equal(t, string(manifest), string(again))

	build(t, dir, "v2")
	assert.Equal(t, whole570, names(open(t, dir)))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".work"))) // a copy of a bundle doesn't have it
	build(t, dir, "v3")
	assert.Equal(t, whole570, names(open(t, dir)))
}

func TestABuildThatIsCutOffDoesNotLosePackages(t *testing.T) {
	dir := newBundle(t)
	add(t, dir, "", nvidia570(t, "570.133.20"))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".work")))
	w, err := bundle.Create(dir, &bundle.Manifest{Kubernetes: "v1.36.3", Arch: "amd64", Origin: bundle.OriginBuild})
	require.NoError(t, err)
	file := w.Work("kubelet")
	require.NoError(t, os.WriteFile(file, []byte("v2"), 0o600))
	_, err = w.Add(t.Context(), bundle.Artifact{Name: "kubelet", Version: "v2", Kind: bundle.KindBinary, Path: "bin/kubelet", Source: "s"}, "v2", file)
	require.NoError(t, err)
	require.NoError(t, w.Close()) // killed: the manifest is gone
	_, err = Add(t.Context(), Addition{Bundle: dir, Paths: []string{t.TempDir()}})
	require.Error(t, err)
	build(t, dir, "v2")
	assert.Equal(t, whole570, names(open(t, dir)))
}

func TestAnAdditionThatIsCutOffLeavesTheBundleAsItWas(t *testing.T) {
	dir, debs := newBundle(t), nvidia570(t, "570.133.20")
	w, b, err := bundle.Edit(dir)
	require.NoError(t, err)
	list, err := look(t.Context(), []string{filepath.Join(debs, "libnvidia-ml1_570.133.20-1_amd64.deb")}, "amd64")
	require.NoError(t, err)
	require.NoError(t, bring(t.Context(), w, list[0], "debian12"))
	require.NoError(t, w.Close()) // killed before Commit
	stray := filepath.Join(b.Dir(), "driver/debian12/libnvidia-ml1_570.133.20-1_amd64.deb")
	assert.FileExists(t, stray)
	assert.Empty(t, names(open(t, dir)))
	build(t, dir, "v2")
	assert.Empty(t, names(open(t, dir)), "half of an addition is none")
	assert.NoFileExists(t, stray)
}

func TestPackagesOfDistributionsLieApart(t *testing.T) {
	dir, debs := newBundle(t), nvidia570(t, "570.133.20")
	add(t, dir, "debian13", debs)
	r := add(t, dir, "debian12", debs)
	assert.Len(t, r.Drivers, 2)
	b := open(t, dir)
	assert.Len(t, names(b), 10)
	assert.Equal(t, []string{"570.133.20-1"}, Versions(b, "debian12")["libnvidia-ml1"])
	assert.Empty(t, Versions(b, "ubuntu22.04"))

	gone, err := Remove(Removal{Bundle: dir, System: "debian13"})
	require.NoError(t, err)
	assert.Equal(t, 5, gone.Pending())
	assert.Equal(t, whole570, names(open(t, dir)))
	assert.NoDirExists(t, filepath.Join(dir, "driver/debian13"))
}

func TestTheDistributionIsToldByVersionsOrAskedFor(t *testing.T) {
	for _, c := range []struct {
		versions   []string
		want, says string
	}{
		{[]string{"3.0.10-8+deb12u1", "570.1-1"}, "debian12", ""},
		{[]string{"535.161.07-1~deb12u1"}, "debian12", ""},
		{[]string{"535.247.01-0ubuntu0.22.04.1"}, "ubuntu22.04", ""},
		{[]string{"12ubuntu1~24.04.2"}, "ubuntu24.04", ""},
		{[]string{"570.133.20-0ubuntu1"}, "", "don't show which distribution"},
		{[]string{"1-1+deb11u1"}, "", "don't show which distribution"},
		{[]string{"570.133.20-1"}, "", "don't show which distribution"},
		{[]string{"1-1+deb12u1", "1-1ubuntu0.24.04.1"}, "", "more than one distribution: debian12, ubuntu24.04"},
	} {
		var list []found
		for _, v := range c.versions {
			list = append(list, found{Package: Package{Name: "a", Version: v}})
		}
		got, err := systemOf("", list)
		assert.Equal(t, c.want, got, c.versions)
		if c.says != "" {
			require.ErrorContains(t, err, c.says)
			assert.Contains(t, hint.Of(err), "--system")
		}
	}
	_, err := systemOf("debian11", nil)
	require.ErrorContains(t, err, `no driver on "debian11"`)
}

func TestPackagesThatCanNotBeTakenChangeNothing(t *testing.T) {
	dir, debs := newBundle(t), nvidia570(t, "570.133.20")
	add(t, dir, "", debs)
	other := t.TempDir()
	for name, c := range map[string]struct {
		make func(into string)
		says string
	}{
		"no package":          {func(into string) { require.NoError(t, os.WriteFile(into+"/x.deb", []byte("x"), 0o600)) }, "is not a Debian package"},
		"nothing":             {func(string) {}, "contains no .deb file"},
		"for other machines":  {func(into string) { bundletest.Deb(t, into, "dkms", "4+deb12u1", "arm64") }, "is for arm64, but the bundle is for amd64"},
		"another of the same": {func(into string) { bundletest.Deb(t, into, "dkms", "3.0.10-8+deb12u1", "all", "Section: x") }, "another file of dkms 3.0.10-8+deb12u1 for debian12"},
		"two of the same": {func(into string) {
			bundletest.Deb(t, into+"/a", "dkms", "4+deb12u1", "all", "Section: x")
			bundletest.Deb(t, into+"/b", "dkms", "4+deb12u1", "all")
		}, "are both dkms 4+deb12u1, with different content"},
	} {
		into := filepath.Join(other, strings.ReplaceAll(name, " ", "-"))
		require.NoError(t, os.MkdirAll(into, 0o755))
		c.make(into)
		_, err := Add(t.Context(), Addition{Bundle: dir, Paths: []string{into}})
		require.ErrorContains(t, err, c.says, name)
		assert.NotEmpty(t, hint.Of(err), name)
		assert.Equal(t, whole570, names(open(t, dir)), name)
	}
}

func TestADamagedPackageIsBroughtAgainOrTakenOut(t *testing.T) {
	dir, debs := newBundle(t), nvidia570(t, "570.133.20")
	add(t, dir, "", debs)
	file := filepath.Join(dir, "driver/debian12/libnvidia-ml1_570.133.20-1_amd64.deb")
	require.NoError(t, os.WriteFile(file, []byte("damaged"), 0o600))
	b, err := bundle.Open(dir)
	require.NoError(t, err)
	err = b.Verify(t.Context(), nil)
	require.Error(t, err)
	assert.Equal(t, "run: paictl bundle add-driver libnvidia-ml1_570.133.20-1_amd64.deb --system debian12 --bundle "+dir, hint.Of(err))
	assert.Equal(t, 1, add(t, dir, "debian12", debs).Pending())
	open(t, dir)

	require.NoError(t, os.Remove(file))
	_, err = Remove(Removal{Bundle: dir, Names: []string{"libnvidia-ml1"}})
	require.NoError(t, err)
	assert.Len(t, names(open(t, dir)), 4)
}

func TestPackagesAreTakenOutByReleaseOrName(t *testing.T) {
	dir := newBundle(t)
	add(t, dir, "", nvidia570(t, "570.133.20"))
	add(t, dir, "", nvidia570(t, "570.172.08"))
	require.Len(t, names(open(t, dir)), 9, "dkms is the same")
	dry, err := Remove(Removal{Bundle: dir, Names: []string{"570.172.08"}, DryRun: true})
	require.NoError(t, err)
	assert.Equal(t, 4, dry.Pending())
	require.Len(t, names(open(t, dir)), 9)
	r, err := Remove(Removal{Bundle: dir, Names: []string{"570.172.08", "dkms"}})
	require.NoError(t, err)
	assert.Equal(t, 5, r.Pending())
	_, bad := r.Lines()
	assert.Contains(t, strings.Join(bad, "\n"), "for the driver 570.133.20 (nvidia) the bundle doesn't have dkms")
	assert.Equal(t, whole570[1:], names(open(t, dir)))
	_, err = Remove(Removal{Bundle: dir, Names: []string{"nvidia-smi=1"}})
	require.ErrorContains(t, err, "no driver package nvidia-smi=1")
	assert.FileExists(t, filepath.Join(dir, "bin/kubelet"))
}

func TestADriverTakesOfAStockWhatItNeeds(t *testing.T) {
	dir, debs := newBundle(t), nvidia570(t, "570.133.20")
	bundletest.Deb(t, debs, "dkms", "3.0.11-1", "all", "Depends: compiler, headers | linux-headers-6.1.0-fake")
	bundletest.Deb(t, debs, "gcc-12", "12.2.0", "amd64", "Provides: compiler")
	bundletest.Deb(t, debs, "linux-headers-6.1.0-fake", "6.1.140-1", "amd64")
	bundletest.Deb(t, debs, "unrelated", "1", "amd64")
	add(t, dir, "debian12", debs, nvidia570(t, "570.172.08"))
	s, err := Open(open(t, dir), "debian12")
	require.NoError(t, err)
	files := func(c Choice) []string {
		var out []string
		for _, a := range c.Artifacts() {
			out = append(out, a.Name+" "+a.Version)
		}
		return out
	}
	want := []gpudriver.Package{{Name: "nvidia-driver-cuda", Version: "570.133.20-1"}, {Name: "nvidia-kernel-open-dkms", Version: "570.133.20-1"}}
	c := s.Choose("570.133.20", want, nil)
	assert.Equal(t, []string{"dkms 3.0.11-1", "gcc-12 12.2.0", "libnvidia-ml1 570.133.20-1", "linux-headers-6.1.0-fake 6.1.140-1", "nvidia-driver-cuda 570.133.20-1", "nvidia-kernel-open-dkms 570.133.20-1"}, files(c))
	assert.Equal(t, []string{"libc6"}, c.Unmet)
	c = s.Choose("570.133.20", want, map[string]string{"libnvidia-ml1": "570.172.08-1", "unrelated": "1"})
	assert.Contains(t, files(c), "libnvidia-ml1 570.172.08-1", "it may have to be put back")
	assert.NotContains(t, files(c), "unrelated 1")

	index := string(c.Index())
	assert.Equal(t, 7, strings.Count(index, "\n\n"))
	i := slices.IndexFunc(c.Artifacts(), func(a bundle.Artifact) bool { return a.Name == "gcc-12" })
	assert.Contains(t, index, "Provides: compiler\n")
	assert.Contains(t, index, "Filename: ./gcc-12_12.2.0_amd64.deb\nSize: ")
	assert.Contains(t, index, "SHA256: "+c.Artifacts()[i].SHA256+"\n\n")
}
