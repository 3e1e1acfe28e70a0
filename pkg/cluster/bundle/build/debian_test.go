package build

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/oci"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/test/runnable"
	"github.com/openpai/paictl/test/tier"
)

const (
	eventually = time.Minute
	tick       = 5 * time.Millisecond
)

// tarOf returns a tar archive with the given headers. The content of a regular file is the file's name.
func tarOf(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		require.NoError(t, tw.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			_, err := tw.Write([]byte(h.Name))
			require.NoError(t, err)
		}
	}
	require.NoError(t, tw.Close())
	return buf.Bytes()
}

func writeDeb(t *testing.T, file, name, version string, data []byte) {
	t.Helper()
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: test\n", name, version)
	var ctl bytes.Buffer
	tw := tar.NewWriter(&ctl)
	require.NoError(t, tw.WriteHeader(&tar.Header{Name: "./control", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(control))}))
	_, err := tw.Write([]byte(control))
	require.NoError(t, err)
	require.NoError(t, tw.Close())

	var ar bytes.Buffer
	ar.WriteString("!<arch>\n")
	for _, m := range []struct {
		name string
		data []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar", ctl.Bytes()}, {"data.tar", data}} {
		fmt.Fprintf(&ar, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, 0, 0, 0, "100644", len(m.data))
		ar.Write(m.data)
		if len(m.data)%2 == 1 {
			ar.WriteByte('\n')
		}
	}
	require.NoError(t, os.WriteFile(file, ar.Bytes(), 0o644))
}

func needDpkg(t *testing.T) {
	t.Helper()
	tier.More(t, "dpkg")
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("skipped: this machine has no dpkg-deb")
	}
}

func TestAPackageIsUnpackedIntoMergedUsr(t *testing.T) {
	needDpkg(t)
	deb := filepath.Join(t.TempDir(), "iptables.deb")
	writeDeb(t, deb, "iptables", "1.8.9-2", tarOf(t,
		tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "./lib/libxt.so.1.0", Typeflag: tar.TypeReg, Mode: 0o644},
		tar.Header{Name: "./lib/libxt.so.1", Typeflag: tar.TypeSymlink, Linkname: "libxt.so.1.0", Mode: 0o777},
		tar.Header{Name: "./usr/sbin/xtables-nft-multi", Typeflag: tar.TypeReg, Mode: 0o4755},
		tar.Header{Name: "./usr/sbin/hard", Typeflag: tar.TypeLink, Linkname: "./usr/sbin/xtables-nft-multi"},
		tar.Header{Name: "./usr/share/doc/iptables/copyright", Typeflag: tar.TypeReg, Mode: 0o644},
		tar.Header{Name: "./usr/lib/x/gconv/A.so", Typeflag: tar.TypeReg, Mode: 0o644},
	))
	names, err := debNames(t.Context(), []string{deb})
	require.NoError(t, err)
	assert.Equal(t, []string{"iptables=1.8.9-2"}, names)

	entries, err := unpackDebs(t.Context(), []string{deb})
	require.NoError(t, err)
	byPath := map[string]oci.Entry{}
	for _, e := range entries {
		byPath[e.Path] = e
	}
	assert.Equal(t, "./lib/libxt.so.1.0", string(byPath["usr/lib/libxt.so.1.0"].Data))
	assert.Equal(t, "libxt.so.1.0", byPath["usr/lib/libxt.so.1"].Link)
	assert.Equal(t, int64(0o4755), byPath["usr/sbin/xtables-nft-multi"].Mode)
	assert.Equal(t, byPath["usr/sbin/xtables-nft-multi"].Data, byPath["usr/sbin/hard"].Data)
	assert.Equal(t, "usr/lib", byPath["lib"].Link)
	assert.Equal(t, "usr/sbin", byPath["sbin"].Link)
	assert.NotContains(t, byPath, "bin", "no link to a folder that isn't there")
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		assert.Equal(t, "xtables-nft-multi", byPath["usr/sbin/"+name].Link)
	}
	assert.NotContains(t, byPath, "usr/share/doc/iptables/copyright")
	assert.NotContains(t, byPath, "usr/lib/x/gconv/A.so")
}

func TestTheCertificatesOfAuthoritiesBecomeOneFile(t *testing.T) {
	crt := func(name, data string) oci.Entry {
		return oci.Entry{Path: certificateDir + "mozilla/" + name, Data: []byte(data)}
	}
	entries := certificates([]oci.Entry{crt("b.crt", "second"), {Path: "usr/sbin/update-ca-certificates"}, crt("a.crt", "first\n")})
	require.Len(t, entries, 2)
	assert.Equal(t, "usr/sbin/update-ca-certificates", entries[0].Path)
	assert.Equal(t, "etc/ssl/certs/ca-certificates.crt", entries[1].Path)
	assert.Equal(t, "first\nsecond\n", string(entries[1].Data))
	assert.Equal(t, int64(0o644), entries[1].Mode)

	none := []oci.Entry{{Path: "usr/bin/nft"}}
	assert.Equal(t, none, certificates(none))
}

