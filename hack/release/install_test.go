package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// publish creates and serves a release in which paictl is a script. It returns the folder, the address and the key of the release.
func publish(t *testing.T) (dir, address, key string) {
	t.Helper()
	public, secret := keyFiles(t)
	b := &build{
		options: options{version: "v1.2.3", publicKey: public, secretKey: secret}, dir: t.TempDir(), root: ".", when: when, out: io.Discard, made: map[string]string{},
	}
	if err := b.keys(); err != nil {
		t.Fatal(err)
	}
	name := "paictl_v1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH
	files := []entry{
		{name: "bin/paictl", mode: 0o755, data: []byte("#!/bin/sh\necho installed\n")}, {name: "bin/paictl-history", mode: 0o755, data: []byte("#!/bin/sh\necho installed\n")},
		{name: "share/man/man1/paictl.1", mode: 0o644, data: []byte(".TH\n")},
	}
	if err := os.WriteFile(b.file(name+".tar.gz", "archive"), must[[]byte](t)(tarGz(name, files, when)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, file, _ := strings.Cut(r.URL.Path, "/download/")
		http.ServeFile(w, r, filepath.Join(b.dir, filepath.Base(file)))
	}))
	t.Cleanup(srv.Close)
	return b.dir, srv.URL + "/releases", b.key()
}

// tools lists the programs that install.sh needs in addition to a program that verifies signatures.
var tools = []string{
	"awk", "cat", "chmod", "cp", "cut", "dd", "gzip", "mkdir", "mktemp", "mv", "od", "rm", "sed", "sh", "sha256sum", "tar", "tr", "uname", "wc", "grep", "curl", "wget",
}

// install runs install.sh with a PATH that contains only the tools and one verifier, and returns the output.
func install(t *testing.T, verifier string, args ...string) (string, error) {
	t.Helper()
	path := t.TempDir()
	for _, tool := range append([]string{verifier}, tools...) {
		if program, err := exec.LookPath(tool); err == nil {
			if err := os.Symlink(program, filepath.Join(path, tool)); err != nil {
				t.Fatal(err)
			}
		} else if tool == verifier {
			t.Skipf("make test-more runs it: it needs %s", tool)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"install.sh"}, args...)...)
	cmd.Env = []string{"PATH=" + path, "CURL_CA_BUNDLE=" + os.Getenv("CURL_CA_BUNDLE")}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// verifiers lists the programs with which install.sh can check the signature.
var verifiers = []string{"openssl", "minisign"}

func TestInstallVerifiesAndInstalls(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-more runs it: it needs curl or wget, and openssl 3 or minisign")
	}
	for _, verifier := range verifiers {
		t.Run(verifier, func(t *testing.T) { verifiesAndInstalls(t, verifier) })
	}
}

