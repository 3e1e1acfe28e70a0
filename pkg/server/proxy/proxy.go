// Package proxy gives signed-in users access to web pages of other services: Prometheus, Alertmanager, Grafana, and services that a site adds. In:
// the addresses of the services, and for each service the page that a group must grant. Out: a route for each service, below the service's name. A
// service gets only the parts of a request that it needs. It gets no headers that could identify the caller as another user.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/pages"
	"github.com/openpai/paictl/pkg/server/settings"
	"github.com/openpai/paictl/pkg/server/wire"
)

const (
	// answerTime limits a response. Prometheus aborts a query after two minutes.
	answerTime = 2*time.Minute + 10*time.Second
	// bodyBytes limits the size of a body, such as a silence or a long query.
	bodyBytes = 1 << 20
	// queries limits a person's simultaneous requests to one service. files limits the requests that only read a file of the service's pages.
	// Prometheus runs at most twenty queries at the same time, including the queries of its rules.
	queries = 12
	files   = 24
)

// Options describes the proxied services.
type Options struct {
	Services map[string]settings.Service
	// Password reads the password of the platform's own services. It is nil if these services have no password.
	Password func() (secret.String, error)
	// Origin returns the origin of the proxied pages, or "" if the pages have no address. Own returns the server's own origin. The argument host is
	// the host at which the browser has reached the server.
	Origin, Own func(host string) string
	// Failed is called if a request can't be forwarded to a service.
	Failed func(service string, err error)
}

// Proxy proxies requests to services. It allows only users who may open the pages of the service.
type Proxy struct {
	o        Options
	services []*service
}

// service is a proxied service.
type service struct {
	name     string
	base     *url.URL
	page     string
	password bool
	kind     kind
	proxy    *httputil.ReverseProxy
}

// New returns a Door. It sends no requests.
func New(o Options) (*Proxy, error) {
	d := &Proxy{o: o}
	for _, name := range slices.Sorted(maps.Keys(o.Services)) {
		said := o.Services[name]
		if said.URL == "" {
			continue
		}
		base, err := url.Parse(said.URL)
		if err != nil {
			return nil, fmt.Errorf("door.%s.url is malformed", name)
		}
		s := &service{name: name, base: base, page: said.Page, password: said.Password && o.Password != nil, kind: kindOf(name)}
		s.proxy = d.proxy(s)
		d.services = append(d.services, s)
	}
	return d, nil
}

// Routes returns a route for each service at the origin of proxied pages. Users may use a service if the service's page is granted to them.
func (d *Proxy) Routes() []server.Route {
	out := []server.Route{{Method: http.MethodGet, Path: ticketPath + "{service}", Rule: "open", Media: "*/*", Summary: "Exchanges the ticket of a browser for a cookie, and redirects it to the page", Serve: d.enter}}
	for _, s := range d.services {
		out = append(out, server.Route{
			Path: s.prefix() + "/{path...}", Aliases: []string{s.prefix()}, Rule: "page.monitoring", Browser: true, Navigation: true, Media: "*/*", Caller: s.visitor, SignIn: d.fetchTicket(s),
			Limit: server.Limit{Body: bodyBytes, Time: answerTime}, Summary: "Proxies requests to " + s.title(), Serve: func(c *server.Call) error { return d.serve(c, s) },
		})
	}
	return out
}

// Links returns links to the services, for the sign-in page.
func (d *Proxy) Links() []pages.Link {
	var out []pages.Link
	for _, s := range d.services {
		out = append(out, pages.Link{Name: s.title(), Page: s.page, URL: func(host string) string {
			if at := d.o.Origin(host); at != "" {
				return at + s.prefix() + "/"
			}
			return ""
		}})
	}
	return out
}

func (s *service) prefix() string { return "/" + s.name }

func (s *service) title() string {
	if s.kind.title != "" {
		return s.kind.title
	}
	return s.name
}

// errRefused is the error for requests that the proxy never forwards, even for administrators.
var errRefused = &rules.ForbiddenError{Why: "this is not forwarded: use it inside the cluster"}

// errWorker is the error for the script of a service worker. A browser would let the worker respond instead of the server, with any headers, even
// after the service is removed.
var errWorker = &rules.ForbiddenError{Why: "pages behind the sign-in have no service worker"}

