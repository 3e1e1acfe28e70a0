package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// answerTimeout bounds how long the API server may take until it begins to answer. What comes
// then may take its time: watches and logs go on for hours.
const answerTimeout = 30 * time.Second

// patience gives up on a server that doesn't begin to answer. rest.Config.Timeout would also
// cut every watch and log after that time.
type patience struct {
	next  http.RoundTripper
	limit time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p patience) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(p.limit, func() { cancel(silence(p.limit)) })
	resp, err := p.next.RoundTrip(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && req.Context().Err() == nil {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	resp.Body = &heldBody{ReadCloser: resp.Body, done: func() { cancel(nil) }}
	return resp, nil
}

// silence is the error of a server that doesn't answer. It is a net.Error.
type silence time.Duration

func (s silence) Error() string { return fmt.Sprintf("no answer within %s", time.Duration(s)) }

// Timeout says that waiting was the problem.
func (silence) Timeout() bool { return true }

// Temporary is part of net.Error.
func (silence) Temporary() bool { return true }

// heldBody frees the request's context when its body is closed.
type heldBody struct {
	io.ReadCloser
	done func()
}

// Close implements io.Closer.
func (b *heldBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
