package attacks

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Framed is an attempt over HTTP/2. Fields holds the header fields of one request, which may be invalid.
type Framed struct {
	Name   string
	Fields []hpack.HeaderField
	Want   []int // 0: the stream or the connection is closed
}

// Frames returns all attempts over HTTP/2.
func Frames(w *World) []Framed {
	fields := func(pairs ...string) []hpack.HeaderField {
		var out []hpack.HeaderField
		for i := 0; i+1 < len(pairs); i += 2 {
			out = append(out, hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
		}
		return out
	}
	thief, owner := "Bearer "+w.ThiefToken, "Bearer "+w.OwnerToken
	get := func(path string, more ...string) []hpack.HeaderField {
		return append(fields(":method", "GET", ":scheme", "https", ":authority", w.host(), ":path", path), fields(more...)...)
	}
	ended := []int{0, http.StatusBadRequest}
	return []Framed{
		{"the owner's job", get(w.detail(), "authorization", thief), hidden},
		{"no token", get(w.detail()), unknown},
		{"Authorization twice", get(w.detail(), "authorization", thief, "authorization", owner), unknown},
		{"a path without a slash", get("api/v2/jobs/"+w.Owner+"~"+w.Job, "authorization", thief), ended},
		{"a path with dots", get("/api/v2/jobs/x/../"+w.Owner+"~"+w.Job, "authorization", thief), malformed},
		{"a path that is an address", get("https://"+w.host()+w.detail(), "authorization", thief), nowhere},
		{"a path with a line in it", get("/api/v2/info HTTP/1.1\r\nHost: x\r\n\r\nGET "+w.detail(), "authorization", thief), []int{0, http.StatusBadRequest, http.StatusNotFound}},
		{"an empty path", get("", "authorization", thief), ended},
		{"two paths", append(get("/api/v2/info"), fields(":path", w.detail(), "authorization", thief)...), ended},
		{"a pseudo-header behind the others", append(fields(":method", "GET", ":scheme", "https", ":authority", w.host(), "authorization", thief), fields(":path", w.detail())...), ended},
		{"an unknown pseudo-header", append(fields(":user", w.Owner), get(w.detail(), "authorization", thief)...), ended},
		{"a status in a request", append(fields(":status", "200"), get(w.detail(), "authorization", thief)...), ended},
		{"a method with a line in it", append(fields(":method", "GET / HTTP/1.1\r\nHost: x\r\n\r\nDELETE"), get(w.place())[1:]...), []int{0, http.StatusBadRequest, http.StatusMethodNotAllowed}},
		{"another method", append(fields(":method", "DELETE"), get(w.place(), "authorization", thief)[1:]...), hidden},
		{"CONNECT to the inside", fields(":method", "CONNECT", ":authority", "127.0.0.1:6443", "authorization", thief), []int{0, http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}},
		{"a WebSocket by CONNECT", append(fields(":method", "CONNECT", ":protocol", "websocket"), get(w.exec(w.Owner, w.Job), "authorization", thief)[1:]...), []int{0, http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}},
		{"an upgrade", get(w.exec(w.Owner, w.Job), "authorization", thief, "connection", "upgrade", "upgrade", "websocket"), append(slices.Clone(ended), http.StatusNotFound)},
		{"a transfer coding", get(w.detail(), "authorization", thief, "transfer-encoding", "chunked"), append(slices.Clone(ended), http.StatusNotFound)},
		{"a length that isn't so", get(w.detail(), "authorization", thief, "content-length", "100"), append(slices.Clone(ended), http.StatusNotFound)},
		{"a header with a line in it", get(w.detail(), "authorization", thief, "x", "y\r\nauthorization: "+owner), ended},
		{"a header in capital letters", get(w.detail(), "Authorization", owner), ended},
		{"a header with a space", get(w.detail(), "authorization ", owner), ended},
		{"a different host", get(w.detail(), "authorization", thief, "host", "127.0.0.1"), append(slices.Clone(ended), http.StatusNotFound)},
		{"a different scheme", append(fields(":method", "GET", ":scheme", "file"), get(w.detail(), "authorization", thief)[2:]...), append(slices.Clone(ended), http.StatusNotFound)},
		{"very long headers", get(w.detail(), "authorization", thief, "x", strings.Repeat("x", 200_000)), []int{0, http.StatusRequestHeaderFieldsTooLarge}},
		{"a cookie in crumbs", get(w.detail(), "cookie", cookie+w.OwnerToken, "cookie", "token="+w.OwnerToken), unknown},
	}
}

// TryFrames is like Try, but makes an attempt over HTTP/2.
func TryFrames(ctx context.Context, w *World, f *Framed) error {
	settings := w.TLS.Clone()
	settings.NextProtos = []string{"h2"}
	c, err := (&tls.Dialer{Config: settings}).DialContext(ctx, "tcp", w.Address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(answerTime))
	if _, err := c.Write([]byte(http2.ClientPreface)); err != nil {
		return err
	}
	framer := http2.NewFramer(c, c)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	framer.AllowIllegalWrites = true
	if err := framer.WriteSettings(); err != nil {
		return err
	}
	if err := request(framer, f.Fields); err != nil {
		return err
	}
	status, text := response(framer)
	if !slices.Contains(f.Want, status) {
		return fmt.Errorf("the answer has the status %d, which is not in %v: %.400s", status, f.Want, text)
	}
	return w.kept(text, nil)
}

// frameBytes is the default limit of a frame's size.
const frameBytes = 16 << 10

// request sends the fields of a request in as many frames as necessary.
func request(framer *http2.Framer, fields []hpack.HeaderField) error {
	block := &bytes.Buffer{}
	encoder := hpack.NewEncoder(block)
	for _, f := range fields {
		if err := encoder.WriteField(f); err != nil {
			return err
		}
	}
	first := block.Next(frameBytes)
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: first, EndStream: true, EndHeaders: block.Len() == 0}); err != nil {
		return err
	}
	for block.Len() > 0 {
		next := block.Next(frameBytes)
		if err := framer.WriteContinuation(1, block.Len() == 0, next); err != nil {
			return nil //nolint:nilerr // the server has closed the connection
		}
	}
	return nil
}

// response reads frames until the stream ends, and returns the status and the body of the response.
func response(framer *http2.Framer) (status int, text string) {
	body := &strings.Builder{}
	for {
		frame, err := framer.ReadFrame()
		if stream := (http2.StreamError{}); errors.As(err, &stream) {
			return status, body.String()
		}
		if err != nil {
			return status, body.String()
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			status, _ = strconv.Atoi(frame.PseudoValue("status"))
			if frame.StreamEnded() {
				return status, body.String()
			}
		case *http2.DataFrame:
			body.Write(frame.Data())
			if frame.StreamEnded() {
				return status, body.String()
			}
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return status, body.String()
		}
	}
}
