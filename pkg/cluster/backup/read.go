package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/openpai/paictl/pkg/hint"
)

// The errors of reading an archive.
var (
	// ErrNone means that the file is not a backup.
	ErrNone = errors.New("it isn't a backup of paictl")
	// ErrDamaged means that the archive was changed or truncated after paictl wrote it.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrNewer means that a later paictl wrote the archive.
	ErrNewer = errors.New("the backup was written by a newer paictl")
	// ErrKey means that none of the given keys decrypts the archive.
	ErrKey = errors.New("none of the keys opens the backup")
)

// longest is the maximum size of the head and of the manifest, in bytes.
const longest = 16 << 20

// Read reads a whole archive, checks it, and calls part for each part. The function part may stop reading before the end of its reader. The caller
// must not trust the parts until Read has returned nil, because Read detects a truncated archive only at the end.
func Read(r io.Reader, keys Keys, part func(name string, size int64, r io.Reader) error) (*Manifest, error) {
	opened, err := keys.open(bufio.NewReaderSize(r, 1<<16))
	if err != nil {
		return nil, err
	}
	unpacked, err := zstd.NewReader(opened, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, damaged(err)
	}
	defer unpacked.Close()
	in := &reader{tar: tar.NewReader(unpacked), visit: part}
	if err := in.head(); err != nil {
		return nil, err
	}
	for {
		h, err := in.tar.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, damaged(errors.New("it ends before its manifest"))
		case err != nil:
			return nil, damaged(err)
		case h.Name == manifestName:
			m, err := in.manifest(h)
			if err != nil {
				return nil, err
			}
			// Read to the end, where a mark shows that the encrypted data is complete.
			if _, err := io.Copy(io.Discard, unpacked); err != nil {
				return nil, damaged(err)
			}
			return m, nil
		}
		if err := in.part(h); err != nil {
			return nil, err
		}
	}
}

type reader struct {
	tar   *tar.Reader
	visit func(name string, size int64, r io.Reader) error
	begin Head
	found []Part
}

func damaged(err error) error {
	return hint.Wrap(fmt.Errorf("%w: %w", ErrDamaged, err), "take another one: paictl cluster backup list")
}

func (r *reader) head() error {
	h, err := r.tar.Next()
	switch {
	case errors.Is(err, io.EOF):
		return ErrNone
	case err != nil:
		return damaged(err)
	case h.Name != headName:
		return ErrNone
	}
	if err := r.decode(h, &r.begin); err != nil {
		return err
	}
	if r.begin.Format > Format {
		return hint.Wrap(fmt.Errorf("%w: %s, format %d; this one reads %d", ErrNewer, r.begin.Paictl, r.begin.Format, Format),
			"use that paictl, or a later one")
	}
	return nil
}

func (r *reader) decode(h *tar.Header, into any) error {
	if h.Size > longest {
		return damaged(fmt.Errorf("%s has %d bytes", h.Name, h.Size))
	}
	text, err := io.ReadAll(r.tar)
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(text)).Decode(into)
	}
	if err != nil {
		return damaged(fmt.Errorf("%s: %w", h.Name, err))
	}
	return nil
}

func (r *reader) part(h *tar.Header) error {
	if h.Typeflag != tar.TypeReg || !fs.ValidPath(h.Name) {
		return damaged(fmt.Errorf("%q is not a valid file name", h.Name))
	}
	sum := sha256.New()
	content := io.TeeReader(r.tar, sum)
	if r.visit != nil {
		tracked := &failing{r: content}
		if err := r.visit(h.Name, h.Size, tracked); err != nil {
			if tracked.err != nil { // the visitor's error is only a consequence
				return damaged(tracked.err)
			}
			return err
		}
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return damaged(err)
	}
	r.found = append(r.found, Part{Name: h.Name, Size: h.Size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// failing is a reader that stores the error of a failed read.
type failing struct {
	r   io.Reader
	err error
}

func (f *failing) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

func (r *reader) manifest(h *tar.Header) (*Manifest, error) {
	m := &Manifest{}
	if err := r.decode(h, m); err != nil {
		return nil, err
	}
	if !m.Time.Equal(r.begin.Time) || m.Cluster != r.begin.Cluster || m.ID != r.begin.ID || m.UID != r.begin.UID || m.Format != r.begin.Format || m.Paictl != r.begin.Paictl {
		return nil, damaged(errors.New("its beginning and its end are of different backups"))
	}
	for _, p := range m.Parts {
		if !slices.Contains(r.found, p) {
			return nil, damaged(fmt.Errorf("%s is missing, or differs from its checksum", p.Name))
		}
	}
	if len(r.found) != len(m.Parts) {
		return nil, damaged(fmt.Errorf("it has %d parts, and its manifest %d", len(r.found), len(m.Parts)))
	}
	return m, nil
}
