package proxy

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/people/onetime"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

// A browser that opens a proxied page without a cookie for the page gets a cookie in three redirects:
//
//	PAGES/prometheus/graph                     stores a random value in the cookie "browser"
//	SERVER/api/v3/proxied/prometheus/ticket    creates a ticket for the session, the service and the hash of that value
//	PAGES/.ticket/prometheus                   redeems the ticket, and sets the cookie "page-prometheus"
//	PAGES/prometheus/graph
//
// Other people can't use a ticket without the random value. An attacker also can't make another browser use a ticket of the attacker's session.
const (
	ticketPath = "/.ticket/" // no service has such a name
	ownTickets = "/api/v3/proxied/{service}/ticket"

	// browserCookie is the name of the cookie with the random value. A cookie with the name pageCookie and the name of a service gives access to the
	// service's pages. Cookies with this prefix have the path /. So the name and the content of the cookie determine the service, and not its path;
	// see app.Visitor.
	browserCookie = server.CookiePrefix + "browser"
	pageCookie    = server.CookiePrefix + "page-"
)

// browserID matches the hash of a browser's random value.
var browserID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// OwnRoutes returns the routes for the server's own origin. One route creates tickets. In addition, each service has a route that redirects browsers
// to the service's pages.
func (d *Proxy) OwnRoutes() []server.Route {
	if len(d.services) == 0 {
		return nil
	}
	out := []server.Route{{Method: http.MethodGet, Path: ownTickets, Rule: "page.monitoring", Browser: true, Navigation: true, In: reflect.TypeFor[ticketIn](), Media: "*/*", Status: http.StatusSeeOther,
		Summary: "Redirects a browser to a page of another service, with a ticket", Errors: []string{wire.CodeNoAPI}, Serve: d.ticket}}
	for _, s := range d.services {
		out = append(out, server.Route{Path: s.prefix() + "/{path...}", Aliases: []string{s.prefix()}, Rule: "open", Media: "*/*", Summary: "Redirects a browser to the pages of " + s.title(),
			Serve: func(c *server.Call) error { return d.moved(c, s) }})
	}
	return out
}

// errNowhere is the error if the settings contain no address for proxied pages.
var errNowhere = &wire.Error{Status: http.StatusNotFound, Code: wire.CodeNoAPI, Message: "this server has no address for the pages of other services", Remedy: "behind an Ingress they need a host name: ask an administrator to set proxy.name in the section rest-server"}

// moved redirects a browser from the former path of a page, at the server's own origin, to the page. Other programs get an error with the new
// address, because many programs don't send their token after a redirect to another host.
func (d *Proxy) moved(c *server.Call, s *service) error {
	at := d.o.Origin(c.Request.Host)
	switch {
	case at == "":
		return errNowhere
	case !c.WantsPage():
		return &wire.Error{Status: http.StatusNotFound, Code: wire.CodeNoAPI, Message: s.title() + " is at another address", Remedy: "send the request to " + at + s.prefix() + "/"}
	}
	server.SeeOther(c.Writer, at+c.Request.URL.RequestURI())
	return nil
}

type ticketIn struct {
	Service string `path:"service"`
	Browser string `query:"browser"`
	To      string `query:"to"`
}

// ticket redirects a browser back to the proxied page that it requested, with a ticket for its session.
func (d *Proxy) ticket(c *server.Call) error {
	if err := c.Navigated(); err != nil {
		return err
	}
	in := ticketIn{}
	if err := c.Decode(&in); err != nil {
		return err
	}
	s, err := d.service(in.Service)
	if err != nil {
		return err
	}
	if err := c.Actions.MaySee(s.page); err != nil {
		return err
	}
	at := d.o.Origin(c.Request.Host)
	switch {
	case at == "":
		return errNowhere
	case !browserID.MatchString(in.Browser):
		return wire.Bad("browser is malformed: open the page again")
	}
	ticket, err := c.Actions.TicketToPage(c.Context(), s.name, in.Browser)
	if err != nil {
		return err
	}
	server.SeeOther(c.Writer, at+ticketPath+s.name+"?"+url.Values{"ticket": {ticket.Reveal()}, "to": {s.below(in.To)}}.Encode())
	return nil
}

// enter exchanges a ticket for a cookie. It then redirects the browser immediately, so that no page has an address with a ticket.
func (d *Proxy) enter(c *server.Call) error {
	if err := c.Navigated(); err != nil {
		return err
	}
	s, err := d.service(c.Request.PathValue("service"))
	if err != nil {
		return err
	}
	value, err := only(c.Request, browserCookie)
	if err != nil || value == "" {
		return &wire.Error{Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: "this is not the browser that asked for the ticket, or it keeps no cookies", Remedy: "allow this address to keep cookies, then open the page again"}
	}
	q := c.Request.URL.Query()
	text, err := c.Actions.Visit(c.Context(), q.Get("ticket"), s.name, onetime.ID(value))
	if err != nil {
		return err
	}
	http.SetCookie(c.Writer, server.HostCookie(pageCookie+s.name, text.Reveal(), time.Time{}))
	server.SeeOther(c.Writer, s.below(q.Get("to")))
	return nil
}

// fetchTicket returns a function that redirects a browser to the server's own origin to get a ticket.
func (d *Proxy) fetchTicket(s *service) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := only(r, browserCookie)
		if err != nil || value == "" {
			value = rand.Text()
			http.SetCookie(w, server.HostCookie(browserCookie, value, time.Time{}))
		}
		path := strings.Replace(ownTickets, "{service}", s.name, 1)
		server.SeeOther(w, d.o.Own(r.Host)+path+"?"+url.Values{"browser": {onetime.ID(value)}, "to": {s.below(r.URL.RequestURI())}}.Encode())
	}
}

// visitor returns the caller in the cookie for this service, or a guest if the browser sends no such cookie.
func (s *service) visitor(a *app.App, r *http.Request) (app.Caller, error) {
	text, err := only(r, pageCookie+s.name)
	if err != nil || text == "" {
		return app.Caller{}, err
	}
	return a.Visitor(r.Context(), text, s.name)
}

// only returns the value of a cookie, or "" if the browser doesn't send the cookie. It returns an error for several cookies, because another person
// may own a cookie.
func only(r *http.Request, name string) (string, error) {
	switch all := r.CookiesNamed(name); len(all) {
	case 0:
		return "", nil
	case 1:
		return all[0].Value, nil
	}
	return "", app.ErrToken
}

// below returns the address to if it is below the service's path. Otherwise it returns the address of the service's first page.
func (s *service) below(to string) string {
	if to = server.Local(to); to == s.prefix() || strings.HasPrefix(to, s.prefix()+"/") {
		return to
	}
	return s.prefix() + "/"
}

func (d *Proxy) service(name string) (*service, error) {
	for _, s := range d.services {
		if s.name == name {
			return s, nil
		}
	}
	return nil, &wire.Error{Status: http.StatusNotFound, Code: wire.CodeNoAPI, Message: "there is no such service"}
}
