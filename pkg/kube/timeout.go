package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// answerTimeout limits the time until the API server's response begins. The rest of the response has no limit, because watches and logs continue for
// hours.
const answerTimeout = 30 * time.Second

type patienceKey struct{}

// WithPatience returns a context whose requests have another limit for the time until the response begins. It is for responses that begin only after
// the server has done all of its work.
func WithPatience(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, limit)
}

// patience cancels a request if the response doesn't begin in time. rest.Config.Timeout would also interrupt every watch and log after this time.
// Each part of a large body that is sent restarts the time.
type patience struct {
	next  http.RoundTripper
	limit time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p patience) RoundTrip(req *http.Request) (*http.Response, error) {
	asked := req.Context()
	if limit, ok := asked.Value(patienceKey{}).(time.Duration); ok {
		p.limit = limit
	}
	ctx, cancel := context.WithCancelCause(asked)
	timer := time.AfterFunc(p.limit, func() { cancel(silence(p.limit)) })
	req = req.WithContext(ctx)
	var answered atomic.Bool
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = &sentBody{ReadCloser: req.Body, read: func() {
			timer.Reset(p.limit)
			if answered.Load() { // the server may respond before it has read the whole body
				timer.Stop()
			}
		}}
	}
	resp, err := p.next.RoundTrip(req)
	answered.Store(true)
	timer.Stop()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && asked.Err() == nil {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	held := &heldBody{ReadCloser: resp.Body, done: func() { cancel(nil) }}
	resp.Body = held
	if w, ok := held.ReadCloser.(io.Writer); ok { // a connection that switches to another protocol
		resp.Body = struct {
			*heldBody
			io.Writer
		}{held, w}
	}
	return resp, nil
}

// sentBody calls read whenever a part of the body is sent.
type sentBody struct {
	io.ReadCloser
	read func()
}

// Read implements io.Reader.
func (b *sentBody) Read(p []byte) (int, error) {
	b.read()
	return b.ReadCloser.Read(p)
}

// silence is the error for a server that doesn't respond in time. It is a net.Error.
type silence time.Duration

func (s silence) Error() string { return fmt.Sprintf("no answer within %s", time.Duration(s)) }

// Timeout implements net.Error. It returns true, because the request took too long.
func (silence) Timeout() bool { return true }

// Temporary implements net.Error. It returns true, because the server may respond to the next request.
func (silence) Temporary() bool { return true }

// heldBody releases the request's context when its body is closed.
type heldBody struct {
	io.ReadCloser
	done func()
}

// Close implements io.Closer.
func (b *heldBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