func TestWhatAProgramReadsAtRunTimeStays(t *testing.T) {
	for path, want := range map[string]bool{
		"usr/share/zoneinfo/Europe/Berlin":                true,
		"usr/share/zoneinfo/right/Europe/Berlin":          false,
		"usr/share/prometheus/alertmanager/default.tmpl":  true,
		"usr/share/man/man1/amtool.1.gz":                  false,
		"usr/share/ca-certificates/mozilla/ACCVRAIZ1.crt": true,
		"etc/logrotate.d/prometheus-alertmanager":         false,
		"etc/init.d/prometheus-alertmanager":              false,
		"usr/bin/prometheus-alertmanager":                 true,
	} {
		assert.Equal(t, want, needed(path), path)
	}
}

func TestAPackagesVersionBecomesATag(t *testing.T) {
	for version, want := range map[string]string{
		"0.25.0-1+b4":      "0.25.0-1_b4-debian12",
		"1:1.4.7-1":        "1.4.7-1-debian12",
		"3.0.22-1~deb12u2": "3.0.22-1_deb12u2-debian12",
	} {
		assert.Equal(t, want, debianTag(version, "debian12"))
	}
	assert.Equal(t, "1.0", debianTag("1.0", ""), "a machine that doesn't say what it is")
	assert.Equal(t, "ubuntu24.04", distributionOf("NAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\nID=ubuntu\n"))
	assert.Empty(t, distributionOf(""))
}

func TestAnImageOfAPackageHasItsVersion(t *testing.T) {
	needDpkg(t)
	needCompilers(t)
	debs := t.TempDir()
	writeDeb(t, filepath.Join(debs, "hello.deb"), "hello", "2.10-3+b1", tarOf(t, tar.Header{Name: "./usr/bin/hello", Typeflag: tar.TypeReg, Mode: 0o755}))
	r := Recipe{Images: []Image{{
		Name: "hello", Ref: "example.org/hello:{version}", Debian: []string{"hello"}, Package: "hello", User: noUser,
		Entrypoint: []string{"/usr/bin/hello"},
	}}}
	dir := t.TempDir()
	fakeApt(t, "cp "+debs+"/*.deb "+dir+"/.work/apt/archives/\n")
	b, _, err := runTiny(t, dir, r)
	require.NoError(t, err)
	a, ok := b.Lookup(bundle.KindImage, "hello")
	require.True(t, ok)
	assert.Equal(t, "2.10-3+b1", a.Version)
	assert.Equal(t, "package hello=2.10-3+b1", a.Source)
	assert.Equal(t, []string{"hello=2.10-3+b1"}, a.Packages)
	assert.Regexp(t, `^example\.org/hello:2\.10-3_b1`, a.Image)

	r.Images[0].Package = "other"
	_, _, err = runTiny(t, dir, r)
	require.ErrorContains(t, err, "build image hello: apt downloaded no package other")
}

func TestADamagedPackageIsNamed(t *testing.T) {
	needDpkg(t)
	deb := filepath.Join(t.TempDir(), "broken.deb")
	require.NoError(t, os.WriteFile(deb, []byte("no archive"), 0o644))
	_, err := unpackDebs(t.Context(), []string{deb})
	require.ErrorContains(t, err, "unpack broken.deb")
	_, err = debNames(t.Context(), []string{deb})
	require.ErrorContains(t, err, "read package broken.deb")
}

// fakeApt puts a program apt-get into PATH that writes its arguments to a file and runs script. It returns the path of the file.
func fakeApt(t *testing.T, script string) (args string) {
	t.Helper()
	bin := t.TempDir()
	args = filepath.Join(bin, "args")
	text := "#!/bin/sh\nprintf '%s\\n' \"$@\" > " + args + "\n" + script
	runnable.Write(t, filepath.Join(bin, "apt-get"), text)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return args
}

func TestPackagesAreChosenAsIfNothingWereInstalled(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "archives", "old.deb")
	require.NoError(t, os.MkdirAll(filepath.Dir(stale), 0o755))
	require.NoError(t, os.WriteFile(stale, nil, 0o644))
	args := fakeApt(t, "touch "+dir+"/archives/b.deb "+dir+"/archives/a.deb\n")
	debs, err := downloadDebs(t.Context(), dir, []string{"nftables", "kmod"})
	require.NoError(t, err)
	assert.Equal(t, []string{dir + "/archives/a.deb", dir + "/archives/b.deb"}, debs)
	said, err := os.ReadFile(args)
	require.NoError(t, err)
	assert.Contains(t, string(said), "Dir::State::status="+dir+"/status\n")
	assert.Contains(t, string(said), "--download-only\ninstall\nnftables\nkmod\n")
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	require.NoError(t, err)
	assert.Contains(t, string(status), "Package: debconf\nStatus: install ok installed\n", "what only scripts call is assumed to be there")
}

func TestAptsOwnWordsReachTheUser(t *testing.T) {
	fakeApt(t, "echo 'E: Unable to locate package nftables' >&2; exit 100\n")
	_, err := downloadDebs(t.Context(), t.TempDir(), []string{"nftables"})
	require.ErrorContains(t, err, "E: Unable to locate package nftables")
	assert.Contains(t, hint.Of(err), "apt-get update")
}
