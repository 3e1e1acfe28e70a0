package kube

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A response that doesn't begin, such as the response to a watch without events, doesn't delay other requests.
func TestRequestsShareTheFirstConnection(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	quiet := make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/quiet" {
			<-quiet
		}
	}))
	s.EnableHTTP2 = true
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	all := newConnection()
	var done sync.WaitGroup
	ask := func(path string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		if !assert.NoError(t, err) {
			return
		}
		resp, err := all.wrap(s.Client().Transport).RoundTrip(req)
		if assert.NoError(t, err) {
			assert.Equal(t, http.StatusOK, resp.StatusCode)
			assert.NoError(t, resp.Body.Close())
		}
	}
	first := make(chan struct{})
	go func() { defer close(first); ask("/quiet") }()
	for range 30 {
		done.Go(func() { ask("/") })
	}
	done.Wait()
	close(quiet)
	<-first
	assert.EqualValues(t, 1, connections.Load())
}

func TestTheNextRequestConnectsIfTheFirstCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		broken := errors.New("connection refused")
		next := newConnection().wrap(roundTrip(func(*http.Request) (*http.Response, error) {
			if asked.Add(1) < 3 {
				return nil, broken
			}
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}))
		for range 2 {
			resp, err := next.RoundTrip(request(t))
			require.ErrorIs(t, err, broken)
			require.Nil(t, resp)
		}
		resp, err := next.RoundTrip(request(t))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	})
}

func TestARequestThatWaitsForTheFirstCanBeCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connecting := make(chan struct{})
		next := newConnection().wrap(roundTrip(func(*http.Request) (*http.Response, error) {
			<-connecting
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}))
		var first sync.WaitGroup
		first.Go(func() {
			resp, err := next.RoundTrip(request(t))
			if assert.NoError(t, err) {
				assert.NoError(t, resp.Body.Close())
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		resp, err := next.RoundTrip(request(t).WithContext(ctx))
		require.ErrorIs(t, err, context.Canceled)
		require.Nil(t, resp)
		close(connecting)
		first.Wait()
	})
}
