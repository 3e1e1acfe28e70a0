package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nameAnnotation is the annotation with an image's full reference. containerd reads it during an import.
const nameAnnotation = "io.containerd.image.name"

// WriteArchive stores img under the reference ref in a new file. The file is a tar archive with an OCI image layout. It also contains Docker's
// manifest.json, because some tools read only that file. WriteArchive returns the digest of the manifest. containerd keeps the digest of an OCI
// image, but not the digest of an image in Docker's own format.
func WriteArchive(ctx context.Context, file, ref string, img v1.Image) (digest string, err error) {
	f, err := os.Create(file)
	if err != nil {
		return "", fmt.Errorf("write image %s: %w", ref, err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("write image %s: %w", ref, cerr)
		}
		if err != nil {
			_ = os.Remove(file)
		}
	}()
	a := &archive{ctx: ctx, tw: tar.NewWriter(f), seen: map[string]bool{}}
	if digest, err = a.image(ref, img); err != nil {
		return "", fmt.Errorf("write image %s to %s: %w", ref, filepath.Base(file), err)
	}
	return digest, nil
}

type archive struct {
	ctx  context.Context
	tw   *tar.Writer
	seen map[string]bool
}

type dockerManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func (a *archive) image(ref string, img v1.Image) (string, error) {
	raw, err := img.RawManifest()
	if err != nil {
		return "", err
	}
	manifest, err := img.Manifest()
	if err != nil {
		return "", err
	}
	digest, err := img.Digest()
	if err != nil {
		return "", err
	}
	mediaType, err := img.MediaType()
	if err != nil {
		return "", err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return "", err
	}
	layers, err := img.Layers()
	if err != nil {
		return "", err
	}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{{
		MediaType: mediaType, Size: int64(len(raw)), Digest: digest,
		Annotations: map[string]string{nameAnnotation: ref},
	}}}
	docker := dockerManifest{Config: blobPath(manifest.Config.Digest), RepoTags: []string{ref}}
	for _, l := range manifest.Layers {
		docker.Layers = append(docker.Layers, blobPath(l.Digest))
	}
	if err := a.json("oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}); err != nil {
		return "", err
	}
	if err := a.json("index.json", index); err != nil {
		return "", err
	}
	if err := a.json("manifest.json", []dockerManifest{docker}); err != nil {
		return "", err
	}
	if err := a.bytes(blobPath(digest), raw); err != nil {
		return "", err
	}
	if err := a.bytes(blobPath(manifest.Config.Digest), config); err != nil {
		return "", err
	}
	for i, l := range layers {
		if err := a.layer(blobPath(manifest.Layers[i].Digest), manifest.Layers[i].Size, l); err != nil {
			return "", err
		}
	}
	return digest.String(), a.tw.Close()
}

func blobPath(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

func (a *archive) json(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return a.bytes(name, data)
}

func (a *archive) bytes(name string, data []byte) error {
	return a.file(name, int64(len(data)), bytes.NewReader(data))
}

// layer writes a layer's blob to the archive, once per archive. Reading a remote layer checks its digest.
func (a *archive) layer(name string, size int64, l v1.Layer) error {
	if a.seen[name] {
		return nil
	}
	r, err := l.Compressed()
	if err != nil {
		return err
	}
	defer r.Close()
	return a.file(name, size, r)
}

func (a *archive) file(name string, size int64, r io.Reader) error {
	a.seen[name] = true
	h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: size, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	if err := a.tw.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(a.tw, contextReader{a.ctx, r})
	return err
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
