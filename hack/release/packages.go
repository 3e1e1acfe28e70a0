package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// packages builds a deb and an rpm for each architecture of Linux.
func (b *build) packages(ctx context.Context) error {
	if err := b.needs("paictl"); err != nil {
		return err
	}
	for _, p := range b.list() {
		if p.os != "linux" {
			continue
		}
		entries, err := b.installation(ctx, p)
		if err != nil {
			return err
		}
		for _, format := range []string{"deb", "rpm"} {
			dir := filepath.Join(b.work, format+"-"+p.arch)
			name, data, err := pack(format, dir, b.version, p.arch, entries, b.when)
			if err != nil {
				return fmt.Errorf("pack %s for %s: %w", format, p.arch, err)
			}
			if err := os.WriteFile(b.file(name, format), data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// pack returns a package and its conventional file name. It writes the entries to dir before, because the library reads the contents from files.
func pack(format, dir, version, arch string, entries []entry, when time.Time) (string, []byte, error) {
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "paictl", Arch: arch, Platform: "linux", Version: strings.TrimPrefix(version, "v"), Section: "admin", Priority: "optional",
		Maintainer: "The paictl maintainers <maintainers@users.noreply.github.com>", Homepage: "https://" + module, License: "MIT",
		Description: "Makes GPU clusters and runs jobs on them\n" +
			"paictl installs Kubernetes and the services of an AI platform on machines that it reaches by SSH, and runs jobs with GPUs there.",
		MTime: when,
		Overridables: nfpm.Overridables{
			Deb: nfpm.Deb{Compression: "zstd"},
			RPM: nfpm.RPM{BuildHost: "localhost", Compression: "zstd"},
		},
	})
	for _, e := range sorted(entries) {
		data := e.data
		if strings.HasPrefix(e.name, "share/man/") {
			var err error
			if data, err = gz(data); err != nil {
				return "", nil, err
			}
			e.name += ".gz"
		}
		if e.name == "share/doc/paictl/LICENSE" && format == "deb" {
			e.name = "share/doc/paictl/copyright"
		}
		source := filepath.Join(dir, filepath.FromSlash(e.name))
		if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
			return "", nil, err
		}
		if err := os.WriteFile(source, data, 0o600); err != nil {
			return "", nil, err
		}
		info.Contents = append(info.Contents, &files.Content{
			Source: source, Destination: "/usr/" + e.name, FileInfo: &files.ContentFileInfo{Mode: fs.FileMode(e.mode), Owner: "root", Group: "root", MTime: when}, //nolint:gosec // permission bits
		})
	}
	info.DisableGlobbing = true // a file name is not a pattern
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", nil, err
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return "", nil, err
	}
	name := packager.ConventionalFileName(info)
	var out bytes.Buffer
	err = packager.Package(info, &out)
	return name, out.Bytes(), err
}