// serve checks a request, and forwards it to the service.
func (d *Proxy) serve(c *server.Call, s *service) error {
	r := c.Request
	if err := c.Actions.MaySee(s.page); err != nil {
		return err
	}
	if r.URL.Path == s.prefix() {
		return redirect(c, s)
	}
	if len(r.Header.Values("Service-Worker")) > 0 {
		return errWorker
	}
	path := strings.TrimPrefix(r.URL.Path, s.prefix())
	what := r.Method + " " + r.URL.Path
	class := s.kind.class(r.Method, path)
	if class == refused {
		return c.Actions.RefusedBehind(c.Context(), wire.Shown(what), errRefused)
	}
	if err := s.place(c, path); err != nil {
		return err
	}
	switch class {
	case signIn:
		return s.noted(c, what, c.Actions.SignInBehind)
	case write:
		return s.noted(c, what, c.Actions.ChangeBehind)
	}
	s.pass(c.Writer, r)
	return nil
}

// place waits until the caller has fewer requests in progress. Requests for files of a page don't wait for the page's queries, which may take
// minutes.
func (s *service) place(c *server.Call, path string) error {
	if s.kind.file(c.Request.Method, path) {
		return c.Place("file", files)
	}
	return c.Place("query", queries)
}

// pass forwards a request. The response contains the content policy of the service, and no opener policy. So browsers separate the sign-in pages from
// a proxied page that opened them. Otherwise the scripts of the proxied page could access the sign-in pages.
func (s *service) pass(w http.ResponseWriter, r *http.Request) {
	for _, name := range []string{server.OpenerPolicy, server.ContentPolicy, "X-Frame-Options"} {
		w.Header().Del(name)
	}
	s.proxy.ServeHTTP(w, r)
}

// noted forwards a request, and writes it to the audit log even if the response is interrupted. in is the method of app.Actions that decides whether
// the request is allowed.
func (s *service) noted(c *server.Call, what string, in func(ctx context.Context, page, what string, do func() error) error) error {
	w := &outcome{ResponseWriter: c.Writer}
	err := in(c.Context(), s.page, wire.Shown(what), func() error {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // net/http compares it in the same way
				panic(p)
			} else if p != nil {
				w.aborted = true
			}
		}()
		s.pass(w, c.Request)
		return w.err()
	})
	if w.aborted {
		panic(http.ErrAbortHandler)
	}
	if w.status != 0 {
		return nil // the response has been sent
	}
	return err
}

// redirect adds a slash to the path. Without the slash, relative addresses in the page would be wrong.
func redirect(c *server.Call, s *service) error {
	to := url.URL{Path: s.prefix() + "/", RawQuery: c.Request.URL.RawQuery}
	c.Writer.Header().Set("Cache-Control", "no-store")
	c.Writer.Header().Set("Location", to.String())
	c.Writer.WriteHeader(http.StatusPermanentRedirect)
	return nil
}

// outcome records the status of a service's response for the audit log.
type outcome struct {
	http.ResponseWriter
	status  int
	aborted bool
}

// Unwrap returns the wrapped ResponseWriter for http.ResponseController.
func (o *outcome) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// WriteHeader records the status of the response.
func (o *outcome) WriteHeader(status int) {
	if o.status == 0 && status >= http.StatusOK {
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

func (o *outcome) err() error {
	if o.status < http.StatusBadRequest {
		return nil
	}
	return &wire.Error{Status: o.status, Code: wire.CodeUnknown, Message: "the service answered with an error"}
}

// away returns a handler for the error that a service can't be reached.
func (d *Proxy) away(s *service) func(http.ResponseWriter, *http.Request, error) {
	return func(w http.ResponseWriter, r *http.Request, err error) {
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			wire.Fail(w, r, &wire.Error{Status: http.StatusRequestEntityTooLarge, Code: wire.CodeTooLarge, Message: "the body is too long"})
			return
		}
		if r.Context().Err() == nil && d.o.Failed != nil {
			d.o.Failed(s.name, err)
		}
		e, own := errors.AsType[*wire.Error](err)
		if !own {
			e = &wire.Error{Status: http.StatusBadGateway, Code: wire.CodeUnavailable, Message: s.title() + " doesn't answer", Remedy: "see whether it runs: paictl service status " + s.name}
		}
		wire.Fail(w, r, e)
	}
}
