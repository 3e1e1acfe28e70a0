package oci

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Archive is an image in a file that WriteArchive has written. Its manifest has the same bytes as the manifest in the file, so the image has the same
// digest in a registry and on nodes.
type Archive struct {
	v1.Image
	// Ref is the image's reference in the archive.
	Ref string

	f *os.File
}

// OpenArchive opens a file that WriteArchive has written. The file stays open until Close, because blobs are read from it.
func OpenArchive(file string) (*Archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("open image: %w", err)
	}
	a, err := readArchive(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open image %s: %w", filepath.Base(file), err)
	}
	return a, nil
}

// Close closes the file.
func (a *Archive) Close() error { return a.f.Close() }

func readArchive(f *os.File) (*Archive, error) {
	c := &archived{members: map[string]*io.SectionReader{}}
	tr := tar.NewReader(f)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		// The reader has read exactly the header, so the content begins here.
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		c.members[h.Name] = io.NewSectionReader(f, at, h.Size)
	}
	var index v1.IndexManifest
	data, err := c.member("index.json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("index.json: %w", err)
	}
	if len(index.Manifests) != 1 {
		return nil, fmt.Errorf("index.json lists %d images, want 1", len(index.Manifests))
	}
	c.desc = index.Manifests[0]
	if err := c.read(); err != nil {
		return nil, err
	}
	img, err := partial.CompressedToImage(c)
	if err != nil {
		return nil, err
	}
	return &Archive{Image: img, Ref: c.desc.Annotations[nameAnnotation], f: f}, nil
}

// archived implements the interface of the registry library for an image in an archive.
type archived struct {
	members     map[string]*io.SectionReader
	desc        v1.Descriptor
	manifest    v1.Manifest
	rawManifest []byte
	rawConfig   []byte
}

func (c *archived) read() error {
	var err error
	if c.rawManifest, err = c.member(blobPath(c.desc.Digest)); err != nil {
		return err
	}
	got, _, err := v1.SHA256(bytes.NewReader(c.rawManifest))
	if err != nil {
		return err
	}
	if got != c.desc.Digest {
		return fmt.Errorf("its manifest has digest %s, but index.json says %s", got, c.desc.Digest)
	}
	if err := json.Unmarshal(c.rawManifest, &c.manifest); err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	c.rawConfig, err = c.member(blobPath(c.manifest.Config.Digest))
	return err
}

func (c *archived) member(name string) ([]byte, error) {
	r, ok := c.members[name]
	if !ok {
		return nil, fmt.Errorf("it contains no %s", name)
	}
	return io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
}

// RawManifest returns the bytes of the manifest.
func (c *archived) RawManifest() ([]byte, error) { return c.rawManifest, nil }

// RawConfigFile returns the bytes of the configuration.
func (c *archived) RawConfigFile() ([]byte, error) { return c.rawConfig, nil }

// MediaType returns the media type of the manifest.
func (c *archived) MediaType() (types.MediaType, error) { return c.desc.MediaType, nil }

// LayerByDigest returns the layer with a digest, or an error if the image doesn't contain the layer.
func (c *archived) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	for _, d := range c.manifest.Layers {
		if r, ok := c.members[blobPath(h)]; ok && d.Digest == h {
			return &blob{desc: d, r: r}, nil
		}
	}
	return nil, fmt.Errorf("it contains no layer %s", h)
}

type blob struct {
	desc v1.Descriptor
	r    *io.SectionReader
}

// Digest returns the checksum of the blob.
func (b *blob) Digest() (v1.Hash, error) { return b.desc.Digest, nil }

// Size returns the length of the blob in bytes.
func (b *blob) Size() (int64, error) { return b.desc.Size, nil }

// MediaType returns the layer's media type from the manifest.
func (b *blob) MediaType() (types.MediaType, error) { return b.desc.MediaType, nil }

// Compressed returns a reader of the whole blob.
func (b *blob) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(b.r, 0, b.r.Size())), nil
}