func verifiesAndInstalls(t *testing.T, verifier string) {
	t.Helper()
	_, address, key := publish(t)
	prefix := filepath.Join(t.TempDir(), "a prefix")
	for _, args := range [][]string{nil, {"--version", "v1.2.3"}} { // the second one replaces the first
		said, err := install(t, verifier, append([]string{"--address", address, "--prefix", prefix, "--key", key}, args...)...)
		if err != nil || !strings.Contains(said, "installed paictl v1.2.3 in "+prefix+"/bin/paictl") {
			t.Fatalf("%v: %s", err, said)
		}
	}
	for _, program := range names {
		out, err := exec.CommandContext(t.Context(), filepath.Join(prefix, "bin", program)).Output()
		if err != nil || string(out) != "installed\n" {
			t.Errorf("%s: %v: %s", program, err, out)
		}
	}
	for _, name := range []string{"share/man/man1/paictl.1", "share/paictl/" + listFile, "share/paictl/" + signatureFile} {
		if _, err := os.Stat(filepath.Join(prefix, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestInstallRefuses(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-more runs it: it needs curl or wget, and openssl 3 or minisign")
	}
	archive := "paictl_v1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	flip := func(name string, at func(data []byte) int) func(string) error {
		return func(dir string) error {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			data[at(data)] ^= 1
			return os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
	}
	middle := func(data []byte) int { return len(data) / 2 }
	line := func(n int) func(data []byte) int { // a byte in a line of the signature
		return func(data []byte) int {
			at := 0
			for range n - 1 {
				at += bytes.IndexByte(data[at:], '\n') + 1
			}
			return at + 30
		}
	}
	_, _, foreign := publish(t)
	foreign = foreign[:20] + "AAAA" + foreign[24:]
	for name, tt := range map[string]struct {
		spoil func(dir string) error
		args  []string
		want  string
	}{
		"a flipped bit of the archive":             {flip(archive, middle), nil, "but checksums.txt says"},
		"a flipped bit of the list":                {flip(listFile, middle), nil, "doesn't match its signature"},
		"a flipped bit of the signature":           {flip(signatureFile, line(2)), nil, "doesn't match its signature"},
		"a flipped bit of the signed comment":      {flip(signatureFile, line(3)), nil, "doesn't match its signature"},
		"a flipped bit of the comment's signature": {flip(signatureFile, line(4)), nil, "doesn't match its signature"},
		"another key":                               {nil, []string{"--key", foreign}, "doesn't match its signature"},
		"an old release under another name":         {nil, []string{"--version", "v1.3.0"}, "is signed for v1.2.3, not for v1.3.0"},
		"an install.sh without a key":               {nil, []string{"--key", ""}, "has no public key"},
		"an unknown argument":                       {nil, []string{"--force"}, "unexpected argument --force"},
		"a flipped bit, with checksums only":        {flip(archive, middle), []string{"--checksum-only"}, "but checksums.txt says"},
		"a release that doesn't have this platform": {func(dir string) error { return os.WriteFile(filepath.Join(dir, listFile), []byte("x  y\n"), 0o600) }, []string{"--checksum-only", "--version", "v1.2.3"}, "doesn't have paictl_v1.2.3"},
	} {
		for _, verifier := range verifiers {
			t.Run(name+" by "+verifier, func(t *testing.T) {
				refuses(t, verifier, tt.spoil, tt.args, tt.want)
			})
		}
	}
}

func refuses(t *testing.T, verifier string, spoil func(dir string) error, args []string, want string) {
	t.Helper()
	dir, address, key := publish(t)
	if spoil != nil {
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
	}
	prefix := t.TempDir()
	said, err := install(t, verifier, append([]string{"--address", address, "--prefix", prefix, "--key", key}, args...)...)
	if err == nil || !strings.Contains(said, want) {
		t.Errorf("%v: %s", err, said)
	}
	if _, err := os.Stat(filepath.Join(prefix, "bin/paictl")); err == nil {
		t.Error("it was installed")
	}
}

// The checksum is downloaded over HTTPS. A server must not be able to redirect install.sh to an address without HTTPS.
func TestInstallFollowsNoRedirectFromHTTPSToHTTP(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-more runs it: it needs curl")
	}
	_, address, _ := publish(t)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.TrimSuffix(address, "/releases")+r.URL.Path, http.StatusFound)
	}))
	t.Cleanup(srv.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CURL_CA_BUNDLE", authority)
	said, err := install(t, "openssl", "--address", srv.URL+"/releases", "--prefix", t.TempDir(), "--checksum-only")
	if err == nil || !strings.Contains(said, `Protocol "http" not supported`) || !strings.Contains(said, "can't download "+srv.URL) {
		t.Errorf("%v: %s", err, said)
	}
}

