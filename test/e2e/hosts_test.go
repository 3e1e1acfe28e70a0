package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// hosts holds the machines of a lab, with an open connection to each of them. The connections stay open because connecting takes longer than most
// commands.
type hosts struct {
	dir string // the sandbox's folder

	mu        sync.Mutex
	addresses map[string]string
	clients   map[string]*ssh.Client
}

// answersWithin is how long a host may take to start a command. A host that is off doesn't respond.
const answersWithin = 20 * time.Second

// address returns the address of a host.
func (h *hosts) address(t testing.TB, name string) string {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.addresses[name] == "" {
		h.addresses = map[string]string{}
		for line := range strings.Lines(ok(t, "sandbox", "list", "--dir", h.dir).stdout) {
			if f := strings.Fields(line); len(f) > 1 {
				h.addresses[f[0]] = f[1]
			}
		}
	}
	require.Contains(t, h.addresses, name)
	return h.addresses[name]
}

// run runs a script in the shell of a host, and returns the output.
func (h *hosts) run(t testing.TB, name, script string) (string, error) {
	t.Helper()
	address := h.address(t, name)
	session, client, err := h.session(name, address)
	if err != nil {
		return "", err
	}
	defer func() { _ = session.Close() }() // it has ended
	session.Stdin = strings.NewReader(script)
	over := make(chan struct{})
	defer close(over)
	go func() {
		if watched(t.Context(), client, over) != nil {
			h.forget(name, client)
		}
	}()
	out, err := session.CombinedOutput("sh -s")
	return strings.TrimSpace(string(out)), err
}

// watched waits until over is closed. It returns an error if the host stops responding, or if the test's time expires before that.
func watched(ctx context.Context, client *ssh.Client, over <-chan struct{}) error {
	tick := time.NewTicker(answersWithin)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if err := within(func() error {
				_, _, err := client.SendRequest("keepalive@openssh.com", true, nil)
				return err
			}); err != nil {
				return err
			}
		}
	}
}

// within calls ask, and returns an error if ask takes longer than answersWithin.
func within(ask func() error) error {
	answer := make(chan error, 1)
	go func() { answer <- ask() }()
	timer := time.NewTimer(answersWithin)
	defer timer.Stop()
	select {
	case err := <-answer:
		return err
	case <-timer.C:
		return errors.New("no answer")
	}
}

// session opens a session on the existing connection. If that fails, it opens a new connection, because the host may have been restarted.
func (h *hosts) session(name, address string) (*ssh.Session, *ssh.Client, error) {
	h.mu.Lock()
	client := h.clients[name]
	h.mu.Unlock()
	if client != nil {
		session, err := open(client)
		if err == nil {
			return session, client, nil
		}
		if full := (*ssh.OpenChannelError)(nil); !errors.As(err, &full) { // otherwise sshd allows no more sessions on one connection
			h.forget(name, client)
		}
	}
	client, err := h.dial(address)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	h.mu.Lock()
	if h.clients == nil {
		h.clients = map[string]*ssh.Client{}
	}
	h.clients[name] = client
	h.mu.Unlock()
	session, err := open(client)
	return session, client, err
}

func open(client *ssh.Client) (session *ssh.Session, err error) {
	opened := make(chan *ssh.Session, 1)
	if err := within(func() error {
		s, err := client.NewSession()
		opened <- s
		return err
	}); err != nil {
		return nil, err
	}
	return <-opened, nil
}

func (h *hosts) dial(address string) (*ssh.Client, error) {
	b, err := os.ReadFile(filepath.Join(h.dir, "id_ed25519"))
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(b)
	if err != nil {
		return nil, err
	}
	known, err := knownhosts.New(filepath.Join(h.dir, "known_hosts"))
	if err != nil {
		return nil, err
	}
	return ssh.Dial("tcp", net.JoinHostPort(address, "22"), &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: known,
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519}, Timeout: answersWithin,
	})
}

// forget closes a connection, so that it isn't used again.
func (h *hosts) forget(name string, client *ssh.Client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients[name] == client {
		delete(h.clients, name)
	}
	_ = client.Close() // it may be broken
}

// close closes all connections.
func (h *hosts) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, client := range h.clients {
		_ = client.Close() // the host may be gone
	}
	h.clients = nil
}
