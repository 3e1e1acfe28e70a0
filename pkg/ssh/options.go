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

// HostKeyPolicy defines what happens if the key of a host is unknown. A key that differs from the known key is always rejected.
type HostKeyPolicy int

const (
	// HostKeyAsk shows the key's fingerprint to Options.Confirm, and rejects the key if Confirm is nil.
	HostKeyAsk HostKeyPolicy = iota
	// HostKeyStrict rejects unknown keys.
	HostKeyStrict
	// HostKeyAcceptNew accepts and remembers unknown keys.
	HostKeyAcceptNew
)

// None is the value of a path in Options that disables the use of the file, as in "ssh -F none".
const None = "none"

// Options holds the settings of a Client. The zero value behaves like ssh on this machine: it uses ~/.ssh/config, ~/.ssh/known_hosts and the agent.
// Unknown host keys are rejected, because Confirm is nil.
type Options struct {
	// Home is the folder that contains .ssh, and the value of ~ in paths. The default is the user's home.
	Home string
	// LocalUser is the login name if neither the target nor the configuration contains a user. The default is the name of the current user.
	LocalUser string
	// ConfigFile is the path of a configuration file of OpenSSH's client, or None. The default is ~/.ssh/config.
	ConfigFile string
	// KnownHosts is the known_hosts file for targets without their own file. Accepted keys are appended to it. The default is ~/.ssh/known_hosts.
	KnownHosts string
	// SystemKnownHosts is a further known_hosts file that is only read, or None. The default is /etc/ssh/ssh_known_hosts.
	SystemKnownHosts string
	// AgentSocket is the path of the agent's socket, or None. The default is $SSH_AUTH_SOCK.
	AgentSocket string

	HostKeys HostKeyPolicy
	// Confirm asks a person whether the key of an unknown host is right. It is never called concurrently, and the time that the person needs doesn't
	// count against any limit.
	Confirm func(host, fingerprint string) (bool, error)
	// Prompt asks a person for a passphrase or a password; nil means that no person can be asked. It is called once per question and never
	// concurrently.
	Prompt func(question string) (secret.String, error)

	// Warn receives warnings about lines in ConfigFile that paictl ignores although they may matter. If it is nil, they are dropped.
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

	// Gate checks each script and upload before it is sent; nil allows all of them.
	Gate Gate
	// Tracer receives every finished operation. It may be nil.
	Tracer Tracer

	// NetDial makes TCP connections, and Now returns the time. Tests set them.
	NetDial func(ctx context.Context, network, address string) (net.Conn, error)
	Now     func() time.Time
}

// withDefaults returns the options with defaults in empty fields.
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

// setPath sets an empty path to fallback, and a path None to "".
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
