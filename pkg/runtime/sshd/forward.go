package sshd

import (
	"context"
	"io"
	"net"
	"strconv"

	"github.com/gliderlabs/ssh"
	xssh "golang.org/x/crypto/ssh"
)

// forward connects a client to an address. It checks no permission, because a user who may log in can also connect from a
// session. Unlike the library, it closes each direction separately. A client that has sent its whole request still waits for
// the response.
func forward(_ *ssh.Server, _ *xssh.ServerConn, asked xssh.NewChannel, ctx ssh.Context) {
	var to struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}
	if err := xssh.Unmarshal(asked.ExtraData(), &to); err != nil {
		_ = asked.Reject(xssh.ConnectionFailed, "the request can't be read") // here and below, an error means that the client has disconnected
		return
	}
	limited, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(limited, "tcp", net.JoinHostPort(to.Host, strconv.FormatUint(uint64(to.Port), 10)))
	if err != nil {
		_ = asked.Reject(xssh.ConnectionFailed, err.Error())
		return
	}
	defer func() { _ = conn.Close() }()
	ch, requests, err := asked.Accept()
	if err != nil {
		return
	}
	defer func() { _ = ch.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	go func() {
		xssh.DiscardRequests(requests)
		_ = conn.Close() // the client has closed the channel
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(conn, ch)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}()
	_, _ = io.Copy(ch, conn)
	_ = ch.CloseWrite()
	<-done
}
