package ssh

import (
	"net"
	"strconv"

	"github.com/openpai/paictl/pkg/secret"
)

// Target describes how to connect to a machine. Values in ~/.ssh/config fill empty fields, and defaults fill the remaining fields. The defaults are
// port 22, the operator's user name, the agent and the default key files.
type Target struct {
	Name    string // in events and errors; the address if empty
	Address string // IP address or host name
	Port    int
	User    string

	Password      secret.String // also used for sudo if SudoPassword is empty
	KeyFile       string        // path on the operator's machine; ~ is expanded
	KeyPassphrase secret.String
	SudoPassword  secret.String

	// JumpHosts is a comma-separated list of jump hosts in the form [user@]host[:port], with the outermost host first.
	JumpHosts string
	// KnownHosts is the path of a known_hosts file that is used instead of ~/.ssh/known_hosts.
	KnownHosts string
}

// Addr returns address:port for dialing. The default port is 22.
func (t Target) Addr() string {
	port := t.Port
	if port == 0 {
		port = 22
	}
	return net.JoinHostPort(t.Address, strconv.Itoa(port))
}

// String returns the target's name for messages, or its address if it has no name.
func (t Target) String() string {
	if t.Name != "" {
		return t.Name
	}
	return t.Address
}
