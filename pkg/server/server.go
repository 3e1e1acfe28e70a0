// Package server serves the two APIs of the platform over HTTPS: OpenPAI's API and paictl's API. In: a table of routes, and the app with the
// operations of each caller. Out: a handler, and the HTTP server.
//
// The server processes a request in these steps. It converts the path to the spelling in the table, counts the request by address, checks the token,
// and checks the limits. Then it checks the part of the route's rule that doesn't depend on the object, and runs the handler. The handler calls
// operations that check the rules for objects.
package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/openpai/paictl/pkg/httpserver"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

const (
	// bodyBytes limits the size of a body if the route sets no limit.
	bodyBytes = 100 << 10
	// answerTime limits the duration of a response if the route sets no limit.
	answerTime = 30 * time.Second
	// drainTime limits how long the server waits for responses in progress when the program ends.
	drainTime = 25 * time.Second
	// clientGone is the logged status of a request whose client has disconnected before the response.
	clientGone = 499
)

// Options holds the parts and settings of a server.
type Options struct {
	App     *app.App
	Routes  []Route
	Limits  Limits
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// TrustedProxies lists the networks whose X-Forwarded-For headers are trusted.
	TrustedProxies []netip.Prefix
	Now            func() time.Time
	// Caller returns the caller of a request. If Caller is nil, the token identifies the caller. The server inside paictl sets Caller, because all
	// requests come from the user of the kubeconfig.
	Caller func(*http.Request) (app.Caller, error)
	// Reveal returns the text and the remedy of an internal error, if the caller may read them. If Reveal is nil, the text is only logged.
	Reveal func(error) (message, remedy string)
}

// Server serves requests.
type Server struct {
	o       Options
	table   *table
	mux     *http.ServeMux
	routes  map[string]*Route // by the mux's pattern
	metrics *metrics
	limits  *limiter
	streams *open
	places  *shares
	rows    *pool
	bodies  *bodies
	unsent  *unsent
	// draining ends when the program is about to exit. Streams then end, too.
	draining context.Context
	drain    context.CancelFunc
	// proxied means that the routes are pages of other services, at another origin than the API.
	proxied bool
}

// New returns a server.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{o: o, metrics: newMetrics(o.Metrics), limits: newLimiter(o.Limits, o.Now),
		streams: newOpen(o.Limits.complete().Streams), places: &shares{each: map[string]*share{}}, rows: newRows(), bodies: newBodies(), unsent: newUnsent()}
	s.draining, s.drain = context.WithCancel(context.Background())
	s.add(o.Routes)
	return s
}

// Proxied returns a server for routes that proxy pages of other services. It serves another origin, but shares limits, memory and metrics with s.
func (s *Server) Proxied(routes []Route) *Server {
	p := *s
	p.proxied = true
	p.add(routes)
	return &p
}

// add replaces all routes.
func (s *Server) add(routes []Route) {
	s.o.Routes, s.table, s.mux, s.routes = routes, newTable(), http.NewServeMux(), map[string]*Route{}
	for i := range routes {
		route := &routes[i]
		for _, path := range append([]string{route.Path}, route.Aliases...) {
			s.table.add(route.Method, path)
			pattern := path
			if route.Method != "" {
				pattern = route.Method + " " + path
			}
			s.routes[pattern] = route
			s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w.(*answer), r, route) })
		}
	}
}

// Routes returns all routes.
func (s *Server) Routes() []Route { return s.o.Routes }

// Match returns the route of a request, or nil.
func (s *Server) Match(r *http.Request) *Route {
	path, err := normal(r)
	if err != nil {
		return nil
	}
	spelled := r.Clone(r.Context())
	spelled.URL.Path, _ = s.table.find(path)
	spelled.URL.RawPath = ""
	_, pattern := s.mux.Handler(spelled)
	return s.routes[pattern]
}

