// Package sshd is the SSH server of tasks with the ssh plugin, the configuration of the image's ssh clients, and the
// wait for the servers of the other tasks. In: keys, addresses. Out: a server that accepts only keys, client
// configuration, or an error.
//
// The server is part of the runtime's program, so it works in any image without being installed.
package sshd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/gliderlabs/ssh"
	"github.com/pkg/sftp"
	xssh "golang.org/x/crypto/ssh"
)

// Config configures a server. The runtime sends it over a pipe, because it contains a key.
type Config struct {
	HostKey    string   `json:"hostKey"` // PEM
	Authorized []string `json:"authorized"`
	Environ    []string `json:"environ"` // the environment of sessions
	Dir        string   `json:"dir"`     // the folder in which sessions begin

	delay time.Duration
}

// ReadConfig reads a server's configuration.
func ReadConfig(r io.Reader) (*Config, error) {
	c := &Config{delay: outputDelay}
	if err := json.NewDecoder(io.LimitReader(r, 16<<20)).Decode(c); err != nil {
		return nil, fmt.Errorf("the server's configuration: %w", err)
	}
	return c, nil
}

// Serve accepts connections until the context ends.
func Serve(ctx context.Context, l net.Listener, c *Config, tell func(format string, args ...any)) error {
	hostKey, err := xssh.ParsePrivateKey([]byte(c.HostKey))
	if err != nil {
		return errors.New("the server's key can't be read")
	}
	keys, err := ParseAuthorized(c.Authorized)
	if err != nil {
		return err
	}
	waiting := make(chan struct{}, maxLogins)
	s := &ssh.Server{
		PublicKeyHandler: func(_ ssh.Context, key ssh.PublicKey) bool {
			return slices.ContainsFunc(keys, func(k xssh.PublicKey) bool { return ssh.KeysEqual(k, key) })
		},
		HostSigners:     []ssh.Signer{hostKey},
		ChannelHandlers: map[string]ssh.ChannelHandler{"session": sessions(c), "direct-tcpip": forward},
		Version:         "pai-runtime",
		ConnCallback:    func(ctx ssh.Context, conn net.Conn) net.Conn { return login(ctx, conn, waiting) },
	}
	s.ServerConfigCallback = func(ctx ssh.Context) *xssh.ServerConfig {
		return &xssh.ServerConfig{
			MaxAuthTries: 10, // agents offer all their keys
			AuthLogCallback: func(_ xssh.ConnMetadata, method string, err error) {
				if proven, ok := ctx.Value(provenKey{}).(func()); ok && err == nil && method == "publickey" {
					proven()
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

// files serves scp and sftp. Relative names refer to the server's working directory, because the library's option for a
// different folder would change the targets of links.
func files(s ssh.Session, ch *channel) {
	server, err := sftp.NewServer(ch.raw)
	if err != nil {
		fmt.Fprintln(ch.raw.Stderr(), err)
		_ = s.Exit(1) // the connection is closed, or about to be
		return
	}
	code := 0
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		code = 1
	}
	_ = s.Exit(code) // before Close, which closes the channel: scp fails without a code
	_ = server.Close()
}

// Everyone can connect to the ports of tasks. Connections before login are limited in time and number, because they use the
// task's memory.
const (
	loginTime = 60 * time.Second
	maxLogins = 128
)

// provenKey is the context key of the function that marks a login as successful.
type provenKey struct{}

// login limits the time for a login. It returns nil if too many connections are logging in.
func login(ctx ssh.Context, conn net.Conn, waiting chan struct{}) net.Conn {
	select {
	case waiting <- struct{}{}:
	default:
		return nil
	}
	timer := time.AfterFunc(loginTime, func() { _ = conn.Close() })
	proven := sync.OnceFunc(func() {
		timer.Stop()
		<-waiting
	})
	context.AfterFunc(ctx, proven) // the connection ended
	ctx.SetValue(provenKey{}, proven)
	return conn
}
