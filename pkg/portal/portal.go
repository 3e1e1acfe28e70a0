// Package portal serves the web pages for users, such as the pages for jobs, logs and submissions. In: the files that make portal builds from
// pkg/portal/web. Out: routes of the pages and of their files.
//
// The pages are one program that runs in the browser and uses /api/v3, as paictl does. They have only the rights of the signed-in user.
package portal

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/wire"
)

//go:embed built
var files embed.FS

// policy is a content policy that allows only the portal's own files, and requests to the portal's own server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// media maps the extensions of files to media types.
var media = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// anything is the media type of routes that the OpenAPI document leaves out.
const anything = "*/*"

// pages lists the paths of the portal's pages.
var pages = []string{
	"/{$}", "/jobs", "/jobs/{user}/{name}", "/submit",
	"/templates", "/templates/{template}", "/queue", "/machines", "/usage", "/profile",
	"/admin", "/admin/{page}", "/admin/{page}/{name}",
}

// Routes returns the routes of all pages, of their files, and of the addresses that OpenPAI's portal had.
func Routes() []server.Route {
	s := load()
	var out []server.Route
	for _, p := range pages {
		out = append(out, server.Route{Method: http.MethodGet, Path: p, Rule: "open", Summary: "Shows a page of the portal", Media: "text/html; charset=utf-8", Serve: s.page})
	}
	out = append(out, server.Route{Method: http.MethodGet, Path: "/portal/{version}/{file}", Rule: "open", Summary: "Returns a file of the portal", Media: anything, Serve: s.file})
	return append(out, former()...)
}

// site holds all files in compressed form. version is the hash of all files. It is part of the paths, so that browsers may cache a file forever.
type site struct {
	version string
	files   map[string]*file
}

type file struct{ data, zipped []byte }

// load returns the site. It compresses the files when it is first called.
var load = sync.OnceValue(func() *site {
	s := &site{files: map[string]*file{}}
	sum := sha256.New()
	all, err := fs.ReadDir(files, "built")
	if err != nil {
		panic(err) // the files are part of the program
	}
	for _, f := range all {
		data, err := fs.ReadFile(files, path.Join("built", f.Name()))
		if err != nil {
			panic(err) // as above
		}
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", f.Name(), len(data), data)
		var zipped bytes.Buffer
		z, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // a valid level
		_, _ = z.Write(data)
		_ = z.Close()
		s.files[f.Name()] = &file{data, zipped.Bytes()}
	}
	s.version = hex.EncodeToString(sum.Sum(nil)[:8])
	return s
})

// frame is the HTML document of all pages. The program in it displays the page that belongs to the address. The addresses in frame are relative,
// because a proxy may serve the portal below a path.
const frame = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>paictl</title>
<link rel="icon" href="@icon.svg">
<link rel="stylesheet" href="@app.css">
<link rel="modulepreload" href="@library.js">
<link rel="modulepreload" href="@shared.js">
<script src="@theme.js"></script>
<script type="module" src="@app.js"></script>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript.</noscript>
</body>
</html>
`

func (s *site) page(c *server.Call) error {
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	body := strings.ReplaceAll(frame, "@", up(c.Request)+"portal/"+s.version+"/")
	wire.Bytes(c.Writer, c.Request, http.StatusOK, c.Route.Media, []byte(body))
	return nil
}

// up returns the relative address of the server's root from the address of a request, as a browser resolves it.
func up(r *http.Request) string {
	depth := strings.Count(strings.TrimSuffix(r.URL.Path, "/"), "/")
	if asked, _, _ := strings.Cut(r.RequestURI, "?"); r.URL.Path != "/" && strings.HasSuffix(asked, "/") {
		depth++
	}
	return strings.Repeat("../", max(depth-1, 0))
}

func (s *site) file(c *server.Call) error {
	r, h := c.Request, c.Writer.Header()
	f, name := s.files[r.PathValue("file")], r.PathValue("file")
	if f == nil || r.PathValue("version") != s.version {
		return &wire.Error{Status: http.StatusNotFound, Code: wire.CodeNoAPI, Message: "the portal has no such file", Remedy: "load the page again: the server may have been updated"}
	}
	tag := `"` + s.version + "-" + name + `"`
	h.Set("Content-Type", media[path.Ext(name)])
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("ETag", tag)
	h.Add("Vary", "Accept-Encoding")
	if slices.Contains(r.Header.Values("If-None-Match"), tag) {
		c.Writer.WriteHeader(http.StatusNotModified)
		return nil
	}
	data := f.data
	if wire.AcceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		data = f.zipped
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	c.Writer.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = c.Writer.Write(data) // a browser that is gone isn't an error
	}
	return nil
}