// requestID matches ids that clients may set for their requests. The audit log and responses contain an id from the server, so that each request has
// a different id. The log contains both ids.
var requestID = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w, started: s.o.Now(), id: rand.Text(), address: s.address(r)}
	if id := r.Header.Get("X-Request-Id"); requestID.MatchString(id) {
		a.asked = id
	}
	h := w.Header()
	h.Set("X-Request-Id", a.id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Strict-Transport-Security", "max-age=31536000")
	h.Set("Referrer-Policy", "no-referrer")
	// With this header, a page's opener can't access the page or read its address. The address may contain a code of an issuer that wasn't used
	// because of a limit.
	h.Set(OpenerPolicy, "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if !s.proxied {
		h.Set(ContentPolicy, "default-src 'none'; frame-ancestors 'none'") // pages set another one
		h.Set("X-Frame-Options", "DENY")
		cors(h)
	}
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		// net/http hides a Content-Length that was sent with a Transfer-Encoding. A proxy may have used that length. The following bytes could then
		// be another person's request.
		h.Set("Connection", "close")
	}
	// Every response has a time limit, even if the request has no route. Routes replace this limit with their limit.
	if err := bound(w, time.Now().Add(answerTime+time.Second)); err != nil {
		http.Error(w, "the connection can't be bounded", http.StatusInternalServerError)
		return
	}
	s.metrics.begin()
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it in the same way
				s.done(a, r)
				panic(p)
			}
			s.o.Log.ErrorContext(r.Context(), "a handler panicked", "request", a.id, "panic", p, "stack", string(debug.Stack()))
			s.fail(a, r, errors.New("the server made a mistake"))
		}
		s.done(a, r)
	}()
	if fields(r.Header) > maxFields {
		s.fail(a, r, &wire.Error{Status: http.StatusRequestHeaderFieldsTooLarge, Code: wire.CodeTooLarge, Message: fmt.Sprintf("the header has more than %d fields", maxFields)})
		return
	}
	path, err := normal(r)
	if err != nil {
		s.fail(a, r, err)
		return
	}
	if r.Method == http.MethodOptions && !s.proxied {
		preflight(a, r)
		return
	}
	path, methods := s.table.find(path)
	if len(methods) == 0 {
		if s.limited(a, r, s.limits.address(a.address)) {
			return
		}
		s.fail(a, r, noAPI(path))
		return
	}
	if fine, allow := allowed(r.Method, methods); !fine {
		h.Set("Allow", allow)
		s.fail(a, r, &wire.Error{Status: http.StatusMethodNotAllowed, Code: wire.CodeMethod, Message: r.Method + " is not allowed here: " + allow})
		return
	}
	spelled, at := *r, *r.URL // they hold only one header while the request waits
	at.Path, at.RawPath = path, ""
	spelled.URL = &at
	s.mux.ServeHTTP(a, &spelled)
}

// Limits of a request's header, which takes memory while the request waits. A short field takes a hundred times its size in memory.
const (
	maxHeader = 32 << 10
	maxFields = 128
)

func fields(h http.Header) (n int) {
	for _, values := range h {
		n += len(values)
	}
	return n
}

