package fetch

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/openpai/paictl/pkg/cluster/bundle/oci"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/version"
)

func (f *fetcher) image(ctx context.Context, img Image) error {
	if locked := f.lock.get(img.Ref); locked != "" && f.keep(locked, img.Ref, img.Output) {
		return nil
	}
	start := time.Now()
	ref, err := f.mirror.image(img.Ref)
	if err != nil {
		return fmt.Errorf("fetch image %s: %w", img.Ref, err)
	}
	desc, err := remote.Get(ref, remote.WithContext(ctx), remote.WithTransport(f.Transport),
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: f.Catalogue.Arch}))
	if err != nil {
		return img.explain(fmt.Errorf("fetch image %s: %w", img.Ref, err))
	}
	if img.Digest != "" && img.Digest != desc.Digest.String() {
		return fmt.Errorf("fetch image %s: it is now %s, but the chart says %s", img.Ref, desc.Digest, img.Digest)
	}
	if err := f.lock.check(img.Ref, desc.Digest.String()); err != nil {
		return fmt.Errorf("fetch image: %w", err)
	}
	image, err := desc.Image()
	if err != nil {
		return fmt.Errorf("fetch image %s: %w", img.Ref, err)
	}
	a := img.Output.artifact(img.Ref + "@" + desc.Digest.String())
	file := f.w.Work("downloads", img.Output.Kind+"-"+img.Output.Name)
	if img.Output.Member != "" {
		err = memberOfImage(ctx, image, img.Output.Member, file)
	} else {
		a.Image = img.Ref
		a.Digest, err = oci.WriteArchive(ctx, file, img.Ref, image)
	}
	if err != nil {
		return fmt.Errorf("fetch image %s: %w", img.Ref, err)
	}
	if err := f.lock.record(img.Ref, desc.Digest.String()); err != nil {
		return err
	}
	return f.add(ctx, a, inputs(desc.Digest.String(), img.Ref, img.Output), file, time.Since(start))
}

func (i Image) explain(err error) error {
	var answer *transport.Error
	if !i.Own || !errors.As(err, &answer) || answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusUnauthorized {
		return err
	}
	return hint.Wrap(err, "images of paictl's own programs are published with its releases, but this is "+version.Version+
		"; build the bundle from source: paictl bundle build")
}

func memberOfImage(ctx context.Context, img v1.Image, member, dst string) error {
	r := mutate.Extract(img)
	defer r.Close()
	found, err := members(ctx, r, map[string]string{member: dst})
	if err == nil {
		// Read to the end. After an interrupted download, Extract first completes the tar archive and then returns the error.
		_, err = io.Copy(io.Discard, r)
	}
	if err != nil {
		return err
	}
	if !found[member] {
		return fmt.Errorf("it contains no file %s", member)
	}
	return nil
}

// takeOut returns the path of each output's file. The file is the download itself, or was extracted from the download.
func takeOut(ctx context.Context, download string, outputs []Output) ([]string, error) {
	want := map[string]string{}
	paths := make([]string, len(outputs))
	for i, o := range outputs {
		paths[i] = download
		if o.Member != "" {
			paths[i] = download + "." + o.Name
			want[o.Member] = paths[i]
		}
	}
	if len(want) == 0 {
		return paths, nil
	}
	f, err := os.Open(download)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	found, err := members(ctx, zr, want)
	if err != nil {
		return nil, err
	}
	for member := range want {
		if !found[member] {
			return nil, fmt.Errorf("it contains no file %s", member)
		}
	}
	return paths, nil
}

// members extracts files from a tar archive. The keys of want are paths in the archive, and the values are the files to write. The result contains
// the paths that the archive contains.
func members(ctx context.Context, r io.Reader, want map[string]string) (map[string]bool, error) {
	found := map[string]bool{}
	tr := tar.NewReader(r)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		name := path.Clean(h.Name)
		dst, ok := want[name]
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		if err := writeFile(dst, tr); err != nil {
			return nil, err
		}
		found[name] = true
	}
}

func writeFile(dst string, r io.Reader) error {
	f, err := os.Create(dst)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
