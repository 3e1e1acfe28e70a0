// Package sandbox makes hosts with an address, sshd and systemd on one Linux machine, or the API of a cluster with simulated nodes. It also removes
// them completely.
// In: a directory, a number of hosts. Out: the hosts, their keys and a quick-start file for them.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// Host is a host of a sandbox, or a simulated node.
type Host struct {
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
	Kind    Kind       `json:"kind"`
	// HostKey is the host's public key as a line in the format of authorized_keys.
	HostKey string `json:"hostKey,omitempty"`
	// Running reports whether the host was powered on when this value was read.
	Running bool `json:"running"`
}

// Sandbox is a set of hosts, or a simulated cluster, on this machine.
type Sandbox struct {
	state    state
	dir      string
	progress func(string)
	bound    bool // the sandbox's programs end with the thread that started them
	// controllers selects the controllers of kube-controller-manager; "" means all.
	controllers string
	// controllerQPS limits the requests per second of kube-controller-manager; 0 means as many as the nodes need.
	controllerQPS int
	// encryption is the path of the API server's EncryptionConfiguration, or "" if there is no encryption.
	encryption string
	// lease is the duration of a simulated node's lease in seconds (see leaseFor). The limit for the controllers' requests grows with this duration.
	lease int
}

// ErrNone is the error if a directory contains no sandbox.
var ErrNone = errors.New("no sandbox")

