// Package driver manages the packages of NVIDIA's driver in a bundle, for machines without internet.
// In: .deb files of the operator. Out: the files in the bundle, the drivers that they contain, and the packages that one machine's driver needs, with
// an index for apt.
package driver

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pault.ag/go/debian/control"
	"pault.ag/go/debian/deb"
	"pault.ag/go/debian/dependency"
	"pault.ag/go/debian/version"

	"github.com/openpai/paictl/pkg/hint"
)

// Package holds the metadata of a .deb file.
type Package struct {
	Name, Version, Arch string
	// Control is the text of the package's control file, which has one paragraph.
	Control string

	depends  []dependency.Relation // including Pre-Depends
	provides []string
	version  version.Version
}

const (
	// A control archive contains a few text files and scripts. A larger archive is invalid or an attack on memory or time.
	maxControl  = 16 << 20
	maxUnpacked = 64 << 20
	// mostText limits the size of the control file, because the time for parsing grows with the square of its size.
	mostText = 128 << 10
)

// The allowed characters in a package's name, version and architecture, according to Debian's policy. Names of files and arguments of commands
// contain these values.
var (
	nameOf    = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	versionOf = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+:~-]*$`)
	archOf    = regexp.MustCompile(`^[a-z0-9-]+$`)
)

// Read reads the metadata of a .deb file.
func Read(file string) (Package, error) {
	// Check the type first, because opening a pipe may block forever.
	switch info, err := os.Stat(file); {
	case err != nil:
		return Package{}, fmt.Errorf("read package: %w", err)
	case !info.Mode().IsRegular():
		return Package{}, hint.Errorf("give .deb files only", "%s is not a file", filepath.Base(file))
	}
	f, err := os.Open(file)
	if err != nil {
		return Package{}, fmt.Errorf("read package: %w", err)
	}
	defer f.Close()
	p, err := read(f)
	if err != nil {
		return Package{}, hint.Errorf("give .deb files only; if a file is incomplete, download it again", "%s is not a Debian package: %w", filepath.Base(file), err)
	}
	return p, nil
}

// read reads only the first two members of the archive. deb(5) defines their names.
func read(in io.ReaderAt) (Package, error) {
	archive, err := deb.LoadAr(in)
	if err != nil {
		return Package{}, err
	}
	first, err := archive.Next()
	if err != nil {
		return Package{}, err
	}
	if format, err := io.ReadAll(io.LimitReader(first.Data, 4)); err != nil || first.Name != "debian-binary" || !bytes.HasPrefix(format, []byte("2.")) {
		return Package{}, errors.New("it doesn't begin with debian-binary 2.x")
	}
	second, err := archive.Next()
	if err != nil {
		return Package{}, err
	}
	if !slices.Contains([]string{"control.tar", "control.tar.gz", "control.tar.xz", "control.tar.zst"}, second.Name) || second.Size <= 0 || second.Size > maxControl {
		return Package{}, errors.New("its second part is not a control archive")
	}
	text, err := controlOf(second)
	if err != nil {
		return Package{}, err
	}
	return parse(text)
}

// controlOf returns the control file in a control archive. It reads the archive to its end, because a decompressor may read ahead.
func controlOf(e *deb.ArEntry) ([]byte, error) {
	z, err := deb.DecompressorFor(path.Ext(e.Name))(e.Data)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	limited := io.LimitReader(z, maxUnpacked)
	defer func() { _, _ = io.Copy(io.Discard, limited) }()
	archive := tar.NewReader(limited)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it has no control file")
		}
		if err != nil {
			return nil, err
		}
		if path.Clean("/"+h.Name) == "/control" {
			if h.Size > mostText {
				return nil, errors.New("its control file is too long")
			}
			return io.ReadAll(io.LimitReader(archive, mostText))
		}
	}
}

// parse parses a control file with one paragraph. It rejects further paragraphs, because an index would list them as separate packages.
func parse(text []byte) (Package, error) {
	if first := firstParagraph(string(text)); !strings.Contains("\n"+first, "\nPackage:") || strings.HasPrefix(first, "-") {
		return Package{}, errors.New("its control file doesn't begin with a paragraph that names the package") // a signed file, such as a .dsc
	}
	reader, err := control.NewParagraphReader(bytes.NewReader(text), nil)
	if err != nil {
		return Package{}, err
	}
	paragraph, err := reader.Next()
	if err != nil {
		return Package{}, err
	}
	v := paragraph.Values
	p := Package{Name: v["Package"], Version: v["Version"], Arch: v["Architecture"], Control: firstParagraph(string(text))}
	switch {
	case !nameOf.MatchString(p.Name):
		return Package{}, fmt.Errorf("its Package is %q", p.Name)
	case !versionOf.MatchString(p.Version):
		return Package{}, fmt.Errorf("its Version is %q", p.Version)
	case !archOf.MatchString(p.Arch):
		return Package{}, fmt.Errorf("its Architecture is %q", p.Arch)
	}
	if p.version, err = version.Parse(p.Version); err != nil {
		return Package{}, err
	}
	for _, field := range []string{"Pre-Depends", "Depends"} {
		relations, err := relationsOf(v[field])
		if err != nil {
			return Package{}, fmt.Errorf("its %s: %w", field, err)
		}
		p.depends = append(p.depends, relations...)
	}
	provides, err := relationsOf(v["Provides"])
	if err != nil {
		return Package{}, fmt.Errorf("its Provides: %w", err)
	}
	for _, r := range provides {
		for _, one := range r.Possibilities {
			p.provides = append(p.provides, one.Name)
		}
	}
	return p, nil
}

func relationsOf(field string) ([]dependency.Relation, error) {
	if strings.TrimSpace(field) == "" {
		return nil, nil
	}
	d, err := dependency.Parse(field)
	if err != nil {
		return nil, err
	}
	return d.Relations, nil
}

// firstParagraph returns the text before the first empty line, without the fields that an index adds itself.
func firstParagraph(text string) string {
	var b strings.Builder
	skip := false
	for line := range strings.Lines(strings.TrimLeft(text, "\r\n")) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			break
		}
		if line[0] != ' ' && line[0] != '\t' {
			field, _, _ := strings.Cut(line, ":")
			switch strings.ToLower(strings.TrimSpace(field)) {
			case "filename", "size", "md5sum", "sha1", "sha256", "sha512":
				skip = true
			default:
				skip = false
			}
		}
		if !skip {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// compare compares two versions in dpkg's order. If a version is invalid, it compares them as text.
func compare(a, b string) int {
	x, errX := version.Parse(a)
	y, errY := version.Parse(b)
	if errX != nil || errY != nil {
		return strings.Compare(a, b)
	}
	return version.Compare(x, y)
}