// serve checks a request and runs the handler of its route.
func (s *Server) serve(a *answer, r *http.Request, route *Route) {
	a.route = route
	if r.Header.Get("Upgrade") != "" {
		err := handshake(r)
		if !route.Limit.Stream {
			err = wire.Bad("this operation doesn't support an upgrade of the connection")
		}
		if err != nil {
			s.fail(a, r, err)
			return
		}
	}
	if route.Browser {
		if err := sameOrigin(a, r, route); err != nil {
			s.fail(a, r, err)
			return
		}
	}
	if route.Limit.Address && len(r.Header.Values("Authorization")) == 0 && s.limited(a, r, s.limits.address(a.address)) {
		return
	}
	caller, err := s.authenticate(r, route)
	if err != nil {
		if s.limited(a, r, s.limits.address(a.address)) || toSignIn(a, r, route, err) {
			return
		}
		s.fail(a, r, err)
		return
	}
	subject := caller.Subject
	a.user, a.token = subject.Name, subject.Token.ID
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead || route.Limit.Stream
	switch {
	case s.limited(a, r, s.limits.take(a.address, &subject)),
		subject.Guest() && r.ContentLength != 0 && s.limited(a, r, s.limits.body(a.address)),
		changes && s.limited(a, r, s.limits.change(&subject)),
		route.Limit.Submit && s.limited(a, r, s.limits.submission(&subject)),
		route.Limit.Template && s.limited(a, r, s.limits.template(&subject)):
		return
	}
	d := s.o.App.For(caller, app.Origin{Request: a.id, Address: a.from()})
	if err := rules.Class(route.Rule, &subject); err != nil {
		if toSignIn(a, r, route, err) {
			return
		}
		if changes {
			d.Refused(r.Context(), route.Rule, r.Method+" "+route.Path, err)
		}
		s.fail(a, r, err)
		return
	}
	if route.Limit.Stream {
		give, ok := s.streams.take(stream(&subject)...)
		if !ok {
			s.fail(a, r, &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeUnavailable, Message: "too many streams are open", Remedy: "end some of yours, or wait", RetryAfter: retryStreams})
			return
		}
		a.after = append(a.after, give)
	}
	if err := s.within(a, &r, route, caller.Ended()); err != nil {
		s.fail(a, r, err)
		return
	}
	list := func(n int) (func(), error) { return s.rows.take(r.Context(), subject.Name, n) }
	unsent := func(bytes int) (func(), error) { return s.unsent.take(subject.Name, bytes) }
	place := func(kind string, most int) (func(), error) {
		return s.place(r.Context(), route.Method+" "+route.Path+" "+kind, subject.Name, most)
	}
	meaning := func(err error) *wire.Error { return s.meaning(err, a.id) }
	c := &Call{Writer: a, Request: r, Actions: d, Route: route, meaning: meaning, rows: list, unsent: unsent, place: place}
	s.bodies.open(c, &subject, a.address, a.end)
	if route.Limit.Each > 0 {
		if err := c.Place("", route.Limit.Each); err != nil {
			s.fail(a, r, err)
			return
		}
	}
	if err := route.Serve(c); err != nil {
		s.fail(a, r, err)
	}
}

// streamTime limits the duration of a stream.
const streamTime = 24 * time.Hour

// The causes of the end of a stream's context. The client then starts its stream again, at this server or at another server.
var (
	errDraining = &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeUnavailable, Message: "this server is shutting down", Remedy: "try again: another server answers", RetryAfter: time.Second}
	errLasted   = &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeUnavailable, Message: "the stream has lasted for a day", Remedy: "begin it again", RetryAfter: time.Second}
)

// within limits the context of a response, and the time to read from and write to the connection. A stream may last until its token becomes invalid
// or the program ends, and for streamTime at most.
func (s *Server) within(a *answer, r **http.Request, route *Route, ended <-chan struct{}) error {
	limit := route.Limit.Time
	if limit == 0 {
		limit = answerTime
	}
	end := time.Now().Add(limit + time.Second)
	if route.Limit.Stream {
		ctx, cancel := context.WithCancelCause((*r).Context())
		late := time.AfterFunc(streamTime, func() { cancel(errLasted) })
		stop := context.AfterFunc(s.draining, func() { cancel(errDraining) })
		a.after = append(a.after, func() { late.Stop(); stop(); cancel(nil) })
		if ended != nil {
			go func() {
				select {
				case <-ended:
					cancel(app.ErrToken)
				case <-ctx.Done():
				}
			}()
		}
		*r, a.until, end = (*r).WithContext(ctx), ctx, time.Time{}
	} else {
		ctx, cancel := context.WithTimeout((*r).Context(), limit)
		a.after = append(a.after, cancel)
		*r = (*r).WithContext(ctx)
	}
	a.end = end
	return bound(a.ResponseWriter, end)
}

