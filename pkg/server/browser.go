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
	"github.com/openpai/paictl/pkg/server/desk"
	"github.com/openpai/paictl/pkg/server/wire"
)

// SessionCookie holds the token of a browser's session. By its prefix browsers take it only over TLS and for this very host: no page of a
// neighbouring name can plant one.
const SessionCookie = "__Host-pai-session"

// SignInPath is the page on which browsers sign in; ReturnTo is the key of its query that says where they wanted to go.
const (
	SignInPath = "/sign-in"
	ReturnTo   = "to"
)

// OpenerPolicy is the header that parts a page from the one that opened it, unless both say the same and have one origin.
const OpenerPolicy = "Cross-Origin-Opener-Policy"

// KeepSession gives a browser the token of its session.
func (c *Call) KeepSession(token secret.String, until time.Time) {
	http.SetCookie(c.Writer, hostCookie(SessionCookie, token.Reveal(), until))
}

// DropSession takes it away.
func (c *Call) DropSession() {
	gone := hostCookie(SessionCookie, "", time.Time{}) //nolint:gosec // hostCookie says all of it
	gone.MaxAge = -1
	http.SetCookie(c.Writer, gone)
}

// hostCookie is one that no script reads, and that a page of another site can't make a browser send, but by a link.
func hostCookie(name, value string, until time.Time) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", Expires: until, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// sessionOf is what a browser shows, as a header Authorization says it. Several cookies of that name are none that counts: one of them may be
// another's.
func sessionOf(r *http.Request) []string {
	var out []string
	for _, c := range r.CookiesNamed(SessionCookie) {
		if c.Value != "" {
			out = append(out, "Bearer "+c.Value)
		}
	}
	return out
}

// stale reports whether the cookie of a session that has ended is to count as none. It does where no one need be signed in: the browser sends it
// with every request, no script can take it away, and its person could neither sign in nor out before it expires.
func stale(err error, route *Route) bool {
	return desk.Meaning(err).Status == http.StatusUnauthorized && rules.Class(route.Rule, &rules.Subject{}) == nil
}

// sameOrigin refuses what a page of another origin made a browser send, unless it only reads, and lets no such page read the answer.
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

// toSignIn sends a browser that wants a page, and isn't signed in, to where it can sign in; programs get the error.
func toSignIn(w http.ResponseWriter, r *http.Request, route *Route, err error) bool {
	unknown := errors.Is(err, rules.ErrGuest) || desk.Meaning(err).Status == http.StatusUnauthorized
	if !unknown || !route.Browser || !wantsPage(r) {
		return false
	}
	seeOther(w, SignInPath+"?"+url.Values{ReturnTo: {r.URL.RequestURI()}}.Encode())
	return true
}

// home sends a browser that opens the bare address of the server to the page on which people sign in; programs get the error.
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

// Navigated refuses a request that a script sends, or a frame shows: another service's page behind the door has the origin of the server's own, and
// could read the answer. A client that isn't a browser, or an old one, doesn't say what it asks for.
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

// maxReturn is how long the address may be to which a browser returns.
const maxReturn = 2048

// Local is a path of this server, with its query, to which a browser may be sent; "" where the text could lead anywhere else.
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
