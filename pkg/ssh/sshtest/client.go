package sshtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openpai/paictl/pkg/ssh"
)

// Options returns options for a client that trusts the host keys of the servers. The client ignores the agent, the configuration and the home of the
// current user.
func Options(t testing.TB, servers ...*Server) ssh.Options {
	t.Helper()
	home := t.TempDir()
	var lines strings.Builder
	for _, s := range servers {
		lines.WriteString(s.KnownHosts())
	}
	known := filepath.Join(home, "known_hosts")
	if err := os.WriteFile(known, []byte(lines.String()), 0o600); err != nil {
		t.Fatalf("sshtest: %v", err)
	}
	return ssh.Options{
		Home: home, LocalUser: "tester", ConfigFile: ssh.None, AgentSocket: ssh.None,
		KnownHosts: known, SystemKnownHosts: ssh.None, HostKeys: ssh.HostKeyStrict,
		DialTimeout: time.Minute, // the machine that runs the tests may be busy
	}
}

// Dialer returns a client for the servers. The client is closed when the test ends.
func Dialer(t testing.TB, servers ...*Server) *ssh.Client {
	t.Helper()
	return NewClient(t, Options(t, servers...))
}

// NewClient returns a client that is closed when the test ends.
func NewClient(t testing.TB, o ssh.Options) *ssh.Client {
	t.Helper()
	c := ssh.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
