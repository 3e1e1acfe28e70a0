package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Two clones of a commit make the same release, although their paths have different lengths and their processes use different time zones. The test
// makes the parts of a release that need no bundle. Both clones share Go's cache, which finds code by content, so the test checks neither the compiler
// nor uncommitted changes.
func TestTwoReleasesOfACommitAreTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-more runs it: it takes minutes")
	}
	commit, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Skipf("make test-more runs it: it needs a clone of the repository: %v", err)
	}
	public, secret := keyFiles(t)
	flags := []string{
		"--snapshot", "--version", "v1.2.3", "--public-key", public, "--secret-key", secret, "--platforms", "linux/" + runtime.GOARCH,
		"--only", strings.Join(slices.DeleteFunc(partNames(), func(name string) bool { return name == "bundle" }), ","),
	}
	var releases []map[string][]byte
	for folder, zone := range []string{"TZ=UTC", "TZ=Asia/Shanghai"} {
		clone := filepath.Join(t.TempDir(), strings.Repeat("folder", folder+1))
		command(t, ".", "git", "clone", "--quiet", "--no-checkout", filepath.Join("..", ".."), clone)
		command(t, clone, "git", "checkout", "--quiet", "--detach", strings.TrimSpace(string(commit)))
		command(t, filepath.Join(clone, "hack", "release"), "env", append([]string{zone, "go", "run", "."}, flags...)...)
		releases = append(releases, filesIn(t, filepath.Join(clone, "dist", "release", "v1.2.3")))
	}
	first, second := releases[0], releases[1]
	if len(first[listFile]) == 0 || len(first[signatureFile]) == 0 {
		t.Errorf("the release has no %s or no %s", listFile, signatureFile)
	}
	for _, name := range slices.Sorted(maps.Keys(first)) {
		if other, ok := second[name]; !ok {
			t.Errorf("only the first release has %s", name)
		} else if found := difference(first[name], other); found != "" {
			t.Errorf("%s differs: %s", name, found)
		}
	}
	if len(second) != len(first) {
		t.Errorf("the first release has %d files, the second %d", len(first), len(second))
	}
	deb := strings.Join(paths(first["paictl_1.2.3_"+runtime.GOARCH+".deb"]), "\n") + "\n"
	for _, name := range []string{
		"bin/paictl", "bin/paictl-history", "share/man/man1/paictl.1.gz", "share/man/man1/paictl-version.1.gz", "share/bash-completion/completions/paictl",
		"share/zsh/site-functions/_paictl", "share/fish/vendor_completions.d/paictl.fish", "share/doc/paictl/copyright",
	} {
		if !strings.Contains(deb, "./usr/"+name+"\n") {
			t.Errorf("the deb has no %s:\n%s", name, deb)
		}
	}
}

// command runs a command in a folder, and fails the test if the command fails.
func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// filesIn returns the contents of the files in a folder, by name.
func filesIn(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, f := range must[[]os.DirEntry](t)(os.ReadDir(dir)) {
		out[f.Name()] = must[[]byte](t)(os.ReadFile(filepath.Join(dir, f.Name())))
	}
	return out
}

// packed is a file in an archive. header contains all its properties except the name, as text.
type packed struct {
	name, header string
	data         []byte
}

// members returns the files in an archive. A compressed file has one member. Other files have no members.
func members(data []byte) ([]packed, error) {
	switch {
	case bytes.HasPrefix(data, []byte("\x1f\x8b")):
		zr, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		plain, err := io.ReadAll(zr)
		return []packed{{name: "gzip", header: fmt.Sprintf("%+v", zr.Header), data: plain}}, err
	case bytes.HasPrefix(data, []byte("\x28\xb5\x2f\xfd")):
		zr, err := zstd.NewReader(nil)
		if err != nil {
			return nil, err
		}
		defer zr.Close()
		plain, err := zr.DecodeAll(data, nil)
		return []packed{{name: "zstd", data: plain}}, err
	case bytes.HasPrefix(data, []byte("!<arch>\n")):
		return arMembers(data)
	case len(data) > 262 && string(data[257:262]) == "ustar":
		return tarMembers(data)
	}
	return nil, nil
}