// Load opens the sandbox in dir. It returns ErrNone if dir contains no sandbox.
func Load(dir string, progress func(string)) (*Sandbox, error) {
	dir, err := absolute(dir)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{dir: dir, progress: orDrop(progress)}
	s.state, err = readState(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Errorf("make one with: paictl sandbox up --hosts 3 --dir "+hint.Quote(dir),
			"%w in %s", ErrNone, dir)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Dir returns the sandbox's directory.
func (s *Sandbox) Dir() string { return s.dir }

// Name returns the sandbox's name.
func (s *Sandbox) Name() string { return s.state.Name }

// APIOnly reports whether the sandbox consists of a control plane with simulated nodes, without hosts.
func (s *Sandbox) APIOnly() bool { return s.state.API != nil }

// KeyFile returns the path of the operator's private key, which every host accepts for root and pai.
func (s *Sandbox) KeyFile() string { return filepath.Join(s.dir, "id_ed25519") }

// KnownHosts returns the path of the file with the hosts' public keys.
func (s *Sandbox) KnownHosts() string { return filepath.Join(s.dir, "known_hosts") }

// PasswordFile returns the path of the file with the password of the user pai. sudo asks for this password.
func (s *Sandbox) PasswordFile() string { return filepath.Join(s.dir, "pai-password") }

// QuickStart returns the path of the quick-start file for the hosts.
func (s *Sandbox) QuickStart() string { return filepath.Join(s.dir, "quick-start.yaml") }

// Kubeconfig returns the path of an API-only sandbox's kubeconfig.
func (s *Sandbox) Kubeconfig() string { return filepath.Join(s.dir, "kubeconfig") }

// SSHArgs returns the arguments for OpenSSH's client to connect to a host. The caller may append a command.
func (s *Sandbox) SSHArgs(h Host, user string) []string {
	return []string{"-F", "none", "-i", s.KeyFile(), "-o", "IdentitiesOnly=yes", "-o", "UserKnownHostsFile=" + s.KnownHosts(),
		"-o", "GlobalKnownHostsFile=none", "-o", "StrictHostKeyChecking=yes", "-o", "LogLevel=ERROR",
		user + "@" + h.Address.String()}
}

// Names returns the hosts' names in the order of their numbers.
func (s *Sandbox) Names() []string {
	names := make([]string, len(s.state.Hosts))
	for i, h := range s.state.Hosts {
		names[i] = h.Name
	}
	return names
}

// Hosts returns the hosts in the order of their numbers, with their current power state.
func (s *Sandbox) Hosts() ([]Host, error) {
	running, err := findProcesses(s.dir)
	if err != nil {
		return nil, err
	}
	hosts := append([]Host(nil), s.state.Hosts...)
	for i := range hosts {
		name := hosts[i].Name
		if hosts[i].Kind == Simulated {
			name = "kwok"
		}
		hosts[i].Running = len(running[name]) > 0
	}
	return hosts, nil
}

// Host returns the host with a name, or an error if the sandbox has no such host.
func (s *Sandbox) Host(name string) (Host, error) {
	hosts, err := s.Hosts()
	if err != nil {
		return Host{}, err
	}
	for _, h := range hosts {
		if h.Name == name {
			return h, nil
		}
	}
	return Host{}, hint.Errorf("its hosts are: "+strings.Join(s.Names(), ", "), "no host %q in the sandbox in %s", name, s.dir)
}

// Up creates the sandbox that the options describe, or completes an existing sandbox. It can be repeated after any interruption. It needs root on
// Linux.
func Up(ctx context.Context, opts Options) (*Sandbox, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	if err := CanMakeHosts(ctx); err != nil {
		return nil, err
	}
	if err := requirePackages(ctx, opts.Kind, opts.InstallPackages, opts.Progress); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the sandbox's directory: %w", err)
	}
	unlock, err := lock(opts.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := openOrCreate(ctx, opts)
	if err != nil {
		removeIfEmpty(opts.Dir)
		return nil, err
	}
	return s, s.up(ctx, opts)
}

// removeIfEmpty removes the directory of a sandbox whose state was never written.
func removeIfEmpty(dir string) {
	if !exists(filepath.Join(dir, stateFile)) {
		_ = os.Remove(filepath.Join(dir, lockFile))
		_ = os.Remove(dir)
	}
}

func (s *Sandbox) up(ctx context.Context, opts Options) error {
	if n := len(s.state.Hosts); n > opts.Hosts {
		s.progress(fmt.Sprintf("the sandbox has %s and keeps all of them; to remove one: paictl sandbox down HOST", plural.Of(n, "host")))
	}
	if err := s.chooseBase(ctx, opts); err != nil {
		return err
	}
	if opts.Bundle != "" {
		s.state.Bundle = opts.Bundle
	}
	if err := s.ensureKeys(ctx); err != nil {
		return err
	}
	if err := s.addHosts(opts.Hosts); err != nil {
		return err
	}
	if err := s.networkUp(ctx); err != nil {
		return err
	}
	if err := s.writeQuickStart(); err != nil {
		return err
	}
	return s.start(ctx, s.Names())
}

// chooseBase sets the base image that all hosts of the sandbox share. The image never changes while hosts exist, because their disks contain only the
// differences from the image.
func (s *Sandbox) chooseBase(ctx context.Context, opts Options) error {
	if s.state.Base != "" && exists(s.state.Base) {
		return nil
	}
	if f := s.state.Foreign; f != nil {
		opts.Release, opts.Mirror = f.Release, f.Mirror
	}
	src, err := source(ctx, opts)
	if err != nil {
		return err
	}
	if src.foreign {
		if err := src.requireKeys(opts.Keyring); err != nil {
			return err
		}
		s.state.Foreign = &foreignRelease{Release: src.release, Mirror: src.mirror, Components: src.components}
	}
	base, err := ensureBase(ctx, src, opts.CacheDir, s.progress)
	if err != nil {
		return err
	}
	if s.state.Base != "" && s.state.Base != base && len(s.state.Hosts) > 0 {
		return hint.Errorf("remove the sandbox and make it again: paictl sandbox down --dir "+hint.Quote(s.dir),
			"the hosts' base image %s is gone", s.state.Base)
	}
	s.state.Base = base
	return s.save()
}

// openOrCreate opens the sandbox in the directory, or writes the state of a new sandbox. It writes the state before it creates any part, so that
// Down finds the sandbox after any interruption.
func openOrCreate(ctx context.Context, opts Options) (*Sandbox, error) {
	s := &Sandbox{dir: opts.Dir, progress: opts.Progress}
	var err error
	s.state, err = readState(opts.Dir)
	if err == nil {
		return s, s.state.agree(opts)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := refuseRemains(ctx, opts.Dir); err != nil {
		return nil, err
	}
	unlock, err := lockSubnets()
	if err != nil {
		return nil, err
	}
	defer unlock()
	subnet, err := chooseSubnet(opts.Subnet)
	if err != nil {
		return nil, err
	}
	s.state = state{Version: stateVersion, Name: opts.Name, Kind: opts.Kind, Subnet: subnet}
	if s.state.Name == "" {
		s.state.Name = DefaultName
	}
	if s.state.Kind == "" {
		s.state.Kind = Full
	}
	if _, err := s.ownBridge(ctx); err != nil {
		return nil, err
	}
	if err := s.save(); err != nil {
		return nil, err
	}
	return s, s.bridgeUp(ctx) // the bridge shows other processes that the subnet is in use
}

// refuseRemains returns an error if dir belonged to a sandbox whose files were deleted. The hosts of such a sandbox still run on disks that no
// longer exist.
func refuseRemains(ctx context.Context, dir string) error {
	_, err := Salvage(ctx, dir, nil)
	if errors.Is(err, ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	return hint.Errorf("remove it first: paictl sandbox down --dir "+hint.Quote(dir), "there are remains of a sandbox in %s whose files were deleted", dir)
}
