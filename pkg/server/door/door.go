// Package door lets people who are signed in through to other services' web pages: Prometheus, Alertmanager, Grafana, and what a site adds.
// In: where the services are, and which page a group grants for each. Out: a route for each, below the service's name. Of a request goes along what
// such a service needs to know, and nothing by which it could take who asks for someone else.
package door

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
	// answerTime bounds an answer: Prometheus gives up on a query after two minutes.
	answerTime = 2*time.Minute + 10*time.Second
	// bodyBytes is how long a body may be: a silence, or a long query.
	bodyBytes = 1 << 20
	// queries is how many requests a person has under way at one service, and files how many of those that only read a file of its page.
	// Prometheus evaluates its rules with the same twenty places that queries have.
	queries = 12
	files   = 24
)

// Options say what is behind the door.
type Options struct {
	Services map[string]settings.Service
	// Password reads the password of the platform's own services; nil where they have none.
	Password func() (secret.String, error)
	// Failed is told what can't be passed on, and of which service.
	Failed func(service string, err error)
}

// Door is all of it.
type Door struct {
	o        Options
	services []*service
}

// service is one that is behind the door.
type service struct {
	name     string
	base     *url.URL
	page     string
	password bool
	kind     kind
	proxy    *httputil.ReverseProxy
}

// New opens a door. It asks nothing yet.
func New(o Options) (*Door, error) {
	d := &Door{o: o}
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

// Routes are one for each service. The page that it is decides who gets there.
func (d *Door) Routes() []server.Route {
	var out []server.Route
	for _, s := range d.services {
		out = append(out, server.Route{
			Path: s.prefix() + "/{path...}", Aliases: []string{s.prefix()}, Rule: "page.monitoring", Browser: true, Media: "*/*",
			Summary: "Passes requests on to " + s.title(), Limit: server.Limit{Body: bodyBytes, Time: answerTime},
			Serve: func(c *server.Call) error { return d.serve(c, s) },
		})
	}
	return out
}

// Links are for the page on which people sign in.
func (d *Door) Links() []pages.Link {
	var out []pages.Link
	for _, s := range d.services {
		out = append(out, pages.Link{Name: s.title(), Path: s.prefix() + "/", Page: s.page})
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

// errRefused is of what no one gets through the door, administrators included.
var errRefused = &rules.ForbiddenError{Why: "this is not let through: use it inside of the cluster"}

// errWorker is of a script that a browser would let answer in place of the server: with headers of its own choice, and after the service is gone.
var errWorker = &rules.ForbiddenError{Why: "pages behind the sign-in have no service worker"}

// serve decides, and passes on.
func (d *Door) serve(c *server.Call, s *service) error {
	r := c.Request
	if err := c.Desk.MaySee(s.page); err != nil {
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
		return c.Desk.RefusedBehind(c.Context(), wire.Shown(what), errRefused)
	}
	if err := s.place(c, path); err != nil {
		return err
	}
	switch class {
	case signIn:
		return s.noted(c, what, c.Desk.SignInBehind)
	case write:
		return s.noted(c, what, c.Desk.ChangeBehind)
	}
	s.pass(c.Writer, r)
	return nil
}

// place waits for others of the caller. A page's files don't wait for its queries, which may take minutes.
func (s *service) place(c *server.Call, path string) error {
	if s.kind.file(c.Request.Method, path) {
		return c.Place("file", files)
	}
	return c.Place("query", queries)
}

// pass passes a request on. The page that comes back has no word on what opened it, neither the server's nor the service's: the pages on which people
// sign in part from it for that reason, and its scripts would reach into them otherwise.
func (s *service) pass(w http.ResponseWriter, r *http.Request) {
	w.Header().Del(server.OpenerPolicy)
	s.proxy.ServeHTTP(w, r)
}

// noted passes on what is in the audit, also where the answer broke off. in is how the desk lets it be done.
func (s *service) noted(c *server.Call, what string, in func(ctx context.Context, page, what string, do func() error) error) error {
	w := &outcome{ResponseWriter: c.Writer}
	err := in(c.Context(), s.page, wire.Shown(what), func() error {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // net/http compares it so, too
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
		return nil // it was answered
	}
	return err
}

// redirect adds the slash without which relative addresses of a page lead elsewhere.
func redirect(c *server.Call, s *service) error {
	to := url.URL{Path: s.prefix() + "/", RawQuery: c.Request.URL.RawQuery}
	c.Writer.Header().Set("Cache-Control", "no-store")
	c.Writer.Header().Set("Location", to.String())
	c.Writer.WriteHeader(http.StatusPermanentRedirect)
	return nil
}

// outcome sees what a service answered, for the audit. The answer has gone out by then.
type outcome struct {
	http.ResponseWriter
	status  int
	aborted bool
}

// Unwrap is for http.ResponseController.
func (o *outcome) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// WriteHeader notes the status.
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

// away answers where a service can't be asked.
func (d *Door) away(s *service) func(http.ResponseWriter, *http.Request, error) {
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