// bound sets the read and write deadlines of a connection. The zero time means no limit.
func bound(w http.ResponseWriter, end time.Time) error {
	control := http.NewResponseController(w)
	err := errors.Join(control.SetReadDeadline(end), control.SetWriteDeadline(end))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// authenticate returns the caller of a request. If the route requires a link, the link identifies the caller, and a token is ignored.
func (s *Server) authenticate(r *http.Request, route *Route) (app.Caller, error) {
	if s.o.Caller != nil {
		return s.o.Caller(r)
	}
	if route.Link == "" {
		return s.caller(r, route)
	}
	ctx, cancel := context.WithTimeout(r.Context(), callerTime)
	defer cancel()
	return s.o.App.Follow(ctx, r.PathValue(route.Link))
}

// callerTime limits the time to check a token.
const callerTime = 10 * time.Second

// caller returns the caller in the only Authorization header of a request. Without that header, it returns the caller in the cookie or ticket that
// the route accepts.
func (s *Server) caller(r *http.Request, route *Route) (app.Caller, error) {
	credentials := r.Header.Values("Authorization")
	switch {
	case len(credentials) == 0 && route.Caller != nil:
		ctx, cancel := context.WithTimeout(r.Context(), callerTime)
		defer cancel()
		return route.Caller(s.o.App, r.WithContext(ctx))
	case len(credentials) > 0 || !route.Browser:
		return s.holder(r, credentials)
	}
	c, err := s.holder(r, sessionOf(r))
	if err != nil && stale(err, route) {
		return app.Caller{}, nil
	}
	return c, err
}

// holder returns the person of the token in the request. It returns a guest if the request contains no token, and an error for several tokens.
func (s *Server) holder(r *http.Request, credentials []string) (app.Caller, error) {
	switch len(credentials) {
	case 0:
		return app.Caller{}, nil
	case 1:
		ctx, cancel := context.WithTimeout(r.Context(), callerTime)
		defer cancel()
		return s.o.App.Caller(ctx, credentials[0])
	}
	return app.Caller{}, app.ErrToken
}

// meaning converts an error of a request to the response for the client. If Reveal is set, the response contains no request id, because the server
// then writes no log.
func (s *Server) meaning(err error, id string) *wire.Error {
	e := app.Meaning(err)
	if s.o.Reveal == nil {
		e.Request = id
	} else if e.Status >= http.StatusInternalServerError {
		message, remedy := s.o.Reveal(err)
		e.Message, e.Remedy = message, cmp.Or(remedy, e.Remedy)
	}
	return e
}

// fail sends an error. If the response has already begun, it aborts the response instead, so that the client detects that the response is incomplete.
func (s *Server) fail(a *answer, r *http.Request, err error) {
	e := s.meaning(err, a.id)
	if e.Status == http.StatusInternalServerError {
		s.o.Log.ErrorContext(r.Context(), "a request failed", "request", a.id, "error", err.Error())
	}
	if a.status != 0 {
		a.cut = true
		return
	}
	wire.Fail(a, r, e)
}

// limited responds with the status 429 if wait is positive, which means that a limit is reached. It reports whether it has responded.
func (s *Server) limited(a *answer, r *http.Request, wait time.Duration) bool {
	if wait <= 0 {
		return false
	}
	s.metrics.limited.Inc()
	s.fail(a, r, &wire.Error{Status: http.StatusTooManyRequests, Code: wire.CodeTooMany, Message: "too many requests", Remedy: "wait a little, then try again", RetryAfter: wait})
	return true
}

// from returns the client's address, or "" for a connection within the process.
func (a *answer) from() string {
	if !a.address.IsValid() {
		return ""
	}
	return a.address.String()
}

// address returns the address of the client. For a request from a trusted proxy, it reads the address in the proxy's header.
func (s *Server) address(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return forwarded(at.Addr().Unmap(), r.Header.Values("X-Forwarded-For"), s.o.TrustedProxies)
}

// HTTP returns an http.Server for a handler, with the limits of this server.
func (s *Server) HTTP(h http.Handler) *http.Server {
	return httpserver.HTTP(h, httpserver.Options{Header: maxHeader, Log: s.o.Log})
}

// Serve serves the connections of a listener until the context ends. It then accepts no new requests, ends the streams, and waits for the other
// responses.
func (s *Server) Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := s.HTTP(h)
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		s.drain()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		stopped <- srv.Shutdown(grace)
	})
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// Redirect returns a handler that redirects requests without TLS to the same address with TLS.
func Redirect() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead || host == "" {
			http.Error(w, "this server needs https", http.StatusForbidden) // a password may have been sent already, so the request must not seem to work
			return
		}
		to := *r.URL
		to.Scheme, to.Host = "https", host
		http.Redirect(w, r, to.String(), http.StatusPermanentRedirect) //nolint:gosec // the client itself named the host
	})
}
