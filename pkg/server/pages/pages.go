// Package pages serves the sign-in pages, and the requests for sessions of browsers. In: the pages of other services that people may open after the
// sign-in. Out: routes of pages that load no resources from other servers.
package pages

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"net/http"
	"text/template"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

//go:embed *.html
var files embed.FS

const html = "text/html; charset=utf-8"

// Routes returns the routes of all pages, and of the requests that the pages send. The pages show links in the given order.
func Routes(links []Link) []server.Route {
	return append(sessions{links}.routes(),
		server.Route{Method: http.MethodGet, Path: "/first", Rule: "open", Summary: "Shows the page that creates the first administrator", Media: html, Serve: show("first.html")},
		server.Route{Method: http.MethodGet, Path: server.SignInPath, Rule: "open", Summary: "Shows the sign-in page", Media: html, Serve: show("signin.html")},
		server.Route{Method: http.MethodGet, Path: api.ProgramPage, Rule: "open", Summary: "Shows the page that signs in a program on the same machine", Media: html, Serve: show("program.html")},
		server.Route{Method: http.MethodGet, Path: api.DevicePage, Rule: "open", Summary: "Shows the page that signs in a program without a browser", Media: html, Serve: show("device.html")})
}

// page returns the HTML frame of all pages with the title, body and script of a file.
func page(file string) []byte {
	var out bytes.Buffer
	if err := template.Must(template.ParseFS(files, "frame.html", file)).Execute(&out, nil); err != nil {
		panic(err) // a file of this package is wrong
	}
	return out.Bytes()
}

// show returns a handler that responds with a page. The page may use only its own script and style.
func show(file string) func(*server.Call) error {
	page := page(file)
	policy := "default-src 'none'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; script-src " + hash(page, "script") + "; style-src " + hash(page, "style")
	return func(c *server.Call) error {
		h := c.Writer.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cache-Control", "no-store")
		wire.Bytes(c.Writer, c.Request, http.StatusOK, html, page)
		return nil
	}
}

// hash returns the hash of the page's only element with the given name, in the format of a content policy.
func hash(page []byte, element string) string {
	_, rest, _ := bytes.Cut(page, []byte("<"+element+">"))
	inner, _, _ := bytes.Cut(rest, []byte("</"+element+">"))
	sum := sha256.Sum256(inner)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
