package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/openpai/paictl/pkg/hint"
)

// busyRetries is the maximum number of retries if the server drops a connection before its first response. OpenSSH drops connections when too many
// clients connect at the same time (MaxStartups).
const busyRetries = 5

// errHandshakeTimeout means that the server accepted the TCP connection but didn't respond in time.
var errHandshakeTimeout = errors.New("no SSH answer in time")

// handshake makes an authenticated connection to a host, directly or through a jump host.
func (c *Client) handshake(ctx context.Context, e *endpoint, via *conn) (*ssh.Client, error) {
	free, err := c.turn(ctx, e, via)
	if err != nil {
		return nil, err
	}
	defer free()
	a := c.authenticator(e)
	defer func() { a.close() }()
	for busy, rounds := 0, 1; ; {
		first := a.next
		client, err := c.attempt(ctx, e, via, a)
		switch {
		case err == nil:
			return client, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("reach %s: %w", e.name, context.Cause(ctx))
		case a.done:
			return nil, a.error()
		case a.begun && hungUp(err):
			// The server has rejected too many keys. Continue with the next key over a new connection.
			if rounds++; rounds > maxAuthRounds || a.next >= len(a.steps) || a.next == first {
				return nil, a.error()
			}
			a.begun = false
		case dropped(err) && busy < busyRetries:
			busy++
			if err := pause(ctx, busy); err != nil {
				return nil, fmt.Errorf("reach %s: %w", e.name, err)
			}
		default:
			return nil, c.explain(e, via, err)
		}
	}
}

// turn waits until a new connection is allowed. One limit applies to all connections, and another limit applies to the connections through each jump
// host.
func (c *Client) turn(ctx context.Context, e *endpoint, via *conn) (free func(), err error) {
	queues := []chan struct{}{c.dials}
	if via != nil {
		queues = []chan struct{}{via.dials, c.dials}
	}
	for i, q := range queues {
		select {
		case q <- struct{}{}:
		case <-ctx.Done():
			for _, taken := range queues[:i] {
				<-taken
			}
			return nil, fmt.Errorf("reach %s: %w", e.name, context.Cause(ctx))
		}
	}
	return func() {
		for _, q := range queues {
			<-q
		}
	}, nil
}

// pause waits before the n-th retry. The first retry waits 0.1 s, and each further retry waits twice as long. Random jitter spreads the retries of
// clients that were dropped at the same time.
func pause(ctx context.Context, n int) error {
	d := 100 * time.Millisecond << (n - 1)
	d = d/2 + rand.N(d) //nolint:gosec // the jitter isn't a secret
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// attempt makes one TCP connection and attempts one handshake.
func (c *Client) attempt(ctx context.Context, e *endpoint, via *conn, a *authenticator) (*ssh.Client, error) {
	algorithms, err := c.hostKeys.algorithms(e)
	if err != nil {
		return nil, err
	}
	nc, err := c.tcp(ctx, e, via)
	if err != nil {
		return nil, err
	}
	var keyErr error
	config := &ssh.ClientConfig{
		User:              e.user,
		ClientVersion:     "SSH-2.0-paictl",
		HostKeyAlgorithms: algorithms,
		AuthCallback:      a.pick,
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if cert, ok := key.(*ssh.Certificate); ok && cert.CertType != ssh.HostCert {
				return ErrHostKey
			}
			keyErr = c.hostKeys.verify(e, key)
			return keyErr
		},
	}
	stop := c.person.limit(c.o.DialTimeout, func() { _ = nc.Close() })
	unwatch := context.AfterFunc(ctx, func() { _ = nc.Close() })
	sc, chans, reqs, err := ssh.NewClientConn(nc, e.address(), config)
	late := stop()
	if !unwatch() && err == nil {
		_ = sc.Close()
		err = context.Cause(ctx)
	}
	switch {
	case err == nil && !late:
		return ssh.NewClient(sc, chans, reqs), nil
	case keyErr != nil:
		_ = nc.Close()
		return nil, keyErr
	case late:
		return nil, errHandshakeTimeout
	}
	_ = nc.Close()
	return nil, err
}

