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

// CookiePrefix is the prefix of the names of the server's cookies. Because of __Host-, browsers accept these cookies only over TLS and only for
// exactly this host, so that no page of a sibling domain can set such a cookie. But cookies aren't separated by port. Because of __Host-Http-, newer
// browsers don't accept the cookies from scripts either, such as the scripts of proxied pages. Other browsers support only the prefix __Host-.
const CookiePrefix = "__Host-Http-pai-"

// SessionCookie is the name of the cookie with the token of a browser's session.
const SessionCookie = CookiePrefix + "session"

// SignInPath is the path of the page where browsers sign in. ReturnTo is the key in its query for the page to which the browser returns.
const (
	SignInPath = "/sign-in"
	ReturnTo   = "to"
)

// OpenerPolicy is the header that separates a page from the page that opened it, unless both have the same value and origin.
const OpenerPolicy = "Cross-Origin-Opener-Policy"

// ContentPolicy is the header that controls which resources a page may load, and which pages may show it in a frame.
const ContentPolicy = "Content-Security-Policy"

// KeepSession gives a browser the token of its new session, and ends the browser's last session. The browser may still have cookies for proxied
// pages of the last session. If that session didn't end, the next user could use the cookies with the rights of the last user.
func (c *Call) KeepSession(token secret.String, until time.Time) error {
	if len(c.Request.Header.Values("Authorization")) == 0 {
		if err := c.Actions.EndLast(c.Context()); err != nil {
			return err
		}
	}
	http.SetCookie(c.Writer, HostCookie(SessionCookie, token.Reveal(), until))
	return nil
}

// DropSession removes the token of the session from the browser.
func (c *Call) DropSession() {
	gone := HostCookie(SessionCookie, "", time.Time{}) //nolint:gosec // HostCookie sets the attributes
	gone.MaxAge = -1
	http.SetCookie(c.Writer, gone)
}

// HostCookie returns a cookie that scripts can't read. A page of another site can make a browser send the cookie only with a link. If until is the
// zero time, the browser keeps the cookie until the browser is closed.
func HostCookie(name, value string, until time.Time) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", Expires: until, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// sessionOf returns a browser's session cookies in the form of Authorization headers. If the browser sends several, the server accepts none of them,
// because a cookie may be another person's.
func sessionOf(r *http.Request) []string {
	var out []string
	for _, c := range r.CookiesNamed(SessionCookie) {
		if c.Value != "" {
			out = append(out, "Bearer "+c.Value)
		}
	}
	return out
}

// stale reports whether the cookie of an ended session is ignored. Routes that need no sign-in ignore such a cookie. The browser sends the cookie
// with every request, and no script can remove it, so the person could otherwise neither sign in nor out before the cookie expires.
func stale(err error, route *Route) bool {
	return app.Meaning(err).Status == http.StatusUnauthorized && isOpen(route)
}

// sameOrigin returns an error for a request that a page of another origin made a browser send, and keeps such a page from reading the response.
// Links from another origin may lead to routes with Navigation. A request with an Authorization header is accepted, because browsers don't add that
// header by themselves. Open routes are an exception: they check such requests, too, because they may begin a session.
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
	// net/http accepts read-only requests from other origins. But a script of a proxied page, which has the server's host, could make a browser send
	// the session's cookie with such requests.
	strict := *r
	strict.Method = http.MethodPost
	if err := http.NewCrossOriginProtection().Check(&strict); err != nil {
		return errOrigin
	}
	return nil
}

// errOrigin is the error for requests from pages that aren't the server's own.
var errOrigin = &wire.Error{Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: "a page of another origin may not request this"}

// navigates reports whether a browser sends the request because a person follows a link in a tab. The response to such a request isn't available to
// the page with the link.
func navigates(r *http.Request) bool {
	h := r.Header
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document"
}

// isOpen reports whether a route needs no sign-in.
func isOpen(route *Route) bool { return rules.Class(route.Rule, &rules.Subject{}) == nil }

// handshake returns an error if a page of another origin upgrades a connection. Browsers let every page open a WebSocket, send cookies with the
// request, and let the page read the responses. Clients that aren't browsers send no Origin.
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

// toSignIn redirects a browser to the sign-in page if the browser requests a page without being signed in. It returns false for other clients, which
// get the error.
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

// SeeOther redirects a browser to another address.
func SeeOther(w http.ResponseWriter, to string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// WantsPage reports whether a browser will show the response to a person.
func (c *Call) WantsPage() bool { return wantsPage(c.Request) }

// Navigated returns an error for a request from a script or a frame. Requests without the header Sec-Fetch-Dest are accepted, because clients that
// aren't browsers, and old browsers, don't send it.
func (c *Call) Navigated() error {
	if to := c.Request.Header.Get("Sec-Fetch-Dest"); to != "" && to != "document" {
		return &wire.Error{Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: "scripts may not request this, and frames may not show it", Remedy: "open the address in a tab of the browser"}
	}
	return nil
}

// wantsPage reports whether a browser will show the response to a person.
func wantsPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || len(r.Header.Values("Authorization")) > 0 {
		return false
	}
	return slices.ContainsFunc(r.Header.Values("Accept"), func(line string) bool { return strings.Contains(line, "text/html") })
}

// maxReturn bounds the length of the address to which a browser returns.
const maxReturn = 2048

// Local returns a path of this server, with its query, to which a browser can be redirected. It returns "" if the text could lead to another host.
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
