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
// exactly this host. So no page of a sibling domain can set such a cookie. However, the ports of a host share cookies. Because of __Host-Http-, newer
// browsers also reject these cookies from scripts, such as the scripts of proxied pages. Other browsers support only the prefix __Host-.
const CookiePrefix = "__Host-Http-pai-"

// SessionCookie is the name of the cookie with the token of a browser's session.
const SessionCookie = CookiePrefix + "session"

// SignInPath is the path of the sign-in page for browsers. ReturnTo is the query parameter with the page to which the browser returns.
const (
	SignInPath = "/sign-in"
	ReturnTo   = "to"
)

// OpenerPolicy is the header that separates a page from the page that opened it, unless both pages have the same value and origin.
const OpenerPolicy = "Cross-Origin-Opener-Policy"

// ContentPolicy is the header that controls which resources a page may load, and which pages may show it in a frame.
const ContentPolicy = "Content-Security-Policy"

// KeepSession sends a browser the token of its new session, and ends the browser's last session. The browser may still have cookies for proxied pages
// of the last session. If that session didn't end, the next user could use the cookies with the rights of the last user.
func (c *Call) KeepSession(token secret.String, until time.Time) error {
	if len(c.Request.Header.Values("Authorization")) == 0 {
		if err := c.Actions.EndLast(c.Context()); err != nil {
			return err
		}
	}
	http.SetCookie(c.Writer, HostCookie(SessionCookie, token.Reveal(), until))
	return nil
}

// DropSession deletes the browser's cookie with the token of the session.
func (c *Call) DropSession() {
	gone := HostCookie(SessionCookie, "", time.Time{}) //nolint:gosec // HostCookie sets the attributes
	gone.MaxAge = -1
	http.SetCookie(c.Writer, gone)
}

// HostCookie returns a cookie that scripts can't read. Requests from another site contain the cookie only if a person follows a link. If until is the
// zero time, the browser stores the cookie until the browser is closed.
func HostCookie(name, value string, until time.Time) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", Expires: until, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// sessionOf returns a browser's session cookies in the form of Authorization headers. If the browser sends several cookies, the server accepts none
// of them, because another person may own one of the cookies.
func sessionOf(r *http.Request) []string {
	var out []string
	for _, c := range r.CookiesNamed(SessionCookie) {
		if c.Value != "" {
			out = append(out, "Bearer "+c.Value)
		}
	}
	return out
}

// stale reports whether the cookie of an ended session is ignored. Routes without a sign-in ignore such a cookie. The browser sends the cookie with
// every request, and no script can remove the cookie. So the person could otherwise neither sign in nor sign out before the cookie expires.
func stale(err error, route *Route) bool {
	return app.Meaning(err).Status == http.StatusUnauthorized && isOpen(route)
}

// sameOrigin returns an error for a browser's request from a page of another origin. It also prevents such a page from reading the response. Links
// from another origin may use routes with Navigation. A request with an Authorization header is accepted, because browsers don't add that header
// automatically. Open routes check such requests nevertheless, because they may begin a session.
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
	// net/http accepts read-only requests from other origins. But a script of a proxied page on the server's host could make a browser send the
	// session's cookie with such requests.
	strict := *r
	strict.Method = http.MethodPost
	if err := http.NewCrossOriginProtection().Check(&strict); err != nil {
		return errOrigin
	}
	return nil
}

// errOrigin is the error for requests from pages of other servers.
var errOrigin = &wire.Error{Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: "a page of another origin may not request this"}

// navigates reports whether a browser sends the request because a person follows a link in a tab. The page with the link can't read the response.
func navigates(r *http.Request) bool {
	h := r.Header
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document"
}

// isOpen reports whether a route requires no sign-in.
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

// toSignIn redirects a browser to the sign-in page if the browser requests a page without a session. It returns false for other clients, which get
// the error.
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

// Navigated returns an error for a request from a script or a frame. It accepts requests without the header Sec-Fetch-Dest. Old browsers, and clients
// that aren't browsers, don't send that header.
func (c *Call) Navigated() error {
	if to := c.Request.Header.Get("Sec-Fetch-Dest"); to != "" && to != "document" {
		return &wire.Error{Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: "scripts may not request this, and frames may not show it", Remedy: "open the address in a tab of the browser"}
	}
	return nil
}

func wantsPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || len(r.Header.Values("Authorization")) > 0 {
		return false
	}
	return slices.ContainsFunc(r.Header.Values("Accept"), func(line string) bool { return strings.Contains(line, "text/html") })
}

// maxReturn limits the length of the address to which a browser returns.
const maxReturn = 2048

// Local returns a path of this server with its query, to which a browser can be redirected. It returns "" if the text could redirect to another host.
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
