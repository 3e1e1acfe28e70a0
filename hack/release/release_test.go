package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/klauspost/compress/zstd"
)

var when = time.Unix(1700000000, 0).UTC()

// twice creates a file two times, and fails the test if the bytes differ.
func twice(t *testing.T, make func() []byte) []byte {
	t.Helper()
	first := make()
	if second := make(); !bytes.Equal(first, second) {
		t.Error("two runs gave different bytes")
	}
	if len(first) == 0 {
		t.Fatal("the file is empty")
	}
	return first
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func entries() []entry {
	return []entry{
		{name: "share/man/man1/paictl.1", mode: 0o644, data: []byte(".TH PAICTL 1\n")},
		{name: "share/doc/paictl/LICENSE", mode: 0o644, data: []byte("MIT\n")},
		{name: "bin/paictl", mode: 0o755, data: bytes.Repeat([]byte("program"), 1000)},
	}
}

// contents returns the headers of the files in a tar, by name.
func contents(t *testing.T, r io.Reader) map[string]*tar.Header {
	t.Helper()
	out := map[string]*tar.Header{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = h
	}
}

func TestAnArchiveHasOneTimeAndNoUser(t *testing.T) {
	data := twice(t, func() []byte { return must[[]byte](t)(tarGz("paictl_v1", entries(), when)) })
	zr := must[*gzip.Reader](t)(gzip.NewReader(bytes.NewReader(data)))
	if !zr.ModTime.IsZero() || zr.Name != "" {
		t.Errorf("the header has the time %s and the name %q", zr.ModTime, zr.Name)
	}
	files := contents(t, zr)
	for _, e := range entries() {
		h := files["paictl_v1/"+e.name]
		if h == nil || h.Mode != e.mode || h.Uid != 0 || !h.ModTime.Equal(when) {
			t.Errorf("%s is %+v", e.name, h)
		}
	}
}

func TestPackagesAreTheSameInTwoFolders(t *testing.T) {
	for format, want := range map[string]string{"deb": "paictl_1.2.3_amd64.deb", "rpm": "paictl-1.2.3-1.x86_64.rpm"} {
		data := twice(t, func() []byte {
			name, data, err := pack(format, t.TempDir(), "v1.2.3", "amd64", entries(), when)
			if err != nil {
				t.Fatal(err)
			}
			if name != want {
				t.Errorf("the name is %s, not %s", name, want)
			}
			return data
		})
		if format != "deb" {
			continue
		}
		// In an ar archive, each member follows a header of 60 bytes, which begins with the name of the member.
		_, rest, ok := bytes.Cut(data, []byte("data.tar.zst"))
		if !ok {
			t.Fatal("the deb has no data.tar.zst")
		}
		_, body, _ := bytes.Cut(rest, []byte("`\n"))
		zr := must[*zstd.Decoder](t)(zstd.NewReader(bytes.NewReader(body), zstd.IgnoreChecksum(true)))
		files := contents(t, io.LimitReader(zr, 1<<20))
		for _, name := range []string{"./usr/bin/paictl", "./usr/share/man/man1/paictl.1.gz", "./usr/share/doc/paictl/copyright"} {
			if h := files[name]; h == nil || !h.ModTime.Equal(when) || h.Uname != "root" {
				t.Errorf("%s is %+v", name, h)
			}
		}
	}
}

// The program of the test was built by Go, too, so it contains a list of its modules.
func TestTheListOfModulesIsThatOfTheProgram(t *testing.T) {
	program := must[string](t)(os.Executable())
	data := twice(t, func() []byte { return must[[]byte](t)(sbom(program, "v1.2.3+x", when)) })
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(data), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, c := range *bom.Components {
		found[c.Name] = c.PackageURL
	}
	if found["aead.dev/minisign"] != "pkg:golang/aead.dev/minisign@v0.3.0" || !strings.HasPrefix(found["std"], "pkg:golang/std@1.") {
		t.Errorf("the modules are %v", found)
	}
	main := bom.Metadata.Component
	if main.Name != module+"/hack/release" || !strings.HasSuffix(main.PackageURL, "@v1.2.3%2Bx") || len((*main.Hashes)[0].Value) != 64 {
		t.Errorf("the program is %+v", main)
	}
	if (*bom.Dependencies)[0].Ref != main.BOMRef || len(*(*bom.Dependencies)[0].Dependencies) != len(*bom.Components) {
		t.Error("the program doesn't depend on all components")
	}
}

func TestAnImageIsOneThatRuntimesRead(t *testing.T) {
	data := twice(t, func() []byte {
		l := newLayout()
		d := must[descriptor](t)(l.addImage([]entry{{name: "bin/paictl", mode: 0o755}, {name: "bin/paictl-history", mode: 0o755}}, "v1.2.3", "abc", "arm64", when))
		l.named(d, "docker.io/openpai/paictl:v1.2.3")
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := l.write(file, when); err != nil {
			t.Fatal(err)
		}
		return must[[]byte](t)(os.ReadFile(file))
	})
	files := map[string][]byte{}
	for tr := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = must[[]byte](t)(io.ReadAll(tr))
	}
	blob := func(d descriptor) []byte { return files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)] }
	var index, m manifest
	if err := json.Unmarshal(files["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(blob(index.Manifests[0]), &m); err != nil {
		t.Fatal(err)
	}
	var config struct {
		Architecture string
		Rootfs       struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal(blob(*m.Config), &config); err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || len(config.Rootfs.DiffIDs) != 1 || index.Manifests[0].Platform["architecture"] != "arm64" {
		t.Errorf("the configuration is %+v", config)
	}
	layer := contents(t, must[*gzip.Reader](t)(gzip.NewReader(bytes.NewReader(blob(m.Layers[0])))))
	if layer["usr/bin/paictl"].Mode != 0o755 || layer["usr/bin/paictl-history"].Mode != 0o755 || layer["home/paictl/"].Typeflag != tar.TypeDir {
		t.Errorf("the layer is %v", layer)
	}
}

// The image is one name for all architectures of Linux. A platform without Linux doesn't become part of it.
func TestTheImageHasBothArchitectures(t *testing.T) {
	b := &build{
		options: options{version: "v1.2.3+x", only: partNames(), platforms: []string{"linux/amd64", "linux/arm64", "darwin/arm64"}},
		dir:     t.TempDir(), commit: "abc", when: when, made: map[string]string{},
	}
	for _, p := range b.list() {
		for _, name := range names {
			if err := os.WriteFile(b.program(name, p), []byte(name+" for "+p.os+"/"+p.arch), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.image(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, m := range must[[]packed](t)(tarMembers(must[[]byte](t)(os.ReadFile(filepath.Join(b.dir, "paictl-image_v1.2.3+x.tar"))))) {
		files[m.name] = m.data
	}
	read := func(d descriptor, into any) {
		t.Helper()
		if err := json.Unmarshal(files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)], into); err != nil {
			t.Fatal(err)
		}
	}
	var index, all manifest
	if err := json.Unmarshal(files["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Manifests) != 1 || index.Manifests[0].MediaType != indexType || index.Manifests[0].Annotations["io.containerd.image.name"] != "docker.io/openpai/paictl:v1.2.3_x" {
		t.Fatalf("index.json has %+v, not one index of images", index.Manifests)
	}
	read(index.Manifests[0], &all)
	if len(all.Manifests) != 2 {
		t.Fatalf("the image is for %+v", all.Manifests)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		d := all.Manifests[i]
		if d.MediaType != manifestType || d.Platform["os"] != "linux" || d.Platform["architecture"] != arch {
			t.Errorf("image %d is %+v", i, d)
		}
		var m manifest
		read(d, &m)
		var config struct{ OS, Architecture string }
		read(*m.Config, &config)
		if config.OS != "linux" || config.Architecture != arch {
			t.Errorf("the image for %s is configured for %+v", arch, config)
		}
		layer := must[[]packed](t)(members(files["blobs/"+strings.Replace(m.Layers[0].Digest, ":", "/", 1)]))
		programs := map[string]string{}
		for _, f := range must[[]packed](t)(tarMembers(layer[0].data)) {
			programs[f.name] = string(f.data)
		}
		for _, name := range names {
			if programs["usr/bin/"+name] != name+" for linux/"+arch {
				t.Errorf("the image for %s has %q as %s", arch, programs["usr/bin/"+name], name)
			}
		}
	}
}

// Archives, packages and the image must contain the same programs.
func TestAnInstallationHasAllPrograms(t *testing.T) {
	b := &build{options: options{version: "v1.2.3"}, dir: t.TempDir(), written: entries()[:2]}
	p := platform{"linux", "arm64"}
	if _, err := b.installation(t.Context(), p); err == nil {
		t.Error("programs that weren't built are installed")
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(b.dir, name+"_v1.2.3_linux_arm64"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, e := range must[[]entry](t)(b.installation(t.Context(), p)) {
		if strings.HasPrefix(e.name, "bin/") {
			got = append(got, e.name+" "+string(e.data))
		}
	}
	if strings.Join(got, ", ") != "bin/paictl paictl, bin/paictl-history paictl-history" {
		t.Error(got)
	}
}

func TestAChartIsAnArtifact(t *testing.T) {
	chart := must[[]byte](t)(tarGz("storage", []entry{{name: "Chart.yaml", mode: 0o644, data: []byte("apiVersion: v2\nname: storage\nversion: 0.1.0+x\n")}}, when))
	l := newLayout()
	if err := l.addChart(chart); err != nil {
		t.Fatal(err)
	}
	d := l.index.Manifests[0]
	if got := d.Annotations["io.containerd.image.name"]; got != "docker.io/openpai/charts/storage:0.1.0_x" {
		t.Errorf("the reference is %s", got)
	}
	var m manifest
	if err := json.Unmarshal(l.blobs["blobs/"+strings.Replace(d.Digest, ":", "/", 1)], &m); err != nil {
		t.Fatal(err)
	}
	if m.Config.MediaType != chartConfig || m.Layers[0].MediaType != chartContent || m.Layers[0].Size != int64(len(chart)) {
		t.Errorf("the manifest is %+v", m)
	}
	empty := must[[]byte](t)(tarGz("x", []entry{{name: "values.yaml"}}, when))
	if err := l.addChart(empty); err == nil || !strings.Contains(err.Error(), "no Chart.yaml") {
		t.Error(err)
	}
}

// bundle writes a folder in the form in which "paictl bundle build" writes a bundle.
func bundle(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"manifest.yaml": `
arch: amd64
artifacts:
  - {name: kubelet, version: v1, kind: binary, path: bin/kubelet, source: k8s.io/kubernetes@v1}
  - {name: pai-volume, version: v1.2.3, kind: image, path: images/pai-volume.tar, source: github.com/openpai/paictl@v1.2.3}
`, "bin/kubelet": "kubelet", ".work/state.json": "{}", "bundle.lock": "x",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil { //nolint:gosec // programs
			t.Fatal(err)
		}
	}
	l := newLayout()
	l.named(must[descriptor](t)(l.addImage([]entry{{name: "bin/pai-volume", mode: 0o755}}, "v1.2.3", "abc", "amd64", when)), "docker.io/openpai/pai-volume:v1.2.3")
	if err := os.MkdirAll(filepath.Join(dir, "images"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := l.write(filepath.Join(dir, "images/pai-volume.tar"), when); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestABundleBeginsWithItsManifest(t *testing.T) {
	dir := bundle(t)
	m := must[bundleManifest](t)(readBundle(dir, "amd64", "v1.2.3"))
	data := twice(t, func() []byte {
		file := filepath.Join(t.TempDir(), "bundle.tar.zst")
		if err := packBundle(t.Context(), dir, m, file, when); err != nil {
			t.Fatal(err)
		}
		return must[[]byte](t)(os.ReadFile(file))
	})
	zr := must[*zstd.Decoder](t)(zstd.NewReader(bytes.NewReader(data)))
	defer zr.Close()
	var names []string
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); got != "manifest.yaml bin/kubelet images/pai-volume.tar" {
		t.Error(got)
	}
	images := filepath.Join(t.TempDir(), "images.tar")
	if err := mergeImages(dir, m, images, when); err != nil {
		t.Fatal(err)
	}
	f := must[*os.File](t)(os.Open(images))
	defer f.Close()
	if files := contents(t, f); len(files) != 5 { // the layout, the index, a manifest, a configuration, a layer
		t.Errorf("the images are %v", files)
	}
}

func TestABundleOfAnotherReleaseIsRefused(t *testing.T) {
	dir := bundle(t)
	for want, args := range map[string][2]string{"is for amd64, not for arm64": {"arm64", "v1.2.3"}, "has pai-volume v1.2.3, but this is v1.2.4": {"amd64", "v1.2.4"}} {
		if _, err := readBundle(dir, args[0], args[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

// keyFiles writes a pair of keys to files, and returns their paths. The secret key isn't encrypted, because encryption takes a gigabyte of memory
// and half a minute.
func keyFiles(t *testing.T) (public, secret string) {
	t.Helper()
	pub, sec, err := minisign.GenerateKey(bytes.NewReader(bytes.Repeat([]byte("seed"), 8)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	public, secret = filepath.Join(dir, "minisign.pub"), filepath.Join(dir, "minisign.key")
	if err := os.WriteFile(public, must[[]byte](t)(pub.MarshalText()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, must[[]byte](t)(sec.MarshalText()), 0o600); err != nil {
		t.Fatal(err)
	}
	return public, secret
}

func TestTheListOfAReleaseIsSigned(t *testing.T) {
	public, secret := keyFiles(t)
	run := func() []byte {
		b := &build{options: options{version: "v1.2.3", publicKey: public, secretKey: secret}, dir: t.TempDir(), root: ".", when: when, out: io.Discard, made: map[string]string{}}
		if err := b.keys(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b.file("a.deb", "deb"), []byte("a"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := b.finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		list := must[[]byte](t)(os.ReadFile(filepath.Join(b.dir, listFile)))
		signature := must[[]byte](t)(os.ReadFile(filepath.Join(b.dir, signatureFile)))
		if !minisign.Verify(*b.public, list, signature) || !strings.Contains(string(signature), "trusted comment: timestamp:1700000000\tfile:checksums.txt\tpaictl:v1.2.3\n") {
			t.Errorf("the signature is\n%s", signature)
		}
		for _, name := range []string{"  a.deb\n", "  provenance.intoto.json\n", "  release.json\n"} {
			if !strings.Contains(string(list), name) {
				t.Errorf("the list doesn't have %q:\n%s", name, list)
			}
		}
		return signature
	}
	twice(t, run)
}

func TestKeysThatDoNotBelongTogetherAreRefused(t *testing.T) {
	public, secret := keyFiles(t)
	other, _, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(t.TempDir(), "other.pub")
	if err := os.WriteFile(foreign, must[[]byte](t)(other.MarshalText()), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]options{
		"--public-key is missing":  {},
		"is not the secret key of": {publicKey: foreign, secretKey: secret},
		"read the secret key":      {publicKey: public, secretKey: public},
	} {
		b := &build{options: o, out: io.Discard}
		if err := b.keys(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}

func TestFlagsAreChecked(t *testing.T) {
	for want, args := range map[string][]string{
		"the parts are paictl": {"--only", "paictl,debs"}, "the platforms are linux": {"--platforms", "plan9/amd64"}, `unexpected argument "x"`: {"x"},
	} {
		if _, err := parse(args, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