// tcp opens the transport to e: a TCP connection, or a channel through a jump host.
func (c *Client) tcp(ctx context.Context, e *endpoint, via *conn) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.DialTimeout, fmt.Errorf("no answer within %s", c.o.DialTimeout))
	defer cancel()
	var nc net.Conn
	var err error
	if via == nil {
		nc, err = c.o.NetDial(ctx, "tcp", e.address())
	} else {
		nc, err = via.client.DialContext(ctx, "tcp", e.address())
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, &dialError{err}
	}
	return nc, nil
}

type dialError struct{ err error }

func (d *dialError) Error() string { return d.err.Error() }
func (d *dialError) Unwrap() error { return d.err }

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "ssh: disconnect")
}

// dropped reports whether the server closed a connection immediately after accepting the connection.
func dropped(err error) bool {
	if _, ok := errors.AsType[*dialError](err); ok {
		return errors.Is(err, syscall.ECONNRESET)
	}
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Silent reports whether a machine didn't respond at its address, because the machine is off or the network is broken. Silent returns false if the
// machine returned an error.
func Silent(err error) bool {
	if !errors.Is(err, ErrUnreachable) {
		return false
	}
	_, isDNS := errors.AsType[*net.DNSError](err)
	_, isOpen := errors.AsType[*ssh.OpenChannelError](err)
	return !isDNS && !isOpen && !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, errHandshakeTimeout) &&
		!strings.Contains(err.Error(), "no common algorithm") && !dropped(err)
}

// explain adds the cause and a remedy to the error of a failed connection.
func (c *Client) explain(e *endpoint, via *conn, err error) error {
	if errors.Is(err, ErrHostKey) || hint.Of(err) != "" {
		return err
	}
	remedy := fmt.Sprintf("check that the machine is on and that its address and port (%d) are right: check %s", e.port, e.field("ssh-port", "Port"))
	through := ""
	if via != nil {
		through = " through " + via.name
	}
	dns, isDNS := errors.AsType[*net.DNSError](err)
	open, isOpen := errors.AsType[*ssh.OpenChannelError](err)
	switch {
	case isDNS && dns.IsNotFound:
		remedy = "check the host name, or give the IP address"
	case errors.Is(err, syscall.ECONNREFUSED):
		remedy = fmt.Sprintf("the machine answers, but no SSH server listens on port %d: check %s, and that sshd runs", e.port, e.field("ssh-port", "Port"))
	case isOpen && open.Reason == ssh.Prohibited:
		remedy = "allow TCP forwarding on the jump host (AllowTcpForwarding in its sshd_config)"
	case errors.Is(err, errHandshakeTimeout):
		remedy = fmt.Sprintf("port %d takes connections but no SSH server answers there: check %s, or restart sshd on the machine", e.port, e.field("ssh-port", "Port"))
	case strings.Contains(err.Error(), "no common algorithm"):
		remedy = "the machine's SSH server is too old or too restricted: update it or its sshd_config"
	case dropped(err):
		remedy = "the machine's SSH server drops connections: look at its log, and at MaxStartups in sshd_config"
	}
	return hint.Errorf(remedy, "reach %s (%s)%s%s: %w: %w", e.name, e.address(), through, e.origin("HostName", "Port", "ProxyJump"), ErrUnreachable, err)
}

// missedKeepAlives is the number of consecutive keepalives without a response after which the connection counts as lost.
const missedKeepAlives = 3

// keepAlive sends a keepalive to the server at each interval. keepAlive closes the connection after missedKeepAlives consecutive keepalives without a
// response. keepAlive returns when the connection has ended.
func (c *conn) keepAlive(interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var asking atomic.Bool
	missed := 0
	for {
		select {
		case <-c.done:
			return
		case <-ticker.C:
		}
		if asking.Load() {
			if missed++; missed >= missedKeepAlives {
				c.fail(fmt.Errorf("no answer for %s", time.Duration(missedKeepAlives)*interval))
				return
			}
			continue
		}
		missed = 0
		asking.Store(true)
		go func() {
			_, _, _ = c.client.SendRequest("keepalive@openssh.com", true, nil)
			asking.Store(false)
		}()
	}
}
