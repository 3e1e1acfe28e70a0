// Package image builds paictl's own programs as OCI images, and pushes a bundle's images to registries. In: paictl's embedded source, a bundle, and
// the image references in the configuration. Out: a folder of images, and the state of a registry's images.
package image

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	paictl "github.com/openpai/paictl"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/build"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/version"
)

// Own is an image of one of paictl's programs.
type Own struct {
	Name string
	Ref  string // the name of the bundle's copy on nodes
}

// Owned returns paictl's own images.
func Owned() []Own {
	var out []Own
	for _, img := range build.OwnImages() {
		out = append(out, Own{Name: img.Name, Ref: img.Reference(version.Version)})
	}
	return out
}

// Names returns the names of paictl's own images.
func Names() []string { return paictl.Programs() }

// Destination is the registry to which images are pushed.
type Destination struct {
	// Registry is a host with an optional path, such as docker.io/openpai, for paictl's own images.
	Registry string
	// Tag is the tag of paictl's own images in the registry.
	Tag string
	// Mirror is a host with an optional path. Upstream images keep their names below Mirror. "" means that no mirror is used.
	Mirror string
}

// Item is an image with its destination.
type Item struct {
	bundle.Artifact
	Own bool
	// Target is the reference of the image in the registry.
	Target string
}

// Plan selects the images to push. If names are given, Plan selects the named images. Without names, Plan selects paictl's own images. If all is set,
// Plan also selects all upstream images.
func Plan(b *bundle.Bundle, d Destination, names []string, all bool) ([]Item, error) {
	var out []Item
	for _, a := range b.List(bundle.KindImage) {
		own := slices.Contains(Names(), a.Name)
		if len(names) > 0 && !slices.Contains(names, a.Name) || len(names) == 0 && !own && !all {
			continue
		}
		target, err := d.Target(a, own)
		if err != nil {
			return nil, err
		}
		out = append(out, Item{Artifact: a, Own: own, Target: target})
	}
	wanted := names
	if len(names) == 0 {
		wanted = Names()
	}
	for _, n := range wanted {
		if !slices.ContainsFunc(out, func(i Item) bool { return i.Name == n }) {
			return nil, missing(b, n)
		}
	}
	return out, nil
}

func missing(b *bundle.Bundle, image string) error {
	if slices.Contains(Names(), image) {
		return hint.Errorf("run: paictl image build "+image+", or: paictl bundle build -o "+hint.Quote(b.Dir()), "%s contains no image %s", b.Dir(), image)
	}
	return hint.Errorf("paictl image list shows the names", "%s contains no image %s", b.Dir(), image)
}

// Target returns the reference of an image at its destination.
func (d Destination) Target(a bundle.Artifact, own bool) (string, error) {
	switch {
	case own && d.Registry != "":
		return path.Join(d.Registry, a.Name) + ":" + d.Tag, nil
	case own:
		return "", hint.Errorf("give it with -p DIR, or --registry HOST/PROJECT", "no registry is named for %s", a.Name)
	case d.Mirror != "":
		return Mirrored(d.Mirror, a.Image)
	}
	return "", hint.Errorf("set cluster.docker-registry.mirror in services-configuration.yaml, or give --mirror HOST[/PATH]",
		"no registry is named for %s, which is upstream's", a.Image)
}

// Mirrored returns the name of an image in a mirror. The mirror's address replaces the registry's host. For example, quay.io/prometheus/prometheus:v3
// becomes MIRROR/prometheus/prometheus:v3. The charts do the same with global.imageRegistry.
func Mirrored(mirror, ref string) (string, error) {
	host, rest, ok := strings.Cut(ref, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return "", fmt.Errorf("%s names no registry", ref)
	}
	return path.Join(mirror, rest), nil
}

// Check rejects invalid names of registries and tags. Callers call Check before sending an image.
func (d Destination) Check() error {
	for _, r := range []string{d.Registry, d.Mirror} {
		if r == "" {
			continue
		}
		if strings.Contains(r, "://") {
			return hint.Errorf("leave "+strings.SplitN(r, "://", 2)[0]+":// out", "%q is a URL, not a registry", secret.Address(r))
		}
		if _, err := name.NewRepository(path.Join(r, "x"), name.StrictValidation); err != nil {
			return hint.Errorf("write HOST/PROJECT, in small letters, such as registry.example.org/openpai", "%q is not a registry", secret.Address(r))
		}
	}
	if d.Registry == "" {
		return nil
	}
	if _, err := name.NewTag("example.org/x:"+d.Tag, name.StrictValidation); err != nil {
		return fmt.Errorf("%q is not a tag of an image: %w", d.Tag, err)
	}
	return nil
}
