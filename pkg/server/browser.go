package server

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

// CookiePrefix is the prefix of the names of the server's cookies. Because of __Host-, browsers accept them only over TLS and for exactly this host,
// so that no page of a sibling domain can set such a cookie. Cookies aren't separated by port: because of __Host-Http-, newer browsers don't accept
// them from scripts either, such as the scripts of proxied pages. Other browsers know only the prefix __Host-.
const CookiePrefix = "__Host-Http-pai-"

// SessionCookie holds the token of a browser's session.
const SessionCookie = CookiePrefix + "session"

// SignInPath is the page where browsers sign in; ReturnTo is the key in its query for the page that browsers return to.
const (
	SignInPath = "/sign-in"
	ReturnTo   = "to"
)

// OpenerPolicy is the header that separates a page from the page that opened it, unless both have the same value and origin.
const OpenerPolicy = "Cross-Origin-Opener-Policy"

// ContentPolicy is the header that controls which resources a page may load, and which pages may show it in a frame.
const ContentPolicy = "Content-Security-Policy"

// KeepSession gives a browser the token of its new session, and ends the browser's last session: the browser may have cookies for proxied pages of
// the last session, and the next user could otherwise use them with the rights of the last user.
func (c *Call) KeepSession(token secret.String, until time.Time) error {
	if len(c.Request.Header.Values("Authorization")) == 0 {
		if err := c.Actions.EndLast(c.Context()); err != nil {
			return err
		}
	}
	http.SetCookie(c.Writer, HostCookie(SessionCookie, token.Reveal(), until))
	return nil
}

// DropSession removes the token from the browser.
func (c *Call) DropSession() {
	gone := HostCookie(SessionCookie, "", time.Time{}) //nolint:gosec // HostCookie sets the attributes
	gone.MaxAge = -1
	http.SetCookie(c.Writer, gone)
}

// HostCookie returns a cookie that scripts can't read. A page of another site can make a browser send it only by a link. If until is
// the zero time, the browser keeps it until the browser is closed.
func HostCookie(name, value string, until time.Time) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", Expires: until, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// sessionOf returns a browser's session cookies in the form of Authorization headers. If there are several, none is
// accepted, because one of them may be another person's.
func sessionOf(r *http.Request) []string {
	var out []string
	for _, c := range r.CookiesNamed(SessionCookie) {
		if c.Value != "" {
			out = append(out, "Bearer "+c.Value)
		}
	}
	return out
}

// stale reports whether the cookie of an ended session is ignored. It is ignored by routes that don't need a sign-in: the browser
// sends it with every request, no script can remove it, and the person could neither sign in nor out before it expires.
func stale(err error, route *Route) bool {
	return app.Meaning(err).Status == http.StatusUnauthorized && isOpen(route)
}

// sameOrigin rejects a request that a page of another origin made a browser send, and doesn't let such a page read the response. Links from another
// origin may lead to a route of Navigation. A request with an Authorization header isn't rejected, because browsers don't add that header by
// themselves. Open routes are an exception: they may begin a session.
func sameOrigin(w http.ResponseWriter, r *http.Request, route *Route) error {
	if len(r.Header.Values("Authorization")) > 0 && !isOpen(route) {
		return nil
	}
	h := w.Header()
	h.Del("Access-Control-Allow-Origin")
	h.Del("Access-Control-Expose-Headers")
	h.Add("Vary", "Cookie")
	if route.Navigation && navigates(r) {
		return nil
	}
	// net/http lets read-only requests pass. A script of a proxied page, which has the server's host, would make a browser send the session's cookie
	// with such requests.
	strict := *r
	strict.Method = http.MethodPost
	if err := http.NewCrossOriginProtection().Check(&strict); err != nil {
		return errOrigin
	}
	return nil
}

// errOrigin is the error for requests of pages that aren't the server's own.
var errOrigin = &wire.Error{Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: "a page of another origin may not request this"}

// navigates reports whether a browser follows a link in a tab. No page gets the response of such a request.
func navigates(r *http.Request) bool {
	h := r.Header
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document"
}

// isOpen reports whether a route needs no sign-in.
func isOpen(route *Route) bool { return rules.Class(route.Rule, &rules.Subject{}) == nil }

// handshake returns an error for an upgrade of a connection by a page of another origin: browsers let every page open a WebSocket, send cookies with
// it, and let the page read the responses. Programs send no Origin.
func handshake(r *http.Request) error {
	all := r.Header.Values("Origin")
	if len(all) == 0 {
		return nil
	}
	if u, err := url.Parse(all[0]); len(all) > 1 || err != nil || u.Scheme != "https" || !strings.EqualFold(u.Host, r.Host) {
		return errOrigin
	}
	return nil
}

// toSignIn redirects a browser that requests a page without being signed in to the sign-in page. Programs get the
// error.
func toSignIn(w http.ResponseWriter, r *http.Request, route *Route, err error) bool {
	unknown := errors.Is(err, rules.ErrGuest) || app.Meaning(err).Status == http.StatusUnauthorized
	if !unknown || !route.Browser || !wantsPage(r) {
		return false
	}
	if route.SignIn != nil {
		route.SignIn(w, r)
		return true
	}
	SeeOther(w, SignInPath+"?"+url.Values{ReturnTo: {r.URL.RequestURI()}}.Encode())
	return true
}

// SeeOther redirects a browser.
func SeeOther(w http.ResponseWriter, to string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// WantsPage reports whether a browser shows the response to a person.
func (c *Call) WantsPage() bool { return wantsPage(c.Request) }

// Navigated returns an error for a request from a script or a frame. Clients that aren't browsers, and old browsers, don't send the header
// Sec-Fetch-Dest.
func (c *Call) Navigated() error {
	if to := c.Request.Header.Get("Sec-Fetch-Dest"); to != "" && to != "document" {
		return &wire.Error{Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: "scripts may not request this, and frames may not show it", Remedy: "open the address in a tab of the browser"}
	}
	return nil
}

// wantsPage reports whether a browser shows the response to a person.
func wantsPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || len(r.Header.Values("Authorization")) > 0 {
		return false
	}
	return slices.ContainsFunc(r.Header.Values("Accept"), func(line string) bool { return strings.Contains(line, "text/html") })
}

// maxReturn bounds the address that a browser returns to.
const maxReturn = 2048

// Local returns a path of this server, with its query, as a target for redirects of browsers. It returns "" if the text could lead to another host.
func Local(text string) string {
	if len(text) > maxReturn || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == '\\' || c == 0x7f }) {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.Contains(u.Path, "//") || strings.Contains(u.Path, "\\") {
		return ""
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}).RequestURI()
}
