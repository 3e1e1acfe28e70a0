package sandbox

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
)

// DefaultDir is the default folder for a sandbox's state.
const DefaultDir = "/var/lib/paictl/sandbox"

// DefaultName is the default name of a sandbox. The names of its hosts begin with this name.
const DefaultName = "pai"

// DefaultCache is the default folder for base images. Several sandboxes share the images.
const DefaultCache = "/var/cache/paictl"

// maxHosts is the maximum number of hosts. A /24 network also contains the network's, the gateway's and the broadcast address.
const maxHosts = 200

// Kind is the kind of a host.
type Kind string

// The kinds of host.
const (
	// Full hosts boot systemd, and support units, apt, reboots, containerd and kubeadm.
	Full Kind = "full"
	// Light hosts run only sshd; a hundred of them start in seconds.
	Light Kind = "light"
)

// Options describes the sandbox that Up creates. Zero values mean the defaults, or the values of the existing sandbox.
type Options struct {
	Dir      string // the folder of the sandbox's state; default DefaultDir
	Name     string // at most 8 letters, digits, hyphens; default DefaultName
	Hosts    int    // number of hosts; a higher number than now adds hosts, a lower one removes none
	Kind     Kind   // the kind of all hosts; default Full
	Subnet   string // IPv4 /24; default the first free one, beginning with 10.77.0.0/24
	CacheDir string // the folder for base images; default DefaultCache
	Release  string // the codename of the hosts' Debian or Ubuntu release; default this machine's
	Mirror   string // the URL of a mirror that has the release; default this machine's
	Keyring  string // a file with the keys that sign another release; default the file of the distribution's package
	Bundle   string // directory of the bundle that quick-start.yaml names
	// Controllers selects the controllers of ServeAPI's kube-controller-manager, in the format of the flag --controllers; the default is "*".
	Controllers string
	// ControllerQPS limits the requests per second of ServeAPI's kube-controller-manager. 0 means Kubernetes' default, or more for many nodes.
	ControllerQPS int

	// Snapshot is the etcd snapshot whose content ServeAPI serves; nil means an empty cluster.
	Snapshot *Snapshot

	InstallPackages bool // install missing Debian packages instead of returning an error

	// Progress receives one line per step. It may be nil.
	Progress func(string)
}

var nameRE = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,6}[a-z0-9])?$`)

var releaseRE = regexp.MustCompile(`^[a-z]{2,20}$`)

func (o *Options) complete() error {
	o.Progress = orDrop(o.Progress)
	var err error
	if o.Dir, err = absolute(o.Dir); err != nil {
		return err
	}
	if o.CacheDir == "" {
		o.CacheDir = DefaultCache
	}
	if o.Bundle != "" {
		if o.Bundle, err = filepath.Abs(o.Bundle); err != nil {
			return err
		}
	}
	if o.Hosts < 1 || o.Hosts > maxHosts {
		return invalid("give a number from 1 to 200 with --hosts", "%d hosts can't be made in one sandbox", o.Hosts)
	}
	if o.Release != "" && !releaseRE.MatchString(o.Release) {
		return invalid("give the codename of a release of Debian or Ubuntu, such as trixie or noble", "%q is not the codename of a release", o.Release)
	}
	if o.Release == "" && (o.Mirror != "" || o.Keyring != "") {
		return invalid("give the codename of the mirror's release with --release", "a mirror or keys were given without the release of the hosts")
	}
	if u, err := url.Parse(o.Mirror); o.Mirror != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return invalid("give an address such as http://deb.debian.org/debian with --mirror", "%q is not the address of a mirror", o.Mirror)
	}
	if o.Name != "" && !nameRE.MatchString(o.Name) {
		return invalid("give a name of at most 8 lower-case letters, digits and hyphens that starts with a letter",
			"the sandbox name %q can't be a part of host and interface names", o.Name)
	}
	return nil
}

// absolute returns the clean absolute path of a sandbox's directory. It rejects paths with characters that can't be quoted in the mount options of an
// overlay.
func absolute(dir string) (string, error) {
	if dir == "" {
		dir = DefaultDir
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(dir, ":,\\ \t\n\"'") {
		return "", invalid("choose another directory with --dir",
			"the sandbox's directory %q has a space, quote, colon, comma or backslash, which mount options can't hold", dir)
	}
	return dir, nil
}

type optionError struct{ error }

// ExitCode returns 2.
func (optionError) ExitCode() int { return 2 }

func (e optionError) Unwrap() error { return e.error }

func invalid(remedy, format string, args ...any) error {
	return optionError{hint.Errorf(remedy, format, args...)}
}

// CanMakeHosts returns nil if this process may create hosts on this machine. It must run as root on Linux, and the kernel must allow it to create
// namespaces. Otherwise the remedy of the error contains alternatives.
func CanMakeHosts(ctx context.Context) error {
	if err := requireRoot(); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "/bin/true")
	cmd.SysProcAttr = detached(cloneLight)
	if err := cmd.Run(); err != nil {
		return hint.Errorf("use a physical or virtual machine instead of a container; or run without hosts: paictl sandbox up --api-only",
			"root may not create namespaces here, which sandbox hosts need: %w", err)
	}
	return nil
}

func requireRoot() error {
	const remedy = "for a cluster's API with simulated nodes, without root: paictl sandbox up --api-only"
	if runtime.GOOS != "linux" {
		return hint.Errorf(remedy, "sandbox hosts need Linux, but this is %s", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return hint.Errorf("run it with sudo; "+remedy, "sandbox hosts need root: they are made of namespaces, mounts and a bridge")
	}
	return nil
}

func orDrop(progress func(string)) func(string) {
	if progress == nil {
		return func(string) {}
	}
	return progress
}
