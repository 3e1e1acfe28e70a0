package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file or a folder in an archive or a package.
type entry struct {
	name string // with slashes, but not at the start; a folder's name ends with one
	mode int64
	data []byte
}

// sorted returns the entries, sorted by name.
func sorted(entries []entry) []entry {
	return slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
}

// writeTar writes a tar with the entries in the order of their names. All files belong to root and have the same time.
func writeTar(w io.Writer, entries []entry, when time.Time) error {
	tw := tar.NewWriter(w)
	for _, e := range sorted(entries) {
		h := &tar.Header{Name: e.name, Typeflag: tar.TypeReg, Mode: e.mode, Size: int64(len(e.data)), ModTime: when, Uname: "root", Gname: "root", Format: tar.FormatPAX}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if _, err := tw.Write(e.data); err != nil {
			return err
		}
	}
	return tw.Close()
}

// tarGz returns a tar, compressed with gzip, in which all entries are below a folder.
func tarGz(folder string, entries []entry, when time.Time) ([]byte, error) {
	var below []entry
	for _, e := range entries {
		e.name = path.Join(folder, e.name)
		below = append(below, e)
	}
	var out bytes.Buffer
	zw, err := gzip.NewWriterLevel(&out, gzip.BestCompression) // its header has no time and no name
	if err != nil {
		return nil, err
	}
	if err := writeTar(zw, below, when); err != nil {
		return nil, err
	}
	err = zw.Close()
	return out.Bytes(), err
}

// gz compresses data with gzip.
func gz(data []byte) ([]byte, error) {
	var out bytes.Buffer
	zw, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := zw.Write(data); err != nil {
		return nil, err
	}
	err = zw.Close()
	return out.Bytes(), err
}

// archives creates an archive for each platform. Users unpack the archive below a prefix.
func (b *build) archives(ctx context.Context) error {
	if err := b.needs("paictl"); err != nil {
		return err
	}
	for _, p := range b.list() {
		entries, err := b.installation(ctx, p)
		if err != nil {
			return err
		}
		name := filepath.Base(b.program("paictl", p))
		data, err := tarGz(name, entries, b.when)
		if err != nil {
			return err
		}
		if err := os.WriteFile(b.file(name+".tar.gz", "archive"), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
