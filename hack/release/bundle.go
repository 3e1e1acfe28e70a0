package main

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.yaml.in/yaml/v3"
)

// bundleManifest holds the fields of a bundle's manifest that the release needs.
type bundleManifest struct {
	Arch      string
	Artifacts []struct {
		Name, Version, Kind, Path, Source string
	}
}

// bundleArchives creates an archive of the bundle for each architecture, including the images of paictl's programs. If the bundle for this machine's
// architecture isn't complete, it builds that bundle. Bundles for other architectures must be in --bundles; they are built on machines with that
// architecture.
func (b *build) bundleArchives(ctx context.Context) error {
	if err := b.needs("paictl"); err != nil {
		return err
	}
	program := b.program("paictl", platform{runtime.GOOS, runtime.GOARCH})
	if !slices.Contains(b.platforms, runtime.GOOS+"/"+runtime.GOARCH) {
		return fmt.Errorf("it is built by paictl for %s/%s: add that to --platforms", runtime.GOOS, runtime.GOARCH)
	}
	bundles := b.bundles
	if !filepath.IsAbs(bundles) {
		bundles = filepath.Join(b.root, bundles)
	}
	if err := b.run(ctx, nil, program, "bundle", "build", "-o", filepath.Join(bundles, runtime.GOARCH)); err != nil {
		return err
	}
	for _, arch := range []string{"amd64", "arm64"} {
		dir := filepath.Join(bundles, arch)
		if _, err := os.Stat(filepath.Join(dir, "manifest.yaml")); errors.Is(err, os.ErrNotExist) {
			fmt.Fprintf(b.out, "no bundle for %s: run paictl bundle build -o %s on a machine of that architecture, and bring the folder here\n", arch, dir)
			continue
		}
		if _, err := b.output(ctx, program, "bundle", "verify", dir); err != nil {
			return err
		}
		m, err := readBundle(dir, arch, b.version)
		if err != nil {
			return err
		}
		if err := packBundle(ctx, dir, m, b.file("paictl-bundle_"+b.version+"_linux_"+arch+".tar.zst", "bundle"), b.when); err != nil {
			return fmt.Errorf("pack the bundle for %s: %w", arch, err)
		}
		if err := mergeImages(dir, m, b.file("paictl-images_"+b.version+"_linux_"+arch+".tar", "images"), b.when); err != nil {
			return fmt.Errorf("pack the images for %s: %w", arch, err)
		}
	}
	return nil
}

// readBundle reads the manifest of a bundle. It returns an error if the bundle belongs to another release.
func readBundle(dir, arch, version string) (bundleManifest, error) {
	var m bundleManifest
	file := filepath.Join(dir, "manifest.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		return m, err
	}
	if err := yaml.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read %s: %w", file, err)
	}
	if m.Arch != arch {
		return m, fmt.Errorf("%s is for %s, not for %s", file, m.Arch, arch)
	}
	for _, a := range m.Artifacts {
		if a.Kind == "driver-package" {
			return m, fmt.Errorf("%s has packages of NVIDIA's driver, which a release must not have: remove them by paictl bundle remove-driver --all %s", file, dir)
		}
		if strings.HasPrefix(a.Source, module+"@") && a.Version != version {
			return m, fmt.Errorf("%s has %s %s, but this is %s", file, a.Name, a.Version, version)
		}
	}
	return m, nil
}

// packBundle writes a tar of a bundle, compressed with zstd. The manifest is the first file, so that a reader of the archive knows the other files.
func packBundle(ctx context.Context, dir string, m bundleManifest, file string, when time.Time) error {
	paths := []string{}
	for _, a := range m.Artifacts {
		paths = append(paths, a.Path)
	}
	slices.Sort(paths)
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	zw, err := zstd.NewWriter(f, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return err
	}
	tw := tar.NewWriter(zw)
	for _, p := range append([]string{"manifest.yaml"}, paths...) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := addFile(tw, filepath.Join(dir, filepath.FromSlash(p)), p, when); err != nil {
			return err
		}
	}
	return errors.Join(tw.Close(), zw.Close(), f.Close())
}

func addFile(tw *tar.Writer, file, name string, when time.Time) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if fi.Mode()&0o100 != 0 {
		mode = 0o755
	}
	h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: fi.Size(), ModTime: when, Uname: "root", Gname: "root", Format: tar.FormatPAX}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(tw, f)
	return err
}

// mergeImages writes the images of paictl's programs to one archive with one index. The archive contains shared layers only once.
func mergeImages(dir string, m bundleManifest, file string, when time.Time) error {
	l := newLayout()
	for _, a := range m.Artifacts {
		if a.Kind != "image" || !strings.HasPrefix(a.Source, module+"@") {
			continue
		}
		if err := l.merge(filepath.Join(dir, filepath.FromSlash(a.Path))); err != nil {
			return fmt.Errorf("read image %s: %w", a.Name, err)
		}
	}
	if len(l.index.Manifests) == 0 {
		return errors.New("the bundle has no images of paictl's programs")
	}
	return l.write(file, when)
}

// merge adds all blobs of an OCI archive to the layout, and the images in the archive's index.
func (l *layout) merge(archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	tr := tar.NewReader(f)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case strings.HasPrefix(h.Name, "blobs/sha256/"):
			if l.blobs[h.Name], err = io.ReadAll(tr); err != nil {
				return err
			}
		case h.Name == "index.json":
			var index manifest
			if err := json.NewDecoder(tr).Decode(&index); err != nil {
				return fmt.Errorf("read index.json: %w", err)
			}
			l.index.Manifests = append(l.index.Manifests, index.Manifests...)
		}
	}
}
