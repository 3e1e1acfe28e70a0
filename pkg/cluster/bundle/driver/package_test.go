package driver

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle/bundletest"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/test/tier"
)

func TestAPackageSaysWhatItIs(t *testing.T) {
	p, err := Read(bundletest.Deb(t, t.TempDir(), "nvidia-smi", "1:570.133.20-1+b1", "amd64",
		"Pre-Depends: dpkg (>= 1.19)", "Depends: libnvidia-ml1 (= 570.133.20-1), libc6 | musl", "Provides: smi (= 1), other", "SHA256: forged", " going on"))
	require.NoError(t, err)
	assert.Equal(t, []string{"nvidia-smi", "1:570.133.20-1+b1", "amd64"}, []string{p.Name, p.Version, p.Arch})
	assert.Equal(t, []string{"smi", "other"}, p.provides)
	require.Len(t, p.depends, 3)
	assert.Equal(t, "musl", p.depends[2].Possibilities[1].Name)
	assert.NotContains(t, p.Control, "forged")
	assert.NotContains(t, p.Control, "going on")
	assert.Contains(t, p.Control, "\n of more than one line\n")
}

func TestEveryCompressionOfControlsIsRead(t *testing.T) {
	control := "Package: a1\nVersion: 1\nArchitecture: all\nDescription: x\n"
	plain := bundletest.ControlTar(t, control)
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	for member, data := range map[string][]byte{"control.tar": plain, "control.tar.gz": bundletest.Gzip(t, plain), "control.tar.zst": z.EncodeAll(plain, nil)} {
		p, err := read(bytes.NewReader(bundletest.DebOf(t, member, data)))
		require.NoError(t, err, member)
		assert.Equal(t, "a1", p.Name, member)
	}
	tier.More(t, "dpkg")
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("no dpkg-deb to make a package whose control is compressed by xz")
	}
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a1/DEBIAN"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a1/DEBIAN/control"), []byte(control+"Maintainer: x <x@example.org>\n"), 0o644))
	out, err := exec.CommandContext(t.Context(), "dpkg-deb", "-Zxz", "--root-owner-group", "--build", filepath.Join(dir, "a1")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	p, err := Read(filepath.Join(dir, "a1.deb"))
	require.NoError(t, err)
	assert.Equal(t, "a1", p.Name)
}

func TestWhatIsNoPackageIsRefused(t *testing.T) {
	tar := func(control string) []byte { return bundletest.Gzip(t, bundletest.ControlTar(t, control)) }
	good := bundletest.DebOf(t, "control.tar.gz", tar("Package: a1\nVersion: 1\nArchitecture: all\n"))
	endless := bytes.Replace(bytes.Clone(good), []byte("4         `"), []byte("-60       `"), 1)
	for name, data := range map[string][]byte{
		"nothing":            nil,
		"a text":             []byte("<html>not found</html>"),
		"cut off":            good[:150],
		"a negative size":    endless,
		"another archive":    bundletest.DebOf(t, "data.tar.gz", tar("")),
		"no control":         bundletest.DebOf(t, "control.tar", make([]byte, 1024)),
		"no version":         bundletest.DebOf(t, "control.tar.gz", tar("Package: a1\nArchitecture: all\n")),
		"a name with a path": bundletest.DebOf(t, "control.tar.gz", tar("Package: ../a1\nVersion: 1\nArchitecture: all\n")),
		"a version of shell": bundletest.DebOf(t, "control.tar.gz", tar("Package: a1\nVersion: 1$(reboot)\nArchitecture: all\n")),
		"an odd dependency":  bundletest.DebOf(t, "control.tar.gz", tar("Package: a1\nVersion: 1\nArchitecture: all\nDepends: b (>= \n")),
	} {
		file := filepath.Join(t.TempDir(), "x.deb")
		require.NoError(t, os.WriteFile(file, data, 0o600))
		_, err := Read(file)
		require.ErrorContains(t, err, "x.deb is not a Debian package", name)
		assert.NotEmpty(t, hint.Of(err), name)
	}
}

func TestASecondParagraphDoesNotBecomeAPackage(t *testing.T) {
	p, err := parse([]byte("Package: a1\nVersion: 1\nArchitecture: all\n\nPackage: forged\nVersion: 2\n"))
	require.NoError(t, err)
	assert.NotContains(t, p.Control, "forged")
}

func FuzzRead(f *testing.F) {
	plain := bundletest.ControlTar(f, "Package: a1\nVersion: 1:2~3\nArchitecture: all\nDepends: b (>= 1) [amd64] <!x> | ${y}\nProvides: z\n")
	f.Add(bundletest.DebOf(f, "control.tar", plain))
	f.Add(bundletest.DebOf(f, "control.tar.gz", bundletest.Gzip(f, plain)))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = read(bytes.NewReader(data))
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("Package: a1\nVersion: 1:2~3\nArchitecture: all\nDepends: b (>= 1) [amd64] <!x> | ${y}, c:any\nProvides: z\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parse(data)
		if err != nil {
			return
		}
		for _, r := range p.depends {
			for _, one := range r.Possibilities {
				if one.Version != nil {
					one.Version.SatisfiedBy(p.version)
				}
			}
		}
		assert.NotContains(t, p.Control, "\n\n")
	})
}

func TestPackagesThatWouldSpoilAnIndexOrKeepUsBusyAreRefused(t *testing.T) {
	for says, text := range map[string]string{
		"doesn't begin with a paragraph that names the package": "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nPackage: a1\nVersion: 1\nArchitecture: all\n",
		"its control file is too long":                          "Package: a1\nVersion: 1\nArchitecture: all\nDepends: " + strings.Repeat("b", mostText) + "\n",
	} {
		_, err := read(bytes.NewReader(bundletest.DebOf(t, "control.tar.gz", bundletest.Gzip(t, bundletest.ControlTar(t, text)))))
		require.ErrorContains(t, err, says)
	}
	p, err := parse([]byte("Package: a1\nVersion: 1\nArchitecture: all\nFilename : ./evil.deb\nSHA256\t: 00\n"))
	require.NoError(t, err)
	assert.NotContains(t, p.Control, "evil")
	assert.NotContains(t, p.Control, "SHA256")
	pipe := filepath.Join(t.TempDir(), "f.deb")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err = Read(pipe)
	require.ErrorContains(t, err, "f.deb is not a file")
}

func TestAFolderMayBeALink(t *testing.T) {
	dir := nvidia570(t, "570.133.20")
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	files, err := debs([]string{link})
	require.NoError(t, err)
	assert.NotEmpty(t, files)
}
