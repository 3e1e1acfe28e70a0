package ssh

import (
	"context"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"github.com/openpai/paictl/pkg/secret"
)

// HostKeyPolicy defines how to treat a host whose key is unknown. A key that differs from the known key is rejected under every policy.
type HostKeyPolicy int

const (
	// HostKeyAsk shows the fingerprint to Options.Confirm, and rejects the key if Confirm is nil.
	HostKeyAsk HostKeyPolicy = iota
	// HostKeyStrict rejects unknown hosts.
	HostKeyStrict
	// HostKeyAcceptNew accepts and remembers unknown hosts.
	HostKeyAcceptNew
)

// None disables a path setting of Options, as "ssh -F none" does.
const None = "none"

// Options are the settings of a Client. The zero value behaves like ssh on this machine:
// ~/.ssh/config, ~/.ssh/known_hosts, the agent, strict host keys.
type Options struct {
	// Home is the folder that contains .ssh, and the value of ~ in paths; the user's home if empty.
	Home string
	// LocalUser is the login name for hosts if neither the target nor the configuration names a user.
	LocalUser string
	// ConfigFile is an OpenSSH client configuration; ~/.ssh/config if empty, or None.
	ConfigFile string
	// KnownHosts is used and extended for targets that don't name a file;
	// ~/.ssh/known_hosts if empty.
	KnownHosts string
	// SystemKnownHosts is read in addition, never written; /etc/ssh/ssh_known_hosts
	// if empty, or None.
	SystemKnownHosts string
	// AgentSocket is the agent's socket; $SSH_AUTH_SOCK if empty, or None.
	AgentSocket string

	HostKeys HostKeyPolicy
	// Confirm asks a person whether an unknown host's key is right. Calls are never
	// concurrent, and the person's time doesn't count against any limit.
	Confirm func(host, fingerprint string) (bool, error)
	// Prompt asks a person for a passphrase or a password; nil means that no person can
	// answer. Each question is asked once, calls are never concurrent.
	Prompt func(question string) (secret.String, error)

	// Warn receives the lines of ConfigFile that paictl ignores although they may matter; nil drops them.
	Warn func(text string)

	DialTimeout   time.Duration // TCP, host key and authentication together; 15 s if zero
	KeepAlive     time.Duration // three missed replies end the connection; 15 s if zero
	ScriptTimeout time.Duration // the timeout of scripts without a timeout; 10 min if zero

	Dials        int   // connections being made at a time; 64 if zero
	DialsPerJump int   // the limit of these, through or to one jump host; 8 if zero
	Sessions     int   // open at a time on one connection; 8 if zero
	Uploads      int   // hosts that receive files at a time; 8 if zero
	UploadFiles  int   // files in flight to one host; 4 if zero
	MaxOutput    int64 // bytes of stdout, and of stderr, of one script; 64 MiB if zero

	// Gate checks a script or an upload before it is sent; nil allows all.
	Gate Gate
	// Tracer receives every finished operation; may be nil.
	Tracer Tracer

	// NetDial makes TCP connections, Now returns the time. Tests replace them.
	NetDial func(ctx context.Context, network, address string) (net.Conn, error)
	Now     func() time.Time
}

// withDefaults sets empty fields to their defaults.
func (o Options) withDefaults() Options {
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir()
	}
	if o.LocalUser == "" {
		if u, err := user.Current(); err == nil {
			o.LocalUser = u.Username
		}
	}
	setPath(&o.ConfigFile, filepath.Join(o.Home, ".ssh", "config"))
	setPath(&o.KnownHosts, filepath.Join(o.Home, ".ssh", "known_hosts"))
	setPath(&o.SystemKnownHosts, "/etc/ssh/ssh_known_hosts")
	setPath(&o.AgentSocket, os.Getenv("SSH_AUTH_SOCK"))
	setDefault(&o.DialTimeout, 15*time.Second)
	setDefault(&o.KeepAlive, 15*time.Second)
	setDefault(&o.ScriptTimeout, 10*time.Minute)
	setDefault(&o.Dials, 64)
	setDefault(&o.DialsPerJump, 8)
	setDefault(&o.Sessions, 8)
	setDefault(&o.Uploads, 8)
	setDefault(&o.UploadFiles, 4)
	setDefault(&o.MaxOutput, 64<<20)
	if o.Gate == nil {
		o.Gate = openGate{}
	}
	if o.Tracer == nil {
		o.Tracer = Tracers{}
	}
	if o.NetDial == nil {
		o.NetDial = (&net.Dialer{}).DialContext
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// setPath sets an empty path to fallback, and clears a path that has the value None.
func setPath(path *string, fallback string) {
	switch *path {
	case "":
		*path = fallback
	case None:
		*path = ""
	}
}

func setDefault[T int | int64 | time.Duration](v *T, fallback T) {
	if *v <= 0 {
		*v = fallback
	}
}
