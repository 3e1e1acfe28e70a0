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

// SessionCookie holds the token of a browser's session. Because of its prefix, browsers accept it only over TLS and for this very
// host: no page of a neighbouring name can plant one.
const SessionCookie = "__Host-pai-session"

// SignInPath is the page on which browsers sign in; ReturnTo is the key of its query for the page that they wanted.
const (
	SignInPath = "/sign-in"
	ReturnTo   = "to"
)

// OpenerPolicy is the header that separates a page from the one that opened it, unless both have the same value and origin.
const OpenerPolicy = "Cross-Origin-Opener-Policy"

// KeepSession gives a browser the token of its session.
func (c *Call) KeepSession(token secret.String, until time.Time) {
	http.SetCookie(c.Writer, hostCookie(SessionCookie, token.Reveal(), until))
}

// DropSession removes the token from the browser.
func (c *Call) DropSession() {
	gone := hostCookie(SessionCookie, "", time.Time{}) //nolint:gosec // hostCookie says all of it
	gone.MaxAge = -1
	http.SetCookie(c.Writer, gone)
}

// hostCookie returns a cookie that scripts can't read. A page of another site can make a browser send it only by a link.
func hostCookie(name, value string, until time.Time) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", Expires: until, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// sessionOf returns a browser's session cookies in the form of Authorization headers. Several aren't
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
	return app.Meaning(err).Status == http.StatusUnauthorized && rules.Class(route.Rule, &rules.Subject{}) == nil
}

// sameOrigin refuses requests that a page of another origin made a browser send, unless they only read, and doesn't let such a
// page read the answer.
func sameOrigin(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Del("Access-Control-Allow-Origin")
	h.Del("Access-Control-Expose-Headers")
	h.Add("Vary", "Cookie")
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return &wire.Error{Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: "a page of another origin may not ask for this"}
	}
	return nil
}

// toSignIn redirects a browser that wants a page, and isn't signed in, to the sign-in page; programs get the error.
func toSignIn(w http.ResponseWriter, r *http.Request, route *Route, err error) bool {
	unknown := errors.Is(err, rules.ErrGuest) || app.Meaning(err).Status == http.StatusUnauthorized
	if !unknown || !route.Browser || !wantsPage(r) {
		return false
	}
	seeOther(w, SignInPath+"?"+url.Values{ReturnTo: {r.URL.RequestURI()}}.Encode())
	return true
}

// home redirects a browser that opens the bare address of the server to the sign-in page; programs get the error.
func home(w http.ResponseWriter, r *http.Request, path string) bool {
	if path != "/" || !wantsPage(r) {
		return false
	}
	seeOther(w, SignInPath)
	return true
}

func seeOther(w http.ResponseWriter, to string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// WantsPage reports whether a browser shows the answer to a person.
func (c *Call) WantsPage() bool { return wantsPage(c.Request) }

// Navigated refuses a request from a script or a frame: another service's page behind the door has the server's own origin, and
// could read the answer. Clients that aren't browsers, and old browsers, don't send the header for this.
func (c *Call) Navigated() error {
	if to := c.Request.Header.Get("Sec-Fetch-Dest"); to != "" && to != "document" {
		return &wire.Error{Status: http.StatusForbidden, Code: wire.CodeForbidden, Message: "no script may ask for this, and no frame show it", Remedy: "open the address in a tab of the browser"}
	}
	return nil
}

// wantsPage reports whether a browser shows the answer to a person.
func wantsPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || len(r.Header.Values("Authorization")) > 0 {
		return false
	}
	return slices.ContainsFunc(r.Header.Values("Accept"), func(line string) bool { return strings.Contains(line, "text/html") })
}

// maxReturn bounds the address to which a browser returns.
const maxReturn = 2048

// Local returns a path of this server, with its query, to which a browser may be redirected; "" if the text could lead anywhere
// else.
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