// arMembers returns the files in an archive of ar, such as a deb. Each member has a header of 60 bytes, and begins at an even byte.
func arMembers(data []byte) ([]packed, error) {
	var out []packed
	for at := len("!<arch>\n"); at+60 <= len(data); {
		header := string(data[at : at+60])
		at += 60
		size, err := strconv.Atoi(strings.TrimSpace(header[48:58]))
		if err != nil || size < 0 || at+size > len(data) {
			return nil, fmt.Errorf("the header of a member is %q", header)
		}
		out = append(out, packed{name: strings.TrimSpace(header[:16]), header: header[16:], data: data[at : at+size]})
		at += size + size%2
	}
	return out, nil
}

func tarMembers(data []byte) ([]packed, error) {
	var out []packed
	for tr := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			return nil, err
		}
		header := fmt.Sprintf("type %c, mode %o, %d:%d %s:%s, %s, %v", h.Typeflag, h.Mode, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime.UTC(), h.PAXRecords)
		out = append(out, packed{name: h.Name, header: header, data: content})
	}
}

// paths returns the names of all files in an archive, and in the archives that it contains.
func paths(data []byte) []string {
	found, _ := members(data)
	var out []string
	for _, m := range found {
		out = append(append(out, m.name), paths(m.data)...)
	}
	return out
}

// difference describes the first difference between two files, or returns "" if they are equal. For archives, it names the members that contain the
// difference, from the outside to the inside.
func difference(a, b []byte) string {
	if bytes.Equal(a, b) {
		return ""
	}
	first, err := members(a)
	second, other := members(b)
	if err != nil || other != nil {
		first, second = nil, nil // the bytes are compared
	}
	for i := range max(len(first), len(second)) {
		switch {
		case i >= len(first):
			return "only the second has " + second[i].name
		case i >= len(second):
			return "only the first has " + first[i].name
		case first[i].name != second[i].name:
			return "the first has " + first[i].name + ", the second " + second[i].name
		case !bytes.Equal(first[i].data, second[i].data):
			return first[i].name + ": " + difference(first[i].data, second[i].data)
		case first[i].header != second[i].header:
			return fmt.Sprintf("%s: the headers are %q and %q", first[i].name, first[i].header, second[i].header)
		}
	}
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	return fmt.Sprintf("byte %d, of %d and %d bytes", at, len(a), len(b))
}

func TestADifferenceNamesItsMember(t *testing.T) {
	changed, moved := entries(), entries()
	changed[2].data = []byte("prograM")
	changed[0].mode = 0o600
	moved[0].mode = 0o600
	for want, other := range map[string][]entry{
		"gzip: paictl_v1/bin/paictl: byte 6, of 7000 and 7 bytes": changed,
		"gzip: paictl_v1/share/man/man1/paictl.1: the headers":    moved,
		"gzip: the first has paictl_v1/bin/paictl, the second":    moved[:1],
	} {
		a, b := must[[]byte](t)(tarGz("paictl_v1", entries(), when)), must[[]byte](t)(tarGz("paictl_v1", other, when))
		if got := difference(a, b); !strings.HasPrefix(got, want) {
			t.Errorf("the difference is %q, not %q", got, want)
		}
	}
	deb := func(e []entry) []byte {
		_, data, err := pack("deb", t.TempDir(), "v1.2.3", "amd64", e, when)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if got := difference(deb(entries()), deb(entries())); got != "" {
		t.Error(got)
	}
	if names := paths(deb(entries())); !slices.Contains(names, "./usr/bin/paictl") || !slices.Contains(names, "control.tar.gz") {
		t.Errorf("the deb has %q", names)
	}
}
