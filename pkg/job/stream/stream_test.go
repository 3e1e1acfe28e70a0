package stream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/kube"
)

// peer is the server's end of a WebSocket.
type peer struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

// server answers every request with a WebSocket that handle serves.
func server(t *testing.T, handle func(*peer, *http.Request)) *kube.Cluster {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		protocol, _, _ := strings.Cut(r.Header.Get("Sec-WebSocket-Protocol"), ",")
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
			accept(r.Header.Get("Sec-WebSocket-Key")), protocol)
		handle(&peer{t, c, buffered.Reader}, r)
	}))
	t.Cleanup(s.Close)
	return cluster(t, s)
}

func cluster(t *testing.T, s *httptest.Server) *kube.Cluster {
	t.Helper()
	config := &rest.Config{Host: s.URL, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return &kube.Cluster{Config: config, Client: client}
}

func (p *peer) send(final bool, op byte, body []byte) {
	b := []byte{op}
	if final {
		b[0] |= 0x80
	}
	switch n := len(body); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	_, _ = p.conn.Write(append(b, body...))
}

func (p *peer) message(channel byte, text string) {
	p.send(true, opBinary, append([]byte{channel}, text...))
}

// receive reads one frame of the client, which must be masked.
func (p *peer) receive() (op byte, body []byte, ok bool) {
	var head [2]byte
	if _, err := io.ReadFull(p.r, head[:]); err != nil {
		return 0, nil, false
	}
	assert.NotZero(p.t, head[1]&0x80, "a client's frame is masked")
	n := int(head[1] & 0x7f)
	switch n {
	case 126:
		var b [2]byte
		_, _ = io.ReadFull(p.r, b[:])
		n = int(binary.BigEndian.Uint16(b[:]))
	case 127:
		var b [8]byte
		_, _ = io.ReadFull(p.r, b[:])
		n = int(binary.BigEndian.Uint64(b[:]))
	}
	var mask [4]byte
	_, _ = io.ReadFull(p.r, mask[:])
	body = make([]byte, n)
	_, err := io.ReadFull(p.r, body)
	for i := range body {
		body[i] ^= mask[i&3]
	}
	return head[0] & 0x0f, body, err == nil
}

const success = `{"metadata":{},"status":"Success"}`

func TestACommandGetsItsInputAndGivesItsOutputAndExitCode(t *testing.T) {
	large := strings.Repeat("x", 70_000)
	c := server(t, func(p *peer, r *http.Request) {
		assert.Equal(t, "/api/v1/namespaces/n/pods/p/exec", r.URL.Path)
		assert.Equal(t, []string{"cat", "-"}, r.URL.Query()["command"])
		assert.Equal(t, "true", r.URL.Query().Get("stdin"))
		assert.Equal(t, "app", r.URL.Query().Get("container"))
		assert.Equal(t, "Bearer token", r.Header.Get("Authorization"))
		for _, channel := range []byte{channelStdout, channelStderr, channelStatus} {
			p.message(channel, "")
		}
		p.send(true, opPing, []byte("are you there"))
		var got bytes.Buffer
		for {
			op, body, ok := p.receive()
			if !ok {
				t.Error("the client hung up")
				return
			}
			if op == opPong {
				assert.Equal(t, "are you there", string(body))
				continue
			}
			if body[0] == channelClose {
				assert.Equal(t, []byte{channelClose, channelStdin}, body)
				break
			}
			got.Write(body[1:])
		}
		p.send(false, opBinary, append([]byte{channelStdout}, got.Bytes()[:10]...)) // in two frames
		p.send(true, opContinuation, got.Bytes()[10:])
		p.message(channelStderr, "oh")
		p.message(channelStatus, `{"status":"Failure","reason":"NonZeroExitCode","message":"exit 3","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}`)
	})
	var out, errOut bytes.Buffer
	err := Exec(t.Context(), c, Command{Namespace: "n", Pod: "p", Container: "app", Args: []string{"cat", "-"}, Stdin: strings.NewReader(large), Stdout: &out, Stderr: &errOut})
	var exit *ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 3, exit.Code)
	assert.Equal(t, large, out.String())
	assert.Equal(t, "oh", errOut.String())
}

