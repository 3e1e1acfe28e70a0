package agent

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
	"github.com/klauspost/compress/zstd"
)

// driverOnDisk returns the release of the driver's libraries below root, or "" if the release is unknown. The machine uses this release after the
// next start. The loaded driver may have another release.
func driverOnDisk(root string) string {
	for _, folder := range []string{"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib"} {
		path, err := securejoin.SecureJoin(root, filepath.Join(folder, "libnvidia-ml.so.1"))
		if err != nil {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			_, release, _ := strings.Cut(filepath.Base(path), ".so.")
			if strings.Contains(release, ".") {
				return release
			}
			return ""
		}
	}
	return ""
}

// moduleRelease returns the release in a module's metadata. moduleRelease returns "" if the metadata isn't readable, for example because the module
// is compressed with xz.
func moduleRelease(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	switch filepath.Ext(file) {
	case ".gz":
		if z, err := gzip.NewReader(f); err == nil {
			return releaseIn(z)
		}
	case ".zst":
		if z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true)); err == nil {
			defer z.Close()
			return releaseIn(z)
		}
	case ".ko":
		if e, err := elf.NewFile(f); err == nil && e.Section(".modinfo") != nil {
			return releaseIn(e.Section(".modinfo").Open())
		}
	}
	return ""
}

// mostWord is longer than any release with its name, in bytes.
const mostWord = 64

// releaseIn searches the strings in a module for the release. releaseIn reads the module in parts, because the module may be very large.
func releaseIn(r io.Reader) string {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		word, err := in.ReadSlice(0)
		if release, ok := bytes.CutPrefix(bytes.TrimSuffix(word, []byte{0}), []byte("version=")); ok && len(word) < mostWord && releaseOnly.Match(release) {
			return string(release)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return ""
		}
	}
}

// releaseOnly matches a release, such as 570.133.20.
var releaseOnly = regexp.MustCompile(`^[0-9]{2,4}(\.[0-9]+)+$`)

// releaseOf returns the moduleRelease of a file, and caches the result.
func (b *nextBoot) releaseOf(path string, info fs.FileInfo) string {
	key := fmt.Sprint(path, " ", info.Size(), " ", info.ModTime().UnixNano())
	release, known := b.releases[key]
	if !known {
		release = moduleRelease(path)
		if b.releases == nil || len(b.releases) > 100 {
			b.releases = map[string]string{}
		}
		b.releases[key] = release
	}
	return release
}

// hasModule reports whether a module of the installed driver exists for a kernel. If only a module of another release exists, hasModule returns that
// release as other. A module of another release doesn't work with the current libraries.
func (b *nextBoot) hasModule(kernel string) (has bool, other string) {
	wanted := driverOnDisk(b.root)
	// An unreadable folder counts as a folder without the module.
	_ = filepath.WalkDir(filepath.Join(b.root, "lib", "modules", kernel)+"/", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !moduleFile.MatchString(e.Name()) {
			return nil //nolint:nilerr // see above
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && wanted != "" {
			if release := b.releaseOf(path, info); release != "" && release != wanted {
				other = release
				return nil
			}
		}
		has, other = true, ""
		return fs.SkipAll
	})
	return has, other
}
