package ssh

import (
	"net"
	"strconv"

	"github.com/openpai/paictl/pkg/secret"
)

// Target describes how to reach one machine. Empty fields come from ~/.ssh/config, then
// from the defaults: port 22, the operator's user name, the agent and the usual key files.
type Target struct {
	Name    string // in events and errors; the address if empty
	Address string // IP address or host name
	Port    int
	User    string

	Password      secret.String // also used for sudo if SudoPassword is empty
	KeyFile       string        // path on the operator's machine; ~ is expanded
	KeyPassphrase secret.String
	SudoPassword  secret.String

	// JumpHosts is a comma-separated list [user@]host[:port], outermost first.
	JumpHosts string
	// KnownHosts is a known_hosts file used instead of ~/.ssh/known_hosts.
	KnownHosts string
}

// Addr returns address:port for dialling; the port defaults to 22.
func (t Target) Addr() string {
	port := t.Port
	if port == 0 {
		port = 22
	}
	return net.JoinHostPort(t.Address, strconv.Itoa(port))
}

// String names the target in messages.
func (t Target) String() string {
	if t.Name != "" {
		return t.Name
	}
	return t.Address
}
