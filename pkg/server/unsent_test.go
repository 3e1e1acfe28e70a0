package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

func refusedAsBusy(t *testing.T, err error) {
	t.Helper()
	e, ok := errors.AsType[*wire.Error](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, http.StatusServiceUnavailable, e.Status)
	assert.Positive(t, e.RetryAfter)
}

func TestWhatWaitsForSlowReadersIsBounded(t *testing.T) {
	u := newUnsent()
	first, err := u.take("mallory", maxPersonUnsent-10)
	require.NoError(t, err)
	_, err = u.take("mallory", 11)
	refusedAsBusy(t, err)
	give := []func(){first}
	for i := range maxUnsent/maxPersonUnsent - 1 {
		g, err := u.take(fmt.Sprint("ann", i), maxPersonUnsent)
		require.NoError(t, err, "another person isn't limited by that")
		give = append(give, g)
	}
	_, err = u.take("bob", 11)
	refusedAsBusy(t, err)
	for _, g := range give {
		g()
	}
	assert.Empty(t, u.each)
	longest, err := u.take("ann", 1<<40)
	require.NoError(t, err, "the longest answer may be the only one")
	_, err = u.take("bob", 11)
	refusedAsBusy(t, err)
	longest()
	require.True(t, u.all.TryAcquire(maxUnsent), "all is given back")
}

// longList is a request for a twelfth of all rows that may be in memory.
type longList struct{}

func (*longList) Rows() int { return maxRows / 12 }

type listOf struct{ Rows []string }

// slow requests a path, and reads only the beginning of the response.
func slow(t *testing.T, address, path string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	_, err = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: server\r\n\r\n")
	require.NoError(t, err)
	line, err := bufio.NewReaderSize(conn, 16).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 200 OK\r\n", line)
}

func TestWhoReadsAListSlowlyHoldsNoRows(t *testing.T) {
	var mu sync.Mutex
	var lists []weak.Pointer[listOf]
	make10MB := func() *listOf {
		l := &listOf{}
		for i := range (*longList)(nil).Rows() {
			l.Rows = append(l.Rows, strings.Repeat(fmt.Sprint("row ", i, " "), 200))
		}
		mu.Lock()
		defer mu.Unlock()
		lists = append(lists, weak.Make(l))
		return l
	}
	list := JSON(http.MethodGet, "/api/list", "open", "Lists", func(context.Context, *app.Actions, *longList) (*listOf, error) { return make10MB(), nil })
	watch := Route{Method: http.MethodGet, Path: "/api/watch", Rule: "open", Summary: "Watches", Limit: Limit{Stream: true}, Serve: func(c *Call) error {
		give, err := c.Weigh((*longList)(nil).Rows())
		if err != nil {
			return err
		}
		e, l := c.Events(), make10MB()
		send, err := e.Together(func() error {
			for _, row := range l.Rows {
				if err := e.AddJSON("job", "", row); err != nil {
					return err
				}
			}
			return nil
		})
		give()
		if err != nil {
			return err
		}
		return send()
	}}
	s := New(Options{Routes: []Route{list, watch}, Log: slog.New(slog.DiscardHandler)})
	s.rows.wait = 10 * time.Millisecond
	web := httptest.NewServer(s)
	t.Cleanup(web.CloseClientConnections)
	for i := range 12 {
		slow(t, web.Listener.Addr().String(), []string{"/api/list", "/api/watch"}[i%2])
	}
	all, err := s.rows.take(t.Context(), "ann", maxPersonRows)
	require.NoError(t, err, "twelve who don't read hold none of them")
	rest, err := s.rows.take(t.Context(), "bob", maxRows-maxPersonRows)
	require.NoError(t, err)
	rest()
	all()
	runtime.GC()
	for _, l := range lists {
		assert.Nil(t, l.Value(), "nor are they in memory")
	}
	assert.False(t, s.unsent.all.TryAcquire(maxUnsent), "what waits counts")
	assert.True(t, s.unsent.all.TryAcquire(maxUnsent-maxPersonUnsent), "it is compressed")
}
