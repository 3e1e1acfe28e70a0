package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/openpai/paictl/pkg/hint"
)

// basePackages returns the packages that a host needs in addition to the minimal system: systemd, sshd, and the requirements of kubelet, kube-proxy
// and the CNI plugins.
func basePackages() []string {
	return []string{"systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "iproute2", "iptables", "nftables",
		"ca-certificates", "kmod", "procps", "python3-minimal", "conntrack", "ethtool", "socat"}
}

// machinePackages returns the Debian packages that this machine needs for hosts of a kind. The key of a package is the name of a program in the
// package.
func machinePackages(kind Kind) map[string]string {
	m := map[string]string{
		"debootstrap": "debootstrap", "ip": "iproute2", "nft": "nftables", "ssh": "openssh-client", "mount": "mount",
	}
	if kind != Light {
		m["systemd-nspawn"] = "systemd-container"
	}
	return m
}

func requirePackages(ctx context.Context, kind Kind, install bool, progress func(string)) error {
	var missing []string
	for program, pkg := range machinePackages(kind) {
		if _, err := lookPath(program); err != nil {
			missing = append(missing, pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	args := append([]string{"install", "-y", "--no-install-recommends"}, missing...)
	command := "apt-get " + strings.Join(args, " ")
	if _, err := lookPath("apt-get"); err != nil {
		return hint.Errorf("use a Debian or Ubuntu machine, or paictl sandbox up --api-only",
			"sandbox hosts need %s, but there is no apt-get to install them", strings.Join(missing, ", "))
	}
	if !install {
		return hint.Errorf("run: "+command+"  (or give --install-packages)",
			"Debian packages are missing: %s", strings.Join(missing, ", "))
	}
	progress("installing " + strings.Join(missing, ", "))
	if _, err := run(ctx, nil, "apt-get", "-q", "update"); err != nil {
		return err
	}
	_, err := run(ctx, []string{"DEBIAN_FRONTEND=noninteractive"}, "apt-get", args...)
	return err
}

// lookPath returns the path of a program. It also searches the sbin folders, because the user's PATH may not contain them.
func lookPath(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no program %q: %w", program, exec.ErrNotFound)
}

// baseID returns an identifier of the base image. It depends on the image's inputs, so that another list of packages results in another image.
func baseID(src aptSource) string {
	inputs := append([]string{"1", src.release, runtime.GOARCH, strings.Join(src.components, ",")}, basePackages()...)
	if src.foreign {
		inputs = append(inputs, src.mirror, src.keys)
	}
	sum := sha256.Sum256([]byte(strings.Join(inputs, " ")))
	return src.release + "-" + hex.EncodeToString(sum[:])[:12]
}

// ensureBase returns the directory of the base image. It creates the image if necessary.
func ensureBase(ctx context.Context, src aptSource, cache string, progress func(string)) (string, error) {
	base := filepath.Join(cache, "base-"+baseID(src))
	if exists(base) {
		return base, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("make the image cache: %w", err)
	}
	l := flock.New(filepath.Join(cache, "lock"))
	if ok, err := l.TryLock(); err != nil {
		return "", fmt.Errorf("lock the image cache: %w", err)
	} else if !ok {
		progress("waiting for another paictl that makes the base image")
		if _, err := l.TryLockContext(ctx, pollInterval); err != nil {
			return "", err
		}
	}
	defer func() { _ = l.Unlock() }()
	if exists(base) {
		return base, nil
	}
	progress("making the base image of the hosts (about a minute, once)")
	return base, makeBase(ctx, src, base)
}

func makeBase(ctx context.Context, src aptSource, base string) error {
	// Ignore errors. The last child process of an interrupted debootstrap may still write into its directory. A later run removes the remaining files.
	stale, _ := filepath.Glob(base + ".partial-*")
	for _, dir := range stale {
		_ = removeTree(dir)
	}
	partial, err := os.MkdirTemp(filepath.Dir(base), filepath.Base(base)+".partial-")
	if err == nil {
		err = os.Chmod(partial, 0o755)
	}
	if err != nil {
		return fmt.Errorf("make the base image's directory: %w", err)
	}
	var env []string
	if src.proxy != "" {
		env = append(env, "http_proxy="+src.proxy)
	}
	_, err = run(ctx, env, "debootstrap", debootstrapArgs(src, partial)...)
	if err != nil {
		return fmt.Errorf("make the base image in %s: %w", partial, err)
	}
	// Remove keys and IDs that must differ between hosts, and files that apt has left.
	for _, pattern := range []string{"etc/ssh/ssh_host_*", "var/lib/dbus/machine-id", "var/cache/apt/archives/*.deb", "var/lib/apt/lists/*_*",
		"var/cache/apt/*.bin", "var/log/*.log"} {
		paths, err := filepath.Glob(filepath.Join(partial, pattern))
		if err != nil {
			return err
		}
		for _, p := range paths {
			if err := os.RemoveAll(p); err != nil {
				return err
			}
		}
	}
	return os.Rename(partial, base)
}

// run runs a program with additional environment variables and returns its standard output. Errors contain the last lines of the program's output.
func run(ctx context.Context, env []string, program string, args ...string) (string, error) {
	return runInput(ctx, env, "", program, args...)
}

func runInput(ctx context.Context, env []string, input, program string, args ...string) (string, error) {
	path, err := lookPath(program)
	if err != nil {
		return "", err
	}
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(append(os.Environ(), "LC_ALL=C", "PATH="+fullPath(os.Getenv("PATH"))), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errOut
	cmd.SysProcAttr = attached()
	runtime.LockOSThread() // see attached
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("%s: %w%s", program, err, lastLines(errOut.String()+out.String(), 3))
	}
	return out.String(), nil
}

// fullPath appends the folders with system programs to a PATH, because a user's PATH may not contain them.
func fullPath(path string) string {
	return strings.TrimPrefix(path+":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin", ":")
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return ""
	}
	return ": " + strings.Join(lines[max(0, len(lines)-n):], "; ")
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}
