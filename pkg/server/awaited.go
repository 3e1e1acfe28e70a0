package server

import (
	"net/http"
	"time"

	"github.com/openpai/paictl/pkg/server/app"
)

// awaitedPrefix begins the names of cookies that a browser stores while its user signs in at an issuer. Only a browser with such a cookie can use the
// issuer's response.
const awaitedPrefix = CookiePrefix + "issuer-"

// ToIssuer begins a sign-in at an OpenID Connect issuer. It returns the address for the browser's redirect.
func (c *Call) ToIssuer(issuer string, g app.Goal) (address string, err error) {
	away, err := c.Actions.ToIssuer(c.Context(), issuer, g)
	if err != nil {
		return "", err
	}
	http.SetCookie(c.Writer, HostCookie(awaitedPrefix+away.Name, away.Sealed, time.Now().Add(app.AwayTime)))
	return away.Address, nil
}

// Awaited returns the value that the browser has stored under a name, or "" unless the browser sends exactly one such value.
func (c *Call) Awaited(name string) string {
	kept := c.Request.CookiesNamed(awaitedPrefix + name)
	if name == "" || len(kept) != 1 {
		return ""
	}
	return kept[0].Value
}

// DropAwaited deletes the browser's cookie with the value for a name.
func (c *Call) DropAwaited(name string) {
	if name == "" {
		return
	}
	gone := HostCookie(awaitedPrefix+name, "", time.Time{}) //nolint:gosec // HostCookie sets the attributes
	gone.MaxAge = -1
	http.SetCookie(c.Writer, gone)
}
