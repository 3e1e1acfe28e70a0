package server

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/server/wire"
)

// answer is a ResponseWriter that records the result of its request.
type answer struct {
	http.ResponseWriter
	started time.Time
	id      string
	asked   string // the client's id of the request; "" if it sent none
	address netip.Addr
	route   *Route // nil if no route was found
	user    string
	token   string // the id of the token
	status  int
	bytes   int64
	cut     bool
	until   context.Context // for streams: the stream ends with it
	end     time.Time       // the time until which the connection can be read and written; zero for streams
	after   []func()
}

// WriteHeader records the status of the response.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes of the response.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// Unwrap returns the wrapped ResponseWriter for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush sends buffered bytes.
func (a *answer) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }

// Hijack takes over the connection. The connection is closed when the request's context ends. The context ends when the token or the person becomes
// invalid, or when the program ends.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	a.status = http.StatusSwitchingProtocols
	if a.until != nil {
		stop := context.AfterFunc(a.until, func() { _ = conn.Close() })
		a.after = append(a.after, func() { stop() })
	}
	return conn, rw, errors.Join(conn.SetDeadline(time.Time{}))
}

// done logs and counts a completed request. The log contains no bodies, and only a few harmless values of queries.
func (s *Server) done(a *answer, r *http.Request) {
	for _, f := range a.after {
		f()
	}
	took := s.o.Now().Sub(a.started)
	route, status := "", a.status
	if a.route != nil {
		route = a.route.Path
	}
	if status == 0 {
		status = http.StatusOK
		if err := r.Context().Err(); err != nil {
			status = clientGone
		}
	}
	s.metrics.end(r.Method, route, status, took)
	attrs := []slog.Attr{
		slog.String("request", a.id), slog.String("method", shortMethod(r.Method)), slog.String("path", shownPath(a, r)), slog.Int("status", status),
		slog.Int64("bytes", a.bytes), slog.Duration("took", took), slog.String("address", a.from()),
	}
	if q := shownQuery(r.URL.RawQuery); q != "" {
		attrs = append(attrs, slog.String("query", q))
	}
	if a.user != "" {
		attrs = append(attrs, slog.String("user", a.user), slog.String("token", a.token))
	}
	if a.asked != "" {
		attrs = append(attrs, slog.String("clientRequest", a.asked))
	}
	if a.cut {
		attrs = append(attrs, slog.Bool("cut", true))
	}
	s.o.Log.LogAttrs(r.Context(), slog.LevelInfo, "request", attrs...)
}

// secretPaths lists endings of routes with a secret in their path. For these routes, the log contains the route instead of the path.
var secretPaths = []string{"/tokens/{token}", "/token/{token}", "/joblogs/{link}"}

func shownPath(a *answer, r *http.Request) string {
	if a.route == nil {
		path := r.URL.EscapedPath()
		if strings.Contains(strings.ToLower(path), "token") || strings.Contains(path, "eyJ") {
			return "(not shown)" // a token in a path that isn't in the table
		}
		return path[:min(len(path), 256)]
	}
	for _, end := range secretPaths {
		if strings.HasSuffix(a.route.Path, end) {
			return a.route.Path
		}
	}
	return r.URL.EscapedPath()
}

// shownKeys lists the query keys whose values are logged.
var shownKeys = []string{"limit", "offset", "order", "state", "vc", "check", "withTotalCount", "follow", "history", "dryRun"}

// shownQuery returns a query without values that may be secret.
func shownQuery(raw string) string {
	if raw == "" {
		return ""
	}
	if strings.Count(raw, "&") > wire.MaxKeys {
		return "(too many keys)"
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return "(malformed)"
	}
	var out []string
	for key := range values {
		if slices.Contains(shownKeys, key) {
			out = append(out, key+"="+values.Get(key)[:min(len(values.Get(key)), 64)])
		} else {
			out = append(out, key[:min(len(key), 32)]+"=…")
		}
	}
	slices.Sort(out)
	return strings.Join(out[:min(len(out), 16)], "&")
}

func shortMethod(m string) string { return m[:min(len(m), 16)] }

// cors allows requests from pages of other origins, because the portal of one cluster may use another cluster. Browsers send no cookies with such
// requests, so a page can only use tokens that it already has. On routes that accept a cookie, sameOrigin removes these headers.
func cors(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "X-Request-Id, X-Total-Count, Retry-After, ETag")
}

// preflight responds to a browser's preflight request.
func preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
		h.Add("Vary", "Access-Control-Request-Headers")
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// forwarded returns the address of the client, which is the last hop before the trusted proxies. It ignores hops that untrusted senders have added to
// the headers.
func forwarded(peer netip.Addr, headers []string, trusted []netip.Prefix) netip.Addr {
	is := func(a netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	if !is(peer) {
		return peer
	}
	var hops []string
	for _, line := range headers {
		hops = append(hops, strings.Split(line, ",")...)
	}
	at := peer
	for i := len(hops) - 1; i >= 0; i-- {
		hop := strings.TrimSpace(hops[i])
		if host, _, err := net.SplitHostPort(hop); err == nil {
			hop = host
		}
		next, err := netip.ParseAddr(hop)
		if err != nil {
			return at // earlier hops could be forged
		}
		if at = next.Unmap(); !is(at) {
			return at
		}
	}
	return at
}