func TestATerminalTellsItsSize(t *testing.T) {
	c := server(t, func(p *peer, r *http.Request) {
		assert.Equal(t, "true", r.URL.Query().Get("tty"))
		_, body, _ := p.receive()
		assert.Equal(t, append([]byte{channelSize}, `{"Width":80,"Height":24}`...), body)
		p.message(channelStatus, success)
	})
	sizes := make(chan Size, 1)
	sizes <- Size{80, 24}
	require.NoError(t, Exec(t.Context(), c, Command{Namespace: "n", Pod: "p", Args: []string{"sh"}, TTY: true, Sizes: sizes}))
}

func TestACommandThatCannotStartSaysWhy(t *testing.T) {
	c := server(t, func(p *peer, _ *http.Request) {
		p.message(channelStatus, `{"status":"Failure","reason":"InternalError","message":"no such container"}`)
	})
	require.EqualError(t, Exec(t.Context(), c, Command{Namespace: "n", Pod: "p"}), "no such container")
}

func TestALostConnectionIsAnError(t *testing.T) {
	for name, end := range map[string]func(*peer){
		"in silence": func(*peer) {}, "properly, but too early": func(p *peer) { p.send(true, opClose, nil) },
		"in the middle": func(p *peer) { _, _ = p.conn.Write([]byte{0x82, 5, 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			c := server(t, func(p *peer, _ *http.Request) { end(p) })
			require.ErrorIs(t, Exec(t.Context(), c, Command{Namespace: "n", Pod: "p"}), errLost)
		})
	}
}

func TestWhatIsNoWebSocketIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		frame []byte
		want  string
	}{
		"masked":    {[]byte{0x82, 0x81, 0, 0, 0, 0, 1}, "the server masks its WebSocket frames"},
		"huge":      {append([]byte{0x82, 127}, 0xff, 0, 0, 0, 0, 0, 0, 0), "a WebSocket message that is too large"},
		"of a kind": {[]byte{0x8b, 0}, "a WebSocket frame of unknown kind 11"},
		"no status": {append([]byte{0x82, 4, channelStatus}, "{{{"...), "the command's status isn't understood: invalid character '{' looking for beginning of object key string"},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(t, func(p *peer, _ *http.Request) {
				_, _ = p.conn.Write(c.frame)
				p.receive()
			})
			require.EqualError(t, Exec(t.Context(), s, Command{Namespace: "n", Pod: "p"}), c.want)
		})
	}
}

func TestTheAPIServersRefusalIsTold(t *testing.T) {
	for body, want := range map[string]string{
		`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"p\" not found","reason":"NotFound","code":404}`: `pods "p" not found`,
		"bad gateway\n": "the API server answers: bad gateway",
		"":              "the API server answers: 404 Not Found",
	} {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, body)
		}))
		require.EqualError(t, Exec(t.Context(), cluster(t, s), Command{Namespace: "n", Pod: "p"}), want)
		s.Close()
	}
}

func TestCancellingEndsACommand(t *testing.T) {
	started := make(chan struct{})
	c := server(t, func(p *peer, _ *http.Request) {
		close(started)
		p.receive() // until the client hangs up
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	require.ErrorIs(t, Exec(ctx, c, Command{Namespace: "n", Pod: "p", Stdout: io.Discard}), context.Canceled)
}

func TestAPortIsForwarded(t *testing.T) {
	c := server(t, func(p *peer, r *http.Request) {
		assert.Equal(t, "/api/v1/namespaces/n/pods/p/portforward", r.URL.Path)
		assert.Equal(t, "8080", r.URL.Query().Get("ports"))
		p.message(channelData, "\x90\x1f")
		p.message(channelError, "\x90\x1f")
		_, body, _ := p.receive()
		assert.Equal(t, "\x00ping", string(body))
		p.message(channelData, "pong")
		p.send(true, opClose, nil)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, c, l, Port{Namespace: "n", Pod: "p", Number: 8080}, func(err error) { t.Error(err) })
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	_, err = io.WriteString(conn, "ping")
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Equal(t, "pong", string(answer))
	cancel()
	require.ErrorIs(t, <-served, context.Canceled)
}

func TestAPortThatNobodyServesIsTold(t *testing.T) {
	c := server(t, func(p *peer, _ *http.Request) {
		p.message(channelData, "\x90\x1f")
		p.message(channelError, "\x90\x1f")
		p.message(channelError, "connection refused")
		p.receive()
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := make(chan error, 1)
	go func() {
		_ = Serve(ctx, c, l, Port{Namespace: "n", Pod: "p", Number: 8080}, func(err error) { told <- err })
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.EqualError(t, <-told, "forward a connection to port 8080 of p: connection refused")
}
