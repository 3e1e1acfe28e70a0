// Package oci makes container images without a container engine and stores them as archives.
// In: files, or an image in a registry. Out: one tar archive that "ctr images import" reads.
// The same files always result in the same bytes, because times are fixed, names are sorted and the owner is always 0.
package oci

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
)

// Entry is one entry of a layer: a directory, a symbolic link, or a file. The content of a file is in a file on this machine or in memory.
type Entry struct {
	// Path is the entry's path in the layer, without a leading slash: "usr/local/bin/etcd".
	Path string
	// Mode holds the permission bits. Setuid, setgid and sticky have the values of the tar format.
	Mode int64
	// Dir means that the entry is a directory. Link is the target of a symbolic link.
	Dir  bool
	Link string
	// Source is the path of a file on this machine that contains the content. If Source is empty, Data is the content.
	Source string
	Data   []byte
}

// layer is a v1.Layer whose blob is stored in a file.
type layer struct {
	file           string
	digest, diffID v1.Hash
	size           int64
}

// NewLayer makes a layer and stores its blob in file, which must exist until the image is written. It adds missing parent directories. If two entries
// have the same path, the later entry is used. The blob is compressed with zstd to about a third of its size. zstd takes less CPU time than gzip to
// unpack.
func NewLayer(file string, entries []Entry) (v1.Layer, error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("make layer: %w", err)
	}
	defer f.Close()
	blob, plain, size := sha256.New(), sha256.New(), &counter{}
	// Use one goroutine, so that the same input results in the same blocks.
	zw, err := zstd.NewWriter(io.MultiWriter(f, blob, size), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("make layer: %w", err)
	}
	if err := writeTar(io.MultiWriter(zw, plain), normalise(entries)); err != nil {
		return nil, err
	}
	if err := zw.Close(); err != nil {
		return nil, fmt.Errorf("make layer: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("make layer: %w", err)
	}
	return &layer{file: file, digest: sha256Hash(blob), diffID: sha256Hash(plain), size: size.n}, nil
}

func sha256Hash(h hash.Hash) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))}
}

func normalise(entries []Entry) []Entry {
	byPath := map[string]Entry{}
	for _, e := range entries {
		e.Path = strings.Trim(path.Clean("/"+e.Path), "/")
		if e.Path == "" {
			continue
		}
		if old, ok := byPath[e.Path]; ok && old.Dir && e.Dir {
			continue
		}
		byPath[e.Path] = e
	}
	for _, e := range entries {
		for dir := path.Dir(strings.Trim(path.Clean("/"+e.Path), "/")); dir != "."; dir = path.Dir(dir) {
			if _, ok := byPath[dir]; !ok {
				byPath[dir] = Entry{Path: dir, Dir: true, Mode: 0o755}
			}
		}
	}
	out := make([]Entry, 0, len(byPath))
	for _, e := range byPath {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func writeTar(w io.Writer, entries []Entry) error {
	tw := tar.NewWriter(w)
	for _, e := range entries {
		if err := e.write(tw); err != nil {
			return fmt.Errorf("add %s to a layer: %w", e.Path, err)
		}
	}
	return tw.Close()
}

func (e Entry) write(tw *tar.Writer) error {
	h := &tar.Header{Name: e.Path, Mode: e.Mode, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	switch {
	case e.Dir:
		h.Typeflag, h.Name = tar.TypeDir, e.Path+"/"
	case e.Link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.Link, 0o777
	case e.Source != "":
		return e.writeFile(tw, h)
	default:
		h.Typeflag, h.Size = tar.TypeReg, int64(len(e.Data))
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := tw.Write(e.Data)
	return err
}

func (e Entry) writeFile(tw *tar.Writer, h *tar.Header) error {
	f, err := os.Open(e.Source)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, fi.Size()
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(tw, f)
	return err
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// Digest returns the checksum of the blob.
func (l *layer) Digest() (v1.Hash, error) { return l.digest, nil }

// DiffID returns the checksum of the uncompressed tar archive.
func (l *layer) DiffID() (v1.Hash, error) { return l.diffID, nil }

// Compressed returns a reader of the blob.
func (l *layer) Compressed() (io.ReadCloser, error) { return os.Open(l.file) }

// Uncompressed returns a reader of the uncompressed tar archive.
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	f, err := os.Open(l.file)
	if err != nil {
		return nil, err
	}
	zr, err := zstd.NewReader(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &unpacked{zr, f}, nil
}

type unpacked struct {
	*zstd.Decoder
	f *os.File
}

func (u *unpacked) Close() error {
	u.Decoder.Close()
	return u.f.Close()
}

// Size returns the length of the blob in bytes.
func (l *layer) Size() (int64, error) { return l.size, nil }

// MediaType returns the type of a tar archive compressed with zstd.
func (l *layer) MediaType() (types.MediaType, error) { return types.OCILayerZStd, nil }
