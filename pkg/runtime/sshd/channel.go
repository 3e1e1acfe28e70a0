package sshd

import (
	"context"
	"time"

	"github.com/gliderlabs/ssh"
	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// channel is the channel of one session. The library reports the end of a connection, but not the end of a session. The library
// doesn't support signals, and changes the output for clients with a terminal.
type channel struct {
	xssh.NewChannel
	raw     xssh.Channel
	gone    context.Context //nolint:containedctx // the type exists to hold it
	cancel  context.CancelFunc
	delay   time.Duration    // outputDelay except in tests
	sizes   chan ssh.Window  // the latest size
	signals chan unix.Signal // signals that the client sends
}

func newChannel(ctx context.Context, asked xssh.NewChannel, delay time.Duration) *channel {
	c := &channel{NewChannel: asked, delay: delay, sizes: make(chan ssh.Window, 1), signals: make(chan unix.Signal, 16)}
	c.gone, c.cancel = context.WithCancel(ctx)
	return c
}

// sessions returns the handler for session channels.
func sessions(c *Config) ssh.ChannelHandler {
	return func(_ *ssh.Server, conn *xssh.ServerConn, asked xssh.NewChannel, ctx ssh.Context) {
		n := newChannel(ctx, asked, c.delay)
		defer n.cancel()
		// Use a separate server for each session, because the library passes only the session to handlers.
		one := &ssh.Server{
			Handler:           func(s ssh.Session) { session(s, n, c) },
			SubsystemHandlers: map[string]ssh.SubsystemHandler{"sftp": func(s ssh.Session) { files(s, n) }},
		}
		ssh.DefaultSessionHandler(one, conn, n, ctx)
	}
}

// Accept accepts the channel. It filters out requests that take handles.
func (c *channel) Accept() (xssh.Channel, <-chan *xssh.Request, error) {
	raw, all, err := c.NewChannel.Accept()
	if err != nil {
		return nil, nil, err
	}
	c.raw = raw
	rest := make(chan *xssh.Request)
	go func() {
		defer close(rest) // the channel is closed: the session ends
		for r := range all {
			if !c.take(r) {
				rest <- r
			}
		}
	}()
	return raw, rest, nil
}

// take reports whether it has handled a request.
func (c *channel) take(r *xssh.Request) bool {
	ok := false
	switch r.Type {
	case "window-change":
		var w struct{ Width, Height, X, Y uint32 }
		if ok = xssh.Unmarshal(r.Payload, &w) == nil; ok {
			select {
			case <-c.sizes: // drop an unread, outdated size
			default:
			}
			c.sizes <- ssh.Window{Width: int(w.Width), Height: int(w.Height)}
		}
	case "signal":
		var s struct{ Name string }
		if xssh.Unmarshal(r.Payload, &s) == nil {
			if n := unix.SignalNum("SIG" + s.Name); n != 0 {
				select {
				case c.signals <- n:
					ok = true
				default: // more signals than any program handles
				}
			}
		}
	case "auth-agent-req@openssh.com":
		// The library would confirm this request without doing anything.
	default:
		return false
	}
	if r.WantReply {
		_ = r.Reply(ok, nil) // an error means that the client has disconnected
	}
	return true
}

// attend handles the client's requests about a running program, until the program exits.
func (c *channel) attend(ended <-chan struct{}, pid int, resize func(ssh.Window), hangUp func()) {
	gone := c.gone.Done()
	for {
		select {
		case <-ended:
			return
		case w := <-c.sizes:
			resize(w)
		case s := <-c.signals:
			_ = unix.Kill(-pid, s) // it may have ended already
		case <-gone:
			hangUp()
			gone = nil
		}
	}
}
