package stream

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6455 wants it; it protects nothing
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// What a frame is (RFC 6455, section 5.2).
const (
	opContinuation = 0
	opText         = 1
	opBinary       = 2
	opClose        = 8
	opPing         = 9
	opPong         = 10
)

// maxMessage bounds one message, in bytes; the API server sends some 32 KiB at a time.
const maxMessage = 16 << 20

// conn is the client's end of a WebSocket.
type conn struct {
	protocol string
	rw       io.ReadWriteCloser
	r        *bufio.Reader
	stop     func() bool

	mu  sync.Mutex // of writing
	out []byte
}

// dial asks the API server for a WebSocket. It is an HTTP request like all others up to the server's
// answer, so that credentials, proxies and the server's errors are as they are everywhere.
func dial(ctx context.Context, config *rest.Config, r *rest.Request, protocols ...string) (*conn, error) {
	one := rest.CopyConfig(config)
	one.NextProtos = []string{"http/1.1"} // HTTP/2 has no upgrade
	client, err := rest.HTTPClientFor(one)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL().String(), nil)
	if err != nil {
		return nil, err
	}
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	challenge := base64.StdEncoding.EncodeToString(key)
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13",
		"Sec-Websocket-Key": challenge, "Sec-Websocket-Protocol": strings.Join(protocols, ", ")} {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer func() { _ = resp.Body.Close() }()
		return nil, refusal(resp)
	}
	rw, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || resp.Header.Get("Sec-Websocket-Accept") != accept(challenge) {
		_ = resp.Body.Close()
		return nil, errors.New("the API server's answer is no WebSocket")
	}
	c := &conn{protocol: resp.Header.Get("Sec-Websocket-Protocol"), rw: rw, r: bufio.NewReader(rw)}
	c.stop = context.AfterFunc(ctx, func() { _ = rw.Close() })
	return c, nil
}

func accept(challenge string) string {
	sum := sha1.Sum([]byte(challenge + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // as above
	return base64.StdEncoding.EncodeToString(sum[:])
}

// refusal is what the API server says instead of opening a WebSocket.
func refusal(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Status == metav1.StatusFailure {
		return apierrors.FromObject(&status)
	}
	text := strings.TrimSpace(string(body))
	if text == "" {
		text = resp.Status
	}
	return fmt.Errorf("the API server answers: %s", text)
}

func (c *conn) close() {
	c.stop()
	_ = c.rw.Close()
}

// read returns the next message of data. io.EOF means that the server closed the connection properly.
func (c *conn) read() ([]byte, error) {
	var message []byte
	for {
		final, op, payload, err := c.frame(maxMessage - len(message))
		if err != nil {
			return nil, err
		}
		switch op {
		case opPing:
			if err := c.write(opPong, payload); err != nil {
				return nil, err
			}
		case opPong:
		case opClose:
			_ = c.write(opClose, payload) // it is over in any case
			return nil, io.EOF
		case opText, opBinary, opContinuation:
			message = append(message, payload...)
			if final {
				return message, nil
			}
		default:
			return nil, fmt.Errorf("a WebSocket frame of unknown kind %d", op)
		}
	}
}

// frame reads one frame. Servers don't mask theirs.
func (c *conn) frame(limit int) (final bool, op byte, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return false, 0, nil, lost(err)
	}
	size := uint64(head[1] & 0x7f)
	switch size {
	case 126:
		var b [2]byte
		_, err = io.ReadFull(c.r, b[:])
		size = uint64(binary.BigEndian.Uint16(b[:]))
	case 127:
		var b [8]byte
		_, err = io.ReadFull(c.r, b[:])
		size = binary.BigEndian.Uint64(b[:])
	}
	switch {
	case err != nil:
		return false, 0, nil, lost(err)
	case head[1]&0x80 != 0:
		return false, 0, nil, errors.New("the server masks its WebSocket frames")
	case size > uint64(max(limit, 0)):
		return false, 0, nil, errors.New("a WebSocket message that is too large")
	}
	payload = make([]byte, size)
	if _, err := io.ReadFull(c.r, payload); err != nil {
		return false, 0, nil, lost(err)
	}
	return head[0]&0x80 != 0, head[0] & 0x0f, payload, nil
}

// errLost is a connection that ended in the middle.
var errLost = errors.New("the connection to the API server was lost")

func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errLost
	}
	return fmt.Errorf("%w: %w", errLost, err)
}

// write sends one message made of parts. Clients mask what they send, with a key that need not be
// secret from anybody here.
func (c *conn) write(op byte, parts ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	b := append(c.out[:0], 0x80|op)
	switch {
	case size < 126:
		b = append(b, 0x80|byte(size))
	case size < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(size))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(size))
	}
	var mask [4]byte
	_, _ = rand.Read(mask[:]) // never fails
	b = append(b, mask[:]...)
	begin := len(b)
	for _, p := range parts {
		b = append(b, p...)
	}
	for i := range b[begin:] {
		b[begin+i] ^= mask[i&3]
	}
	c.out = b
	_, err := c.rw.Write(b)
	return err
}
