// Package sshd is the SSH server of tasks with the ssh plugin, what the ssh clients of an image are
// told of it, and the wait for the servers of the other tasks.
// In: keys, addresses. Out: a server that takes keys only, client configuration, or an error.
//
// The server is ours and in the runtime's program, so it works in any image: nothing is installed.
package sshd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gliderlabs/ssh"
	"github.com/pkg/sftp"
	xssh "golang.org/x/crypto/ssh"
)

// Config is what a server needs. It comes over a pipe, since it holds a key.
type Config struct {
	HostKey    string   `json:"hostKey"` // PEM
	Authorized []string `json:"authorized"`
	Environ    []string `json:"environ"` // of sessions
	Dir        string   `json:"dir"`     // where they begin
}

// ReadConfig reads what the runtime sends its server.
func ReadConfig(r io.Reader) (*Config, error) {
	c := &Config{}
	if err := json.NewDecoder(io.LimitReader(r, 16<<20)).Decode(c); err != nil {
		return nil, fmt.Errorf("the server's configuration: %w", err)
	}
	return c, nil
}

// Serve takes connections until the context ends.
func Serve(ctx context.Context, l net.Listener, c *Config, tell func(format string, args ...any)) error {
	hostKey, err := xssh.ParsePrivateKey([]byte(c.HostKey))
	if err != nil {
		return errors.New("the server's key can't be read")
	}
	keys, err := ParseAuthorized(c.Authorized)
	if err != nil {
		return err
	}
	s := &ssh.Server{
		Handler: func(s ssh.Session) { session(s, c) },
		PublicKeyHandler: func(_ ssh.Context, key ssh.PublicKey) bool {
			for _, k := range keys {
				if ssh.KeysEqual(k, key) {
					return true
				}
			}
			return false
		},
		HostSigners:       []ssh.Signer{hostKey},
		SubsystemHandlers: map[string]ssh.SubsystemHandler{"sftp": files},
		ChannelHandlers: map[string]ssh.ChannelHandler{
			"session":      ssh.DefaultSessionHandler,
			"direct-tcpip": ssh.DirectTCPIPHandler,
		},
		// Who may log in may also connect from here by hand.
		LocalPortForwardingCallback: func(ssh.Context, string, uint32) bool { return true },
		Version:                     "pai-runtime",
		// Ports of tasks are open to others: those who don't log in don't stay.
		ConnCallback: func(ctx ssh.Context, conn net.Conn) net.Conn {
			ctx.SetValue(loginTimer{}, time.AfterFunc(loginTime, func() { _ = conn.Close() }))
			return conn
		},
	}
	s.ServerConfigCallback = func(ctx ssh.Context) *xssh.ServerConfig {
		return &xssh.ServerConfig{
			MaxAuthTries: 10, // agents offer all their keys
			AuthLogCallback: func(_ xssh.ConnMetadata, method string, err error) {
				if t, ok := ctx.Value(loginTimer{}).(*time.Timer); ok && err == nil && method == "publickey" {
					t.Stop()
				}
			},
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); err != nil && !errors.Is(err, ssh.ErrServerClosed) {
		tell("ssh server: %v", err)
		return err
	}
	return nil
}

// files is what scp and sftp talk to.
func files(s ssh.Session) {
	server, err := sftp.NewServer(s)
	if err != nil {
		fmt.Fprintln(s.Stderr(), err)
		_ = s.Exit(1) // the connection is gone, or will be
		return
	}
	code := 0
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		code = 1
	}
	_ = s.Exit(code) // before Close, which closes the channel: scp fails where no code comes
	_ = server.Close()
}

// loginTime is what a client has to prove who it is.
const loginTime = 60 * time.Second

// loginTimer is the key of a connection's timer.
type loginTimer struct{}
