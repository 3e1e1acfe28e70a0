package stream

import (
	"context"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport/websocket"
)

// heeding returns a configuration whose connection upgrades stop when their context ends, and therefore at kube's timeout and with Ctrl-C. By
// default, client-go's upgrades ignore the context while they wait for the server's response.
func heeding(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	outer := config.WrapTransport
	out.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		next = upgrade{next}
		if outer != nil {
			next = outer(next) // its context has the timeout
		}
		return next
	}
	return out
}

type upgrade struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper. It returns when the request's context ends, even if the server hasn't responded.
func (u upgrade) RoundTrip(req *http.Request) (*http.Response, error) {
	type answer struct {
		resp *http.Response
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		resp, err := u.next.RoundTrip(req) //nolint:bodyclose // the caller closes it, or it is closed below
		answered <- answer{resp, err}
	}()
	select {
	case a := <-answered:
		return a.resp, a.err
	case <-req.Context().Done():
		go func() {
			if a := <-answered; a.err == nil { // too late
				_ = a.resp.Body.Close()
				if ws, ok := u.next.(websocket.ConnectionHolder); ok {
					_ = ws.Connection().Close()
				}
			}
		}()
		return nil, context.Cause(req.Context())
	}
}
