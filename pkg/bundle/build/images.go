package build

import (
	"context"
	"fmt"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/openpai/paictl/pkg/bundle"
	"github.com/openpai/paictl/pkg/bundle/oci"
)

// debianLayer is a layer of Debian packages with their names and versions.
type debianLayer struct {
	layer    v1.Layer
	packages []string
}

// image assembles one image and adds it to the bundle.
func (b *builder) image(ctx context.Context, img Image) error {
	start := b.now()
	program := img.Files[0].Program
	a := bundle.Artifact{
		Name: img.Name, Version: b.version(program), Kind: bundle.KindImage, Path: bundle.PathOf(bundle.KindImage, img.Name),
		Source: b.source(program), Image: img.Reference(b.version(program)), Roles: img.Roles,
	}
	if err := os.MkdirAll(b.c.tmp(), 0o755); err != nil {
		return fmt.Errorf("build image %s: %w", img.Name, err)
	}
	var layers []v1.Layer
	if img.Debian {
		d, err := b.debianPackages(ctx)
		if err != nil {
			return fmt.Errorf("build image %s: %w", img.Name, err)
		}
		layers, a.Packages = append(layers, d.layer), d.packages
	}
	own, err := oci.NewLayer(b.w.Work("tmp", img.Name+".layer"), b.imageEntries(img))
	if err != nil {
		return fmt.Errorf("build image %s: %w", img.Name, err)
	}
	image, err := oci.NewImage(oci.Config{
		Arch: b.c.arch, Entrypoint: img.Entrypoint,
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":       img.Name,
			"org.opencontainers.image.version":     a.Version,
			"org.opencontainers.image.source":      a.Source,
			"org.opencontainers.image.description": "built from source by paictl",
		},
	}, append(layers, own)...)
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

// imageEntries are the programs of an image and the few files that programs expect anywhere.
func (b *builder) imageEntries(img Image) []oci.Entry {
	entries := []oci.Entry{
		{Path: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n")},
		{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nnogroup:x:65534:\n")},
		{Path: "tmp", Mode: 0o1777, Dir: true},
	}
	for _, f := range img.Files {
		entries = append(entries, oci.Entry{Path: f.Path, Mode: 0o755, Source: b.programFile(f.Program)})
	}
	return entries
}

// debianPackages makes the shared layer once per run.
func (b *builder) debianPackages(ctx context.Context) (*debianLayer, error) {
	if b.debian != nil {
		return b.debian, nil
	}
	dir := b.w.Work("apt")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	debs, err := downloadDebs(ctx, dir, netfilterPackages())
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
	layer, err := oci.NewLayer(b.w.Work("tmp", "debian.layer"), entries)
	if err != nil {
		return nil, err
	}
	b.debian = &debianLayer{layer: layer, packages: names}
	return b.debian, nil
}
