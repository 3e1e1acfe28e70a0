package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller/rendezvous"
	"github.com/openpai/paictl/pkg/job/controller/server"
	"github.com/openpai/paictl/pkg/runtime/peers"
)

func TestCodeIsForTheTasksOfItsJob(t *testing.T) {
	h := newHarness(t)
	name, other := h.put(t, "code"), h.put(t, "other")
	for what, sent := range map[string]string{
		"none": "", "of other code": codeToken(other), "of the job's addresses": "Bearer " + peers.Token([]byte("key"), name, "uid"),
		"of another cluster": "Bearer " + peers.Token([]byte("another"), peers.OfCode(name), "uid"), "made up": "Bearer uid.00",
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/code/"+name, nil)
		r.Header.Set("Authorization", sent)
		w := httptest.NewRecorder()
		server.New(h.options).TaskHandler().ServeHTTP(w, r)
		assert.Equal(t, http.StatusForbidden, w.Code, what)
		assert.Equal(t, "Forbidden", failure(t, w.Result()).Code)
	}
	h.options.Peers.Key = func() []byte { return nil }
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/code/"+name, nil)
	r.Header.Set("Authorization", codeToken(name))
	w := httptest.NewRecorder()
	server.New(h.options).TaskHandler().ServeHTTP(w, r)
	assert.Equal(t, http.StatusServiceUnavailable, w.Code, "the controller doesn't know the key yet")
}

func TestCodeIsSentInOneRange(t *testing.T) {
	h := newHarness(t)
	name := h.put(t, "0123456789")
	for ranges, want := range map[string]string{
		"bytes=2-3": "206 23", "bytes=-2": "206 89", "bytes=7-99": "206 789", "rows=1-2": "200 0123456789", "bytes=x": "416", "bytes=10-": "416",
		"bytes=0-1,4-5": "416", "bytes=0-,0-,0-": "416", "bytes=,0-1": "416", "": "200 0123456789",
	} {
		for _, handler := range []http.Handler{server.New(h.options).Handler(), server.New(h.options).TaskHandler()} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/code/"+name, nil)
			r.Header.Set("X-Pai-Token", token)
			r.Header.Set("Authorization", codeToken(name))
			if ranges != "" {
				r.Header.Set("Range", ranges)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			got := fmt.Sprint(w.Code)
			if w.Code < 300 {
				got += " " + w.Body.String()
			}
			assert.Equal(t, want, got, ranges)
		}
	}
}

// pipes is a listener for connections in memory. Each connection has a different client address.
type pipes struct {
	connections chan net.Conn
	n           int
}

func (p *pipes) Accept() (net.Conn, error) {
	c, ok := <-p.connections
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p *pipes) Close() error   { return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	mine, its := net.Pipe()
	p.n++
	p.connections <- &from{its, &net.TCPAddr{IP: net.IPv4(10, 0, byte(p.n>>8), byte(p.n)), Port: 4000}}
	return mine
}

type from struct {
	net.Conn
	address net.Addr
}

func (f *from) RemoteAddr() net.Addr { return f.address }

// whole is a store with one archive of code in memory. The code is read like code in a database.
type whole struct {
	archive.Store
	data   []byte
	opened *atomic.Int32
}

func (w whole) Code(context.Context, string) (io.ReadSeekCloser, int64, error) {
	if w.opened != nil {
		w.opened.Add(1)
	}
	return struct {
		io.ReadSeeker
		io.Closer
	}{onlyReader{bytes.NewReader(w.data)}, io.NopCloser(nil)}, int64(len(w.data)), nil
}

// onlyReader is a reader that doesn't implement io.WriterTo.
type onlyReader struct{ io.ReadSeeker }

// serveTasks serves requests of tasks over pipes until the end of the test.
func serveTasks(t *testing.T, o server.Options) *pipes {
	t.Helper()
	p := &pipes{connections: make(chan net.Conn)}
	srv := &http.Server{Handler: server.New(o).TaskHandler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(p) }() // it ends with its listener
	t.Cleanup(func() {
		close(p.connections)
		_ = srv.Close()
	})
	return p
}

