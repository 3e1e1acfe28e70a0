package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/version"
)

// File returns Helm's file name for the archive.
func (c Chart) File() string { return c.Name + "-" + c.Version + ".tgz" }

// Artifact returns the chart's entry for a bundle's manifest, without the file's checksum and size.
func (c Chart) Artifact() bundle.Artifact {
	return bundle.Artifact{
		Name: c.Name, Version: c.Version, Kind: bundle.KindChart, Path: bundle.PathOf(bundle.KindChart, c.File()),
		Source: "paictl " + version.Version,
	}
}

// Archive packs the chart as "helm package" does: a tar.gz that contains one folder with the chart's name. The same files always result in the same
// bytes.
func (c Chart) Archive() ([]byte, error) {
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	err := fs.WalkDir(c.files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(c.files, name)
		if err != nil {
			return err
		}
		h := &tar.Header{
			Name: c.Name + "/" + name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(data)),
			ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
		}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		_, err = tw.Write(data)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("pack chart %s: %w", c.Name, err)
	}
	if err := tw.Close(); err != nil {
		return nil, fmt.Errorf("pack chart %s: %w", c.Name, err)
	}
	if err := zw.Close(); err != nil {
		return nil, fmt.Errorf("pack chart %s: %w", c.Name, err)
	}
	return buf.Bytes(), nil
}

func sorted(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
