package netcheck

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var me = Identity{Pod: "netcheck-a", Node: "pai-2", Address: "10.44.1.3"}

func TestAServerTellsWhoItIsUntilItIsStopped(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, me) }()

	got, err := Get(t.Context(), &http.Client{}, "http://"+l.Addr().String()+"/")
	require.NoError(t, err)
	assert.Equal(t, "pod netcheck-a on node pai-2, address 10.44.1.3", got)

	stop()
	require.NoError(t, <-ended)
	_, err = Get(t.Context(), &http.Client{}, "http://"+l.Addr().String()+"/")
	require.Error(t, err)
}

func TestOnlyItsOwnPathsAreAnswered(t *testing.T) {
	srv := httptest.NewServer(Handler(Identity{}))
	defer srv.Close()
	got, err := Get(t.Context(), srv.Client(), srv.URL+"/healthz")
	require.NoError(t, err)
	assert.Equal(t, "ok", got)
	_, err = Get(t.Context(), srv.Client(), srv.URL+"/etc/passwd")
	require.ErrorContains(t, err, "404")
	got, err = Get(t.Context(), srv.Client(), srv.URL+"/")
	require.NoError(t, err)
	assert.Contains(t, got, "(unknown)")
}

func TestTryGoesOnUntilThereIsAnAnswer(t *testing.T) {
	n := 0
	got, err := Try(t.Context(), time.Microsecond, func(context.Context) (string, error) {
		if n++; n < 3 {
			return "", errors.New("not yet")
		}
		return "here", nil
	})
	require.NoError(t, err)
	assert.Equal(t, "here", got)
	assert.Equal(t, 3, n)
}

func TestTryReturnsTheLastErrorWhenTimeIsUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Try(ctx, time.Hour, func(context.Context) (string, error) {
		cancel()
		return "", errors.New("connection refused")
	})
	require.EqualError(t, err, "connection refused")
}

func TestTryDoesNotRepeatWhatCannotWork(t *testing.T) {
	_, err := Try(t.Context(), time.Hour, func(ctx context.Context) (string, error) {
		return Get(ctx, &http.Client{}, "http://[bad")
	})
	require.ErrorContains(t, err, "missing ']'")
}

type names map[string][]string

func (n names) LookupHost(_ context.Context, name string) ([]string, error) {
	if a, ok := n[name]; ok {
		return a, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func TestResolveListsAddressesSorted(t *testing.T) {
	got, err := Resolve(t.Context(), names{"a": {"10.0.0.2", "10.0.0.1"}}, "a")
	require.NoError(t, err)
	assert.Equal(t, "a is 10.0.0.1, 10.0.0.2", got)
	_, err = Resolve(t.Context(), names{}, "b")
	require.ErrorContains(t, err, "no such host")
}