// heap returns how many bytes of the heap are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// With 1 MiB in memory for each download, 400 clients that read nothing would take 421 MiB.
func TestReadersThatReadNothingHoldLittleAndAreCut(t *testing.T) {
	sum := strings.Repeat("1", 64)
	synctest.Test(t, func(t *testing.T) {
		data := make([]byte, 16<<20)
		var opened atomic.Int32
		p := serveTasks(t, server.Options{Store: whole{data: data, opened: &opened}, Peers: server.Peers{Key: func() []byte { return []byte("key") }}})
		before := heap()
		var open []net.Conn
		for i := range 400 {
			c := p.dial()
			job := peers.Token([]byte("key"), peers.OfCode(sum), fmt.Sprint("uid", i))
			_, err := fmt.Fprintf(c, "GET /v1/code/%s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", sum, job)
			require.NoError(t, err)
			open = append(open, c)
		}
		synctest.Wait() // all of them are stuck
		held := heap() - before
		require.EqualValues(t, 400, opened.Load())
		t.Logf("400 readers hold %d MiB", held>>20)
		assert.Less(t, held, int64(48<<20))

		time.Sleep(31 * time.Second)
		for _, c := range open {
			n, err := io.Copy(io.Discard, c)
			require.NoError(t, err)
			assert.Zero(t, n)
		}
		runtime.KeepAlive(data)
	})
}

func TestAReaderThatIsSlowForLongIsCut(t *testing.T) {
	sum := strings.Repeat("1", 64)
	for rate, whole200 := range map[int]bool{16 << 10: false, 64 << 10: true} {
		synctest.Test(t, func(t *testing.T) {
			data := make([]byte, 4<<20)
			p := serveTasks(t, server.Options{Store: whole{data: data}, Peers: server.Peers{Key: func() []byte { return []byte("key") }}})
			c := p.dial()
			_, err := fmt.Fprintf(c, "GET /v1/code/%s HTTP/1.1\r\nHost: a\r\nAuthorization: %s\r\n\r\n", sum, codeToken(sum))
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			require.NoError(t, err)
			var got int64
			for err == nil {
				var n int64
				n, err = io.CopyN(io.Discard, resp.Body, int64(rate))
				got += n
				time.Sleep(time.Second)
			}
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, whole200, got == int64(len(data)), "%d bytes a second: %d bytes", rate, got)
		})
	}
}

// A job can use only a share of the downloads, so that another job gets its code immediately.
func TestOneJobDoesntTakeAllDownloads(t *testing.T) {
	sum := strings.Repeat("1", 64)
	synctest.Test(t, func(t *testing.T) {
		p := serveTasks(t, server.Options{Store: whole{data: make([]byte, 1<<20)}, Peers: server.Peers{Key: func() []byte { return []byte("key") }}})
		ask := func(uid string) net.Conn {
			c := p.dial()
			_, err := fmt.Fprintf(c, "GET /v1/code/%s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", sum, peers.Token([]byte("key"), peers.OfCode(sum), uid))
			require.NoError(t, err)
			return c
		}
		for range 64 {
			ask("greedy")
		}
		synctest.Wait()
		more, begun := ask("greedy"), time.Now()
		resp, err := http.ReadResponse(bufio.NewReader(ask("another")), nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, resp.StatusCode)
		n, err := io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, int64(1<<20), n)
		assert.Zero(t, time.Since(begun))

		resp, err = http.ReadResponse(bufio.NewReader(more), nil)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, http.StatusServiceUnavailable, resp.StatusCode, "it has to try again")
		assert.NotEmpty(t, resp.Header.Get("Retry-After"))
	})
}

// The addresses of a large job are sent to many of its tasks at the same time.
func TestTasksThatReadNoAddressesHoldLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board := rendezvous.New()
		data := bytes.Repeat([]byte("0123456789"), 50_000)
		board.Publish(rendezvous.Attempt{Framework: "f", UID: "uid", Number: 1}, data)
		p := serveTasks(t, server.Options{Peers: server.Peers{Board: board, Key: func() []byte { return []byte("key") }, Leads: func() bool { return true }}})
		before := heap()
		ask := func() net.Conn {
			c := p.dial()
			_, err := fmt.Fprintf(c, "GET /v1/peers/f?attempt=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", peers.Token([]byte("key"), "f", "uid"))
			require.NoError(t, err)
			return c
		}
		for range 200 {
			ask()
		}
		synctest.Wait()
		held := heap() - before
		t.Logf("200 tasks hold %d MiB", held>>20)
		assert.Less(t, held, int64(16<<20))

		resp, err := http.ReadResponse(bufio.NewReader(ask()), nil)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		var m peers.Message
		require.NoError(t, json.Unmarshal(text, &m))
		assert.Equal(t, data, m.Data)
		assert.True(t, peers.Sealed(peers.Token([]byte("key"), "f", "uid"), m.Data, m.Seal))
	})
}
