package httpserver

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// served starts a server and returns its address and a function that stops the server and returns its error.
func served(t *testing.T, h http.HandlerFunc, o Options) (address string, end func() error) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, h, o) }()
	return l.Addr().String(), func() error {
		cancel()
		return <-ended
	}
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAServerEndsWithItsContextAndItsLastAnswer(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	var ending atomic.Bool
	address, end := served(t, func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-release
		_, _ = io.WriteString(w, "the end")
	}, Options{Connections: 4, Ending: func() {
		ending.Store(true)
		close(release)
	}})
	c := dial(t, address)
	_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	require.NoError(t, err)
	<-begun
	require.NoError(t, end())
	assert.True(t, ending.Load())
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, "the end", string(text))
}

func TestALongHeaderIsRefused(t *testing.T) {
	address, end := served(t, func(http.ResponseWriter, *http.Request) {}, Small())
	c := dial(t, address)
	_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", 16<<10))
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode)
	require.NoError(t, end())
}

func TestAServerThatCantListenSaysSo(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorIs(t, Serve(t.Context(), l, http.NotFoundHandler(), Small()), net.ErrClosed)
}

// If all connections are open, a network with few connections gets the place of a connection from the network with the most.
func TestTheGreediestNetworkMakesRoom(t *testing.T) {
	in := &callers{from: []string{"192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.3", "192.0.2.3", "192.0.2.3", "192.0.2.4", "192.0.2.5", "127.0.0.1"}}
	l := Limit(in, Options{Connections: 6})
	l.(*shared).share = 3
	for range 8 {
		_, err := l.Accept()
		require.NoError(t, err)
	}
	require.Len(t, in.hungUp, 2)
	assert.Equal(t, "192.0.2.3", in.hungUp[0], "of the network with three")
	open := map[string]int{}
	for network, parts := range l.(*shared).open {
		open[network] = len(parts)
	}
	assert.Len(t, open, 5, "all networks have a place")
	_, err := l.Accept()
	require.NoError(t, err, "this machine, too")
}

// If all networks have equally many connections, the next connection waits until another connection ends or the listener closes.
func TestWithoutAGreedyNetworkTheNextOneWaits(t *testing.T) {
	in := &callers{from: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}}
	l := Limit(in, Options{Connections: 2})
	first, err := l.Accept()
	require.NoError(t, err)
	_, err = l.Accept()
	require.NoError(t, err)
	time.AfterFunc(10*time.Millisecond, func() { _ = first.Close() })
	_, err = l.Accept()
	require.NoError(t, err)
	time.AfterFunc(10*time.Millisecond, func() { _ = l.Close() })
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}
