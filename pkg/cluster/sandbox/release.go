package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
)

// Paths of debootstrap's scripts, and of the keyrings in the packages of Debian and Ubuntu.
const (
	debootstrapScripts = "/usr/share/debootstrap/scripts"
	debianKeyring      = "/usr/share/keyrings/debian-archive-keyring.gpg"
	ubuntuKeyring      = "/usr/share/keyrings/ubuntu-archive-keyring.gpg"
)

type aptSource struct {
	release    string   // such as bookworm or noble
	mirror     string   // URL
	components []string // such as main
	proxy      string   // for http, or ""
	keyring    string   // a file with the keys that sign a foreign release
	keys       string   // the hash of the file
	foreign    bool     // not this machine's release or mirror, so that its apt configuration doesn't fit the hosts
	ubuntu     bool     // the foreign release is an Ubuntu release; false means Debian
}

// source returns the release and the mirror for hosts. By default, these are this machine's release and mirror.
func source(ctx context.Context, o Options) (aptSource, error) {
	src := aptSource{release: o.Release, mirror: o.Mirror, foreign: true}
	if o.Mirror == "" {
		own, err := machineSource(ctx)
		if err != nil || o.Release == "" || o.Release == own.release && o.Keyring == "" {
			return own, err
		}
		src.mirror = own.mirror
	}
	src.proxy = aptProxy(ctx)
	index, err := releaseIndex(ctx, src)
	if err != nil {
		return aptSource{}, hint.Errorf("name a mirror that has it with --mirror, such as http://deb.debian.org/debian or http://archive.ubuntu.com/ubuntu",
			"find the release %s: %w", o.Release, err)
	}
	src.ubuntu = index["Origin"] == "Ubuntu"
	have := strings.Fields(index["Components"])
	for _, component := range []string{"main", "universe"} {
		if slices.Contains(have, component) {
			src.components = append(src.components, component)
		}
	}
	if index["Codename"] != o.Release || len(src.components) == 0 {
		return aptSource{}, hint.Errorf("give the codename of a release of Debian or Ubuntu, such as trixie or noble",
			"%s has no release with the codename %s and the component main", src.mirror, o.Release)
	}
	return src, nil
}

// releaseIndex returns the fields of a release's index. It doesn't verify the signature, because the fields only determine the arguments of
// debootstrap, and debootstrap verifies the signature.
func releaseIndex(ctx context.Context, src aptSource) (map[string]string, error) {
	address := strings.TrimSuffix(src.mirror, "/") + "/dists/" + src.release + "/InRelease"
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{Proxy: src.proxyOf}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", address, resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", address, err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && fields[name] == "" {
			fields[name] = value
		}
	}
	return fields, nil
}

// proxyOf returns apt's proxy for http requests, and the environment's proxy for other requests.
func (src aptSource) proxyOf(req *http.Request) (*url.URL, error) {
	if src.proxy != "" && req.URL.Scheme == "http" {
		return url.Parse(src.proxy)
	}
	return http.ProxyFromEnvironment(req)
}

// machineSource returns this machine's release according to os-release, and its mirror according to apt.
func machineSource(ctx context.Context) (aptSource, error) {
	osRelease, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return aptSource{}, fmt.Errorf("detect this machine's release: %w", err)
	}
	src := aptSource{release: shellValue(string(osRelease), "VERSION_CODENAME")}
	if src.release == "" {
		return aptSource{}, hint.Errorf("use a Debian or Ubuntu machine, or paictl sandbox up --api-only",
			"/etc/os-release names no VERSION_CODENAME, so the hosts' release is unknown")
	}
	out, err := run(ctx, nil, "apt-get", "indextargets", "--format", "$(CREATED_BY) $(REPO_URI) $(RELEASE) $(COMPONENT)")
	if err != nil {
		return aptSource{}, fmt.Errorf("ask apt for its sources: %w", err)
	}
	if src.mirror, src.components = pickMirror(out, src.release); src.mirror == "" {
		return aptSource{}, hint.Errorf("add one to /etc/apt/sources.list, then run apt-get update",
			"apt has no source for the release %s of this machine", src.release)
	}
	src.proxy = aptProxy(ctx)
	return src, nil
}

// aptProxy returns the proxy that apt uses for http, or "".
func aptProxy(ctx context.Context) string {
	out, err := run(ctx, nil, "apt-config", "shell", "PROXY", "Acquire::http::Proxy")
	if err != nil {
		return ""
	}
	return shellValue(out, "PROXY")
}

// pickMirror returns the first mirror that has the component main of a release. It also returns the components of this mirror: main, and universe if
// available.
func pickMirror(targets, release string) (mirror string, components []string) {
	for line := range strings.Lines(targets) {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] != "Packages" || f[2] != release {
			continue
		}
		if mirror == "" && f[3] == "main" {
			mirror = f[1]
		}
	}
	for _, component := range []string{"main", "universe"} {
		if mirror != "" && strings.Contains(targets, fmt.Sprintf("Packages %s %s %s\n", mirror, release, component)) {
			components = append(components, component)
		}
	}
	return mirror, components
}

// shellValue returns the value of key in a line KEY=value or KEY="value", or "" if no line sets key.
func shellValue(text, key string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), key+"="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return ""
}

// requireKeys sets the file with the keys that sign the release. It returns an error if the file can't be read.
func (src *aptSource) requireKeys(file string) error {
	pkg := "debian-archive-keyring"
	switch {
	case file != "":
		src.keyring, pkg = file, ""
	case src.ubuntu:
		src.keyring, pkg = ubuntuKeyring, "ubuntu-keyring"
	default:
		src.keyring = debianKeyring
	}
	b, err := os.ReadFile(src.keyring)
	switch sum := sha256.Sum256(b); {
	case err == nil:
		src.keys = hex.EncodeToString(sum[:])
		return nil
	case pkg == "":
		return hint.Errorf("give the file that gpg --export wrote with --keyring", "no file %s with the keys of the release %s", file, src.release)
	}
	return hint.Errorf("install the package "+pkg+", or give a file with the keys with --keyring",
		"the keys that sign the release %s are not on this machine: no file %s", src.release, src.keyring)
}

func debootstrapArgs(src aptSource, dir string) []string {
	args := []string{"--variant=minbase", "--components=" + strings.Join(src.components, ","), "--include=" + strings.Join(basePackages(), ",")}
	if src.foreign {
		// Without this flag, debootstrap accepts a release without a valid signature if this machine has no keys for the release.
		args = append(args, "--force-check-gpg", "--keyring="+src.keyring)
	}
	args = append(args, src.release, dir, src.mirror)
	if exists(filepath.Join(debootstrapScripts, src.release)) {
		return args
	}
	general := "sid" // for a release that is newer than debootstrap
	if src.ubuntu {
		general = "gutsy"
	}
	return append(args, filepath.Join(debootstrapScripts, general))
}
