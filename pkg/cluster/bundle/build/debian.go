package build

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/bundle/oci"
	"github.com/openpai/paictl/pkg/hint"
)

// scriptPackages returns packages that only the installation scripts of other packages need. The build doesn't run these scripts, so apt must
// consider the packages installed. Otherwise apt would add Perl and many other packages.
func scriptPackages() []string {
	return []string{"adduser", "debconf", "dpkg", "init-system-helpers", "openssl", "usrmerge"}
}

func status() string {
	var b strings.Builder
	for _, p := range scriptPackages() {
		fmt.Fprintf(&b, "Package: %s\nStatus: install ok installed\nVersion: 9999\nArchitecture: all\nDescription: assumed\n\n", p)
	}
	return b.String()
}

// downloadDebs downloads the packages and all their dependencies with apt, as if only scriptPackages were installed. apt uses the machine's own
// sources and checks their signatures. It doesn't need root.
func downloadDebs(ctx context.Context, dir string, packages []string) ([]string, error) {
	archives := filepath.Join(dir, "archives")
	if err := os.RemoveAll(archives); err != nil {
		return nil, fmt.Errorf("download packages: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(archives, "partial"), 0o755); err != nil {
		return nil, fmt.Errorf("download packages: %w", err)
	}
	statusFile := filepath.Join(dir, "status")
	if err := os.WriteFile(statusFile, []byte(status()), 0o644); err != nil {
		return nil, fmt.Errorf("download packages: %w", err)
	}
	args := []string{
		"-o", "Dir::State::status=" + statusFile,
		"-o", "Dir::State::extended_states=" + filepath.Join(dir, "extended_states"),
		"-o", "Dir::Cache=" + dir,
		"-o", "Dir::Cache::archives=" + archives,
		"-o", "Debug::NoLocking=1",
		"-o", "APT::Sandbox::User=root",
		"-o", "APT::Install-Recommends=0",
		"-o", "Dpkg::Use-Pty=0",
		"-qq", "-y", "--download-only", "install",
	}
	cmd := exec.CommandContext(ctx, "apt-get", append(args, packages...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, hint.Errorf("update apt's package lists, as root: apt-get update",
			"download packages %s: apt-get: %w: %s", strings.Join(packages, " "), err, strings.TrimSpace(string(out)))
	}
	debs, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil || len(debs) == 0 {
		return nil, fmt.Errorf("download packages: apt-get left no package in %s", archives)
	}
	slices.Sort(debs)
	return debs, nil
}

func debNames(ctx context.Context, debs []string) ([]string, error) {
	var names []string
	for _, deb := range debs {
		out, err := exec.CommandContext(ctx, "dpkg-deb", "--show", "--showformat=${Package}=${Version}", deb).Output()
		if err != nil {
			return nil, fmt.Errorf("read package %s: %w", filepath.Base(deb), err)
		}
		names = append(names, string(out))
	}
	slices.Sort(names)
	return names, nil
}

// unpackDebs returns the files of the packages that a container needs. The result is a tree with /bin, /sbin and /lib merged into /usr.
func unpackDebs(ctx context.Context, debs []string) ([]oci.Entry, error) {
	var entries []oci.Entry
	for _, deb := range debs {
		e, err := unpackDeb(ctx, deb)
		if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", filepath.Base(deb), err)
		}
		entries = append(entries, e...)
	}
	entries = certificates(entries)
	return append(entries, links(entries)...), nil
}

// unpackDeb reads the files of one package with dpkg-deb, because dpkg-deb supports all compression formats of packages.
func unpackDeb(ctx context.Context, deb string) (entries []oci.Entry, err error) {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	entries, readErr := readTar(out)
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("dpkg-deb: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return entries, readErr
}

func readTar(r io.Reader) ([]oci.Entry, error) {
	var entries []oci.Entry
	byPath := map[string]int{}
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		e := oci.Entry{Path: usrMerged(h.Name), Mode: h.Mode & 0o7777}
		if !needed(e.Path) {
			continue
		}
		switch h.Typeflag {
		case tar.TypeReg:
			if e.Data, err = io.ReadAll(tr); err != nil {
				return nil, err
			}
		case tar.TypeSymlink:
			e.Link = h.Linkname
		case tar.TypeLink:
			i, ok := byPath[usrMerged(h.Linkname)]
			if !ok {
				return nil, fmt.Errorf("%s is a hard link to %s, which is not before it", h.Name, h.Linkname)
			}
			e.Mode, e.Data = entries[i].Mode, entries[i].Data
		default:
			continue // directories are created with their files
		}
		byPath[e.Path] = len(entries)
		entries = append(entries, e)
	}
}

// usrMerged returns the path of a package's file on a system with a merged /usr.
func usrMerged(name string) string {
	p := strings.Trim(path.Clean("/"+name), "/")
	top, _, _ := strings.Cut(p, "/")
	if slices.Contains([]string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}, top) {
		return "usr/" + p
	}
	return p
}