// The package is installed, upgraded and removed by Debian's dpkg, below a folder instead of the machine's root.
func TestInstallOfPackages(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-more runs it: it needs dpkg")
	}
	for _, program := range []string{"dpkg", "dpkg-query"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("make test-more runs it: it needs %s", program)
		}
	}
	root := t.TempDir()
	database := filepath.Join(root, "var", "lib", "dpkg")
	for _, dir := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(database, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(database, "status"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) {
		t.Helper()
		flags := []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "dpkg", "--root=" + root, "--log=" + filepath.Join(root, "var", "dpkg.log"), "--force-not-root"}
		command(t, ".", "env", append(flags, args...)...)
	}
	files := map[string]fs.FileMode{
		"usr/bin/paictl": 0o755, "usr/bin/paictl-history": 0o755, "usr/share/man/man1/paictl.1.gz": 0o644, "usr/share/bash-completion/completions/paictl": 0o644,
		"usr/share/zsh/site-functions/_paictl": 0o644, "usr/share/fish/vendor_completions.d/paictl.fish": 0o644, "usr/share/doc/paictl/copyright": 0o644,
	}
	for _, version := range []string{"v1.2.3", "v1.2.4"} {
		installation := []entry{
			{name: "bin/paictl", mode: 0o755, data: []byte("paictl " + version)}, {name: "bin/paictl-history", mode: 0o755, data: []byte("history")},
			{name: "share/man/man1/paictl.1", mode: 0o644, data: []byte(".TH\n")}, {name: "share/bash-completion/completions/paictl", mode: 0o644, data: []byte("bash")},
			{name: "share/zsh/site-functions/_paictl", mode: 0o644, data: []byte("zsh")},
			{name: "share/fish/vendor_completions.d/paictl.fish", mode: 0o644, data: []byte("fish")}, {name: "share/doc/paictl/LICENSE", mode: 0o644, data: []byte("MIT")},
		}
		want := maps.Clone(files)
		if version == "v1.2.3" { // the upgrade removes this page
			installation = append(installation, entry{name: "share/man/man1/paictl-former.1", mode: 0o644, data: []byte(".TH\n")})
			want["usr/share/man/man1/paictl-former.1.gz"] = 0o644
		}
		name, data, err := pack("deb", t.TempDir(), version, runtime.GOARCH, installation, when)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		dpkg("-i", file)
		if got := filesBelow(t, filepath.Join(root, "usr")); !maps.Equal(got, want) {
			t.Errorf("%s installs %v, not %v", name, got, want)
		}
		if program := must[[]byte](t)(os.ReadFile(filepath.Join(root, "usr", "bin", "paictl"))); string(program) != "paictl "+version {
			t.Errorf("the program of %s is %s", version, program)
		}
		state, err := exec.CommandContext(t.Context(), "dpkg-query", "--admindir="+database, "-W", "-f", "${Version} ${Status}", "paictl").Output()
		if err != nil || string(state) != strings.TrimPrefix(version, "v")+" install ok installed" {
			t.Errorf("after %s, dpkg says %q: %v", version, state, err)
		}
	}
	dpkg("-r", "paictl")
	if _, err := os.Stat(filepath.Join(root, "usr")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the removal, %v remain: %v", filesBelow(t, filepath.Join(root, "usr")), err)
	}
}

// filesBelow returns the modes of all files below a folder named usr, by path.
func filesBelow(t *testing.T, usr string) map[string]fs.FileMode {
	t.Helper()
	out := map[string]fs.FileMode{}
	err := filepath.WalkDir(usr, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(filepath.Dir(usr), file)
		out[name] = fi.Mode()
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return out
}

func TestTheScriptOfAReleaseHasItsKey(t *testing.T) {
	text, err := fill(installScript, map[string]string{"version": "v1.2.3", "address": "", "public_key": "RWabc"})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"\nversion='v1.2.3' # set", "\naddress='https://github.com/openpai/paictl/releases' # set", "\npublic_key='RWabc' # set"} {
		if !strings.Contains(text, line) {
			t.Errorf("it has no line %q", line)
		}
	}
	for want, values := range map[string]map[string]string{"no line for prefix2": {"prefix2": "x"}, "has a quote": {"address": "x'; rm"}} {
		if _, err := fill(installScript, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}
