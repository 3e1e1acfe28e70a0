package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/openpai/paictl"
	"github.com/openpai/paictl/templates"
)

// modules is the path of the list of modules for programs in the bundle.
const modules = "pkg/cluster/bundle/build/modules.txtar"

// pack returns the compressed files that paictl embeds: the source, the charts and the modules of the bundle. The keys are paths in the module.
// Equal input results in equal output.
func pack(root string) (map[string][]byte, error) {
	out := map[string][]byte{}
	var err error
	if out["source.archive"], err = paictl.Pack(paictl.Source()); err != nil {
		return nil, fmt.Errorf("pack the source: %w", err)
	}
	if out["templates/charts.zip"], err = packFolder(templates.Charts()); err != nil {
		return nil, fmt.Errorf("pack the charts: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(modules)))
	if err != nil {
		return nil, err
	}
	var small bytes.Buffer
	z, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	out[modules+".gz"] = small.Bytes()
	return out, nil
}

// packFolder returns a zip archive of all files. The archive contains no times, so that equal files result in equal archives.
func packFolder(files fs.FS) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = z.Close()
	return out.Bytes(), err
}
