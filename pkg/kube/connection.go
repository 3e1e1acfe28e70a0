package kube

import (
	"net/http"
	"net/http/httptrace"
	"sync"
)

// connection makes requests wait until the first request has connected, so that all requests share its HTTP/2 connection. Without it, the standard
// library opens a connection for each request that begins before the first is ready: 28 connections for "paictl status --once". Each handshake takes
// milliseconds of processor time on both sides.
type connection struct {
	connects chan struct{} // full while a request connects
	ready    chan struct{} // closed when a request has connected
	once     sync.Once
}

func newConnection() *connection {
	return &connection{connects: make(chan struct{}, 1), ready: make(chan struct{})}
}

// wrap wraps next in a transport that waits for the first connection. It is an argument for rest.Config.Wrap: all transports of a configuration share
// one connection.
func (c *connection) wrap(next http.RoundTripper) http.RoundTripper { return afterFirst{c, next} }

func (c *connection) done() { c.once.Do(func() { close(c.ready) }) }

// afterFirst is a transport that sends its requests over the first connection.
type afterFirst struct {
	first *connection
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper. If a request can't connect, the next waiting request tries.
func (t afterFirst) RoundTrip(req *http.Request) (*http.Response, error) {
	c, ctx := t.first, req.Context()
	select {
	case <-c.ready:
		return t.next.RoundTrip(req)
	default:
	}
	select {
	case <-c.ready:
		return t.next.RoundTrip(req)
	case <-ctx.Done():
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, ctx.Err()
	case c.connects <- struct{}{}:
	}
	defer func() { <-c.connects }()
	req = req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { c.done() }}))
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		c.done() // a transport for another protocol doesn't trace its connections
	}
	return resp, err
}
