// Package backup defines the archive of a whole cluster. The archive contains parts with their checksums, and is encrypted with age.
// In: readers of the parts, keys. Out: an archive, and the parts of an archive. pkg/cluster collects and restores the parts.
package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Format is the version of the archive format that this package writes. The package can't read later versions.
const Format = 1

// The names of the first and the last file of an archive. Neither file is a part.
const (
	headName     = "paictl-backup.json"
	manifestName = "manifest.json"
)

// Head is the content of an archive's first file.
type Head struct {
	Format  int    `json:"format"`
	Paictl  string `json:"paictl"`
	Cluster string `json:"cluster"`
	// ID distinguishes clusters that have the same name.
	ID string `json:"id,omitempty"`
	// UID is the UID of the namespace kube-system, or "" in older archives. A restored cluster keeps the UID.
	UID  string    `json:"uid,omitempty"`
	Time time.Time `json:"time"`
}

// Manifest is the content of an archive's last file.
type Manifest struct {
	Head
	Kubernetes string    `json:"kubernetes"`
	Machines   []Machine `json:"machines"`
	Parts      []Part    `json:"parts"`
	// Missing lists the parts that the cluster has but the archive doesn't contain.
	Missing []Missing `json:"missing,omitempty"`
}

// Machine describes one machine of the saved cluster.
type Machine struct {
	Name  string   `json:"name"`
	IP    string   `json:"ip"`
	Roles []string `json:"roles"`
}

// Part is one file of an archive. Size is in bytes.
type Part struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Missing is a part that isn't in an archive, with the reason.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Writer writes the parts of an archive and its manifest.
type Writer struct {
	manifest Manifest
	tar      *tar.Writer
	ends     []io.Closer // the writers below tar, in the order of closing
	err      error
}

// NewWriter starts an archive with head as its first file. The caller must call Close before it closes w.
func NewWriter(w io.Writer, seal Seal, head Head) (*Writer, error) {
	head.Format = Format
	out := &Writer{manifest: Manifest{Head: head}}
	sealed, err := seal.wrap(w)
	if err != nil {
		return nil, err
	}
	packed, err := zstd.NewWriter(sealed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("compress the archive: %w", err)
	}
	out.tar, out.ends = tar.NewWriter(packed), []io.Closer{packed, sealed}
	text, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", headName, err)
	}
	return out, out.put(headName, int64(len(text)), bytes.NewReader(text))
}

// Add writes a part of size bytes.
func (w *Writer) Add(name string, size int64, r io.Reader) error {
	if w.err != nil {
		return w.err
	}
	sum := sha256.New()
	if err := w.put(name, size, io.TeeReader(r, sum)); err != nil {
		return err
	}
	w.manifest.Parts = append(w.manifest.Parts, Part{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// Lacks records in the manifest that a part couldn't be read.
func (w *Writer) Lacks(what string, why error) {
	w.manifest.Missing = append(w.manifest.Missing, Missing{What: what, Why: why.Error()})
}

// Describe sets the version of Kubernetes and the machines in the manifest.
func (w *Writer) Describe(kubernetes string, machines []Machine) {
	w.manifest.Kubernetes, w.manifest.Machines = kubernetes, machines
}

func (w *Writer) put(name string, size int64, r io.Reader) error {
	err := w.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: w.manifest.Time, Format: tar.FormatPAX})
	if err == nil {
		// io.Copy returns an error if r has more than size bytes. The check below detects fewer bytes.
		var n int64
		n, err = io.Copy(w.tar, r)
		if err == nil && n != size {
			err = fmt.Errorf("it has %d bytes instead of %d", n, size)
		}
	}
	if err != nil {
		w.err = fmt.Errorf("write %s into the archive: %w", name, err)
	}
	return w.err
}

// Close writes the manifest and ends the archive. An archive without a manifest is invalid.
func (w *Writer) Close() (*Manifest, error) {
	if w.err != nil {
		return nil, w.err
	}
	text, err := json.MarshalIndent(w.manifest, "", "  ")
	if err == nil {
		err = w.put(manifestName, int64(len(text)), bytes.NewReader(text))
	}
	if err == nil {
		err = w.tar.Close()
	}
	for _, c := range w.ends {
		if err == nil {
			err = c.Close()
		}
	}
	if err != nil {
		w.err = errors.Join(w.err, err)
		return nil, fmt.Errorf("end the archive: %w", err)
	}
	return &w.manifest, nil
}
