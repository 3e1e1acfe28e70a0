package config

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	cssh "golang.org/x/crypto/ssh"

	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

type fleet struct {
	t       *testing.T
	servers map[string]*sshtest.Server // by address:port
}

func newFleet(t *testing.T) *fleet { return &fleet{t: t, servers: map[string]*sshtest.Server{}} }

func (f *fleet) add(addr string, c sshtest.Config, facts string) {
	c.Handler = answering(facts)
	f.servers[addr] = sshtest.NewServer(f.t, c)
}

// answering simulates a machine that only runs the discovery script. Its value is the output of the script.
type answering string

func (a answering) Exec(_ context.Context, e *sshtest.Exec) int {
	body, _, err := e.Script()
	if err == nil && strings.TrimSpace(body) == "true" { // as root
		return 0
	}
	if err != nil || len(body) < 1000 {
		return 9
	}
	_, _ = io.WriteString(e.Stdout, string(a))
	return 0
}

func facts(hostname string, more ...string) string {
	out := "paictl-facts\t1\nhostname\t" + hostname + "\narch\tx86_64\nos-release\tID=debian\nos-release\tVERSION_ID=12\n" +
		"cpus\t0-3\nmemory-kib\t16314320\ndns\t10.0.0.53\nmachine-id\tid-of-" + hostname + "\nsudo\tfree\n"
	for _, l := range more {
		out += l + "\n"
	}
	return out + "end\tok\n"
}

func (f *fleet) dialer() *ssh.Client {
	o := sshtest.Options(f.t)
	o.HostKeys = ssh.HostKeyAcceptNew
	o.NetDial = func(ctx context.Context, network, address string) (net.Conn, error) {
		s, ok := f.servers[address]
		if !ok {
			return nil, fmt.Errorf("dial %s: connection refused", address)
		}
		return (&net.Dialer{}).DialContext(ctx, network, s.Addr())
	}
	return sshtest.NewClient(f.t, o)
}

func (f *fleet) generate(text string) (*Generated, string, error) {
	dir := f.t.TempDir()
	out := filepath.Join(dir, "cluster")
	g, err := Generate(f.t.Context(), Generation{QuickStart: write(f.t, dir, "quick-start.yaml", text), OutDir: out, Dialer: f.dialer()})
	return g, out, err
}

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	p := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(p, []byte(text), 0o600))
	return p
}

func keyFile(t *testing.T) (path string, public cssh.PublicKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := cssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	signer, err := cssh.NewSignerFromSigner(private)
	require.NoError(t, err)
	return write(t, t.TempDir(), "id", string(pem.EncodeToMemory(block))), signer.PublicKey()
}