// needed reports whether programs in images may read a file. It returns false for documentation, translations, boot scripts, character set
// converters, OpenSSL's plug-ins, and time zones with leap seconds.
func needed(p string) bool {
	within := func(dirs ...string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(p, dir) })
	}
	if within("usr/share/zoneinfo/posix/", "usr/share/zoneinfo/right/") {
		return false
	}
	if within("usr/share/", "usr/lib/systemd/", "usr/lib/udev/", "etc/init.d/", "etc/default/", "etc/logrotate.d/", "var/") &&
		!within("usr/share/iptables/", "usr/share/zoneinfo/", "usr/share/prometheus/", certificateDir) {
		return false
	}
	for _, part := range []string{"/gconv/", "/engines-", "/ossl-modules/", "/audit/"} {
		if strings.Contains(p, part) {
			return false
		}
	}
	return true
}

const (
	certificateDir  = "usr/share/ca-certificates/"
	certificateFile = "etc/ssl/certs/ca-certificates.crt"
)

// certificates merges the certificate files into the single file that programs read. The package's installation script would do the same.
func certificates(entries []oci.Entry) []oci.Entry {
	var rest, found []oci.Entry
	for _, e := range entries {
		if strings.HasPrefix(e.Path, certificateDir) {
			found = append(found, e)
		} else {
			rest = append(rest, e)
		}
	}
	if len(found) == 0 {
		return entries
	}
	slices.SortFunc(found, func(a, b oci.Entry) int { return strings.Compare(a.Path, b.Path) })
	var all []byte
	for _, e := range found {
		all = append(append(all, bytes.TrimSpace(e.Data)...), '\n')
	}
	return append(rest, oci.Entry{Path: certificateFile, Mode: 0o644, Data: all})
}

// links returns the symbolic links that the installation of the packages would create. These are the links of the merged /usr, and the link from
// iptables to its nftables version.
func links(entries []oci.Entry) []oci.Entry {
	has := func(prefix string) bool {
		return slices.ContainsFunc(entries, func(e oci.Entry) bool { return strings.HasPrefix(e.Path, prefix) })
	}
	var out []oci.Entry
	for _, top := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		if has("usr/" + top + "/") {
			out = append(out, oci.Entry{Path: top, Link: "usr/" + top})
		}
	}
	if !has("usr/sbin/xtables-nft-multi") {
		return out
	}
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			out = append(out, oci.Entry{Path: "usr/sbin/" + family + suffix, Link: "xtables-nft-multi"})
		}
	}
	return out
}

// debianTag returns an image tag with a package's version and distribution. A tag can't contain ":", "+" and "~", so 0.25.0-1+b4 in debian12
// becomes 0.25.0-1_b4-debian12.
func debianTag(version, distribution string) string {
	if _, after, ok := strings.Cut(version, ":"); ok {
		version = after // the epoch orders packages and is not part of the program's version
	}
	tag := strings.NewReplacer("+", "_", "~", "_").Replace(version)
	if distribution == "" {
		return tag
	}
	return tag + "-" + distribution
}

// distribution returns the name of this machine's distribution, such as debian12. It returns "" if /etc/os-release contains no name.
func distribution() string {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return ""
	}
	return distributionOf(string(data))
}

func distributionOf(osRelease string) string {
	values := map[string]string{}
	for line := range strings.Lines(osRelease) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			values[name] = strings.Trim(value, `"'`)
		}
	}
	return values["ID"] + values["VERSION_ID"]
}
