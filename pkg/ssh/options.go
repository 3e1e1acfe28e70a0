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

// HostKeyPolicy defines how a client handles an unknown host key. A key that differs from the known key is always rejected.
type HostKeyPolicy int

const (
	// HostKeyAsk shows the key's fingerprint to Options.Confirm, and rejects the key if Confirm is nil.
	HostKeyAsk HostKeyPolicy = iota
	// HostKeyStrict rejects unknown keys.
	HostKeyStrict
	// HostKeyAcceptNew accepts and remembers unknown keys.
	HostKeyAcceptNew
)

// None is the value of a path in Options if the file must not be used, as in "ssh -F none".
const None = "none"

// Options holds the settings of a Client. The zero value behaves like ssh on this machine: it uses ~/.ssh/config, ~/.ssh/known_hosts and the agent.
// The client rejects unknown host keys, because Confirm is nil.
type Options struct {
	// Home is the folder that contains .ssh. In paths, ~ stands for Home. The default is the user's home.
	Home string
	// LocalUser is the login name if neither the target nor the configuration contains a user. The default is the name of the current user.
	LocalUser string
	// ConfigFile is the path of a configuration file of OpenSSH's client, or None. The default is ~/.ssh/config.
	ConfigFile string
	// KnownHosts is the known_hosts file for targets without their own file. The client appends accepted keys to this file. The default is
	// ~/.ssh/known_hosts.
	KnownHosts string
	// SystemKnownHosts is a second known_hosts file, or None. The client only reads this file. The default is /etc/ssh/ssh_known_hosts.
	SystemKnownHosts string
	// AgentSocket is the path of the agent's socket, or None. The default is $SSH_AUTH_SOCK.
	AgentSocket string

	HostKeys HostKeyPolicy
	// Confirm asks a person whether the key of an unknown host is right. Confirm is never called concurrently. The time limits exclude the time until
	// the person answers.
	Confirm func(host, fingerprint string) (bool, error)
	// Prompt asks a person for a passphrase or a password. Prompt is called once per question and never concurrently. If Prompt is nil, the client asks
	// no person.
	Prompt func(question string) (secret.String, error)

	// Warn receives warnings about lines in ConfigFile that paictl ignores but that may matter. Warn may be nil.
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

	// Gate checks each script and each upload before the transfer. If Gate is nil, all scripts and uploads are allowed.
	Gate Gate
	// Tracer receives every finished operation. Tracer may be nil.
	Tracer Tracer

	// NetDial makes TCP connections. Now returns the current time. Tests set these functions.
	NetDial func(ctx context.Context, network, address string) (net.Conn, error)
	Now     func() time.Time
}

// withDefaults returns a copy of the options with defaults in the empty fields.
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

// setPath replaces an empty path with fallback, and the path None with "".
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
