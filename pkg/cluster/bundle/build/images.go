package build

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/oci"
)

type debianLayer struct {
	layer    v1.Layer
	packages []string
}

func (b *builder) image(ctx context.Context, img Image) error {
	start := b.now()
	a := bundle.Artifact{
		Name: img.Name, Kind: bundle.KindImage, Path: bundle.PathOf(bundle.KindImage, img.Name), Roles: img.Roles,
	}
	if err := os.MkdirAll(b.c.tmp(), 0o755); err != nil {
		return fmt.Errorf("build image %s: %w", img.Name, err)
	}
	var layers []v1.Layer
	if len(img.Debian) > 0 {
		d, err := b.debianPackages(ctx, img.Debian)
		if err != nil {
			return fmt.Errorf("build image %s: %w", img.Name, err)
		}
		layers, a.Packages = append(layers, d.layer), d.packages
	}
	if err := b.identify(&a, img); err != nil {
		return fmt.Errorf("build image %s: %w", img.Name, err)
	}
	own, err := oci.NewLayer(b.w.Work("tmp", img.Name+".layer"), b.imageEntries(img))
	if err != nil {
		return fmt.Errorf("build image %s: %w", img.Name, err)
	}
	image, err := oci.NewImage(b.config(img, a), append(layers, own)...)
	if err != nil {
		return fmt.Errorf("build image %s: %w", img.Name, err)
	}
	file := b.w.Work(img.Name + ".tar")
	if a.Digest, err = oci.WriteArchive(ctx, file, a.Image, image); err != nil {
		return err
	}
	if a, err = b.w.Add(ctx, a, b.inputs["image/"+img.Name], file); err != nil {
		return err
	}
	b.report(a, b.since(start))
	return nil
}

// identify sets the version, the source and the reference of an image's artifact. These values depend on the image's main program.
func (b *builder) identify(a *bundle.Artifact, img Image) error {
	if img.Package == "" {
		program := img.Files[0].Program
		a.Version, a.Source = b.version(program), b.source(program)
		a.Image = img.Reference(a.Version)
		return nil
	}
	for _, p := range a.Packages {
		if version, ok := strings.CutPrefix(p, img.Package+"="); ok {
			a.Version, a.Source = version, "package "+p
			a.Image = img.Reference(debianTag(version, distribution()))
			return nil
		}
	}
	return fmt.Errorf("apt downloaded no package %s", img.Package)
}

// config returns an image's configuration for container runtimes. Two builds from the same source result in the same configuration.
func (b *builder) config(img Image, a bundle.Artifact) oci.Config {
	description := "built from source by paictl"
	if img.Package != "" {
		description = "made of a distribution's package by paictl"
	}
	labels := map[string]string{
		"org.opencontainers.image.title":       img.Name,
		"org.opencontainers.image.version":     a.Version,
		"org.opencontainers.image.source":      a.Source,
		"org.opencontainers.image.description": description,
	}
	maps.Copy(labels, img.Labels)
	return oci.Config{
		Arch: b.c.arch, Entrypoint: img.Entrypoint, Cmd: img.Cmd, User: img.User, Labels: labels,
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
}

// imageEntries returns the programs of an image and the few files that all programs expect.
func (b *builder) imageEntries(img Image) []oci.Entry {
	entries := []oci.Entry{
		{Path: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n")},
		{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nnogroup:x:65534:\n")},
		{Path: "tmp", Mode: 0o1777, Dir: true},
	}
	mode := int64(0o755)
	if img.Setuid {
		mode |= 0o4000
	}
	for _, f := range img.Files {
		entries = append(entries, oci.Entry{Path: f.Path, Mode: mode, Source: b.programFile(f.Program)})
	}
	return append(entries, img.Entries...)
}

// debianPackages returns the layer of these packages. It makes each layer only once per run.
func (b *builder) debianPackages(ctx context.Context, packages []string) (*debianLayer, error) {
	key := strings.Join(packages, " ")
	if d := b.debian[key]; d != nil {
		return d, nil
	}
	dir := b.w.Work("apt")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	debs, err := downloadDebs(ctx, dir, packages)
	if err != nil {
		return nil, err
	}
	names, err := debNames(ctx, debs)
	if err != nil {
		return nil, err
	}
	entries, err := unpackDebs(ctx, debs)
	if err != nil {
		return nil, err
	}
	layer, err := oci.NewLayer(b.w.Work("tmp", fmt.Sprintf("debian%d.layer", len(b.debian))), entries)
	if err != nil {
		return nil, err
	}
	b.debian[key] = &debianLayer{layer: layer, packages: names}
	return b.debian[key], nil
}
