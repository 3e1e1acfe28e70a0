package proxy

import (
	"net/http"
	"slices"
	"strings"
)

// class determines how the proxy handles a request to a service.
type class uint8

const (
	refused class = iota
	read
	signIn
	write
)

// kind describes the requests to a service. All paths are paths of the service itself. A path that ends with a slash includes all paths below it.
// Comparisons ignore case, because services may ignore case.
type kind struct {
	title string
	// closed lists paths that the proxy never forwards. Requests to these paths stop the service, change its data outside its API, or reveal its
	// internals.
	closed []string
	// past reports whether the service would forward a path to another service. The proxy rejects such paths. The path is in lower case. past may be
	// nil.
	past func(path string) bool
	// queries lists paths with read-only POST requests.
	queries []string
	// signIns lists paths with POST requests that sign in to the service itself.
	signIns []string
	// files lists paths with GET requests that read a file of the page, as for the path /. Such a request is cheap.
	files []string
	// writes lists the paths whose requests change data. If others is false, all other paths accept only GET and HEAD.
	writes []string
	others bool
}

// promQueries lists the query paths of Prometheus, which accept both GET and POST.
var promQueries = []string{"/api/v1/query", "/api/v1/query_range", "/api/v1/query_exemplars", "/api/v1/series", "/api/v1/labels", "/api/v1/format_query", "/api/v1/parse_query"}

// kinds holds the kinds of the services with known paths. For other services, POST, PUT, PATCH and DELETE are writes.
var kinds = map[string]kind{
	"prometheus": {
		title:   "Prometheus",
		closed:  []string{"/-/", "/debug/", "/api/v1/admin/", "/api/v1/write", "/api/v1/read", "/api/v1/otlp/"},
		queries: promQueries,
		files:   []string{"/assets/", "/static/", "/favicon.ico", "/favicon.svg", "/manifest.json", "/query", "/graph", "/alerts", "/targets"},
	},
	"alert-manager": {
		title:  "Alertmanager",
		closed: []string{"/-/", "/debug/"},
		writes: []string{"/api/v2/silences", "/api/v2/silence/"},
		files:  []string{"/assets/", "/lib/", "/script.js", "/favicon.ico"},
	},
	"grafana": {
		title:   "Grafana",
		closed:  []string{"/debug/", "/metrics", "/api/live/", "/api/datasources/proxy/", "/avatar/"},
		past:    closedInGrafana,
		signIns: []string{"/login"},
		queries: []string{"/api/ds/query", "/api/frontend-metrics", "/api/dashboards/calculate-diff"},
		files:   []string{"/public/", "/d/", "/login"},
		others:  true, // it has users, and decides on their rights
	},
}

func kindOf(name string) kind {
	if k, known := kinds[name]; known {
		return k
	}
	return kind{others: true}
}

// class returns the class of a request. It relies on the method, because the proxy doesn't forward headers that could make a service treat GET as
// another method.
func (k *kind) class(method, path string) class {
	in := func(paths []string) bool { return listed(paths, path) }
	switch {
	case in(k.closed), k.past != nil && k.past(strings.ToLower(path)):
		return refused
	case method == http.MethodGet, method == http.MethodHead, method == http.MethodPost && in(k.queries):
		return read
	case method == http.MethodPost && in(k.signIns):
		return signIn
	case method != http.MethodPost && method != http.MethodPut && method != http.MethodPatch && method != http.MethodDelete:
		return refused
	case in(k.writes), k.others:
		return write
	}
	return refused
}

// file reports whether a request only reads a file of the service's pages.
func (k *kind) file(method, path string) bool {
	return (method == http.MethodGet || method == http.MethodHead) && (path == "/" || listed(k.files, path))
}

// listed reports whether a list of paths includes a path. It ignores case.
func listed(paths []string, path string) bool {
	path = strings.ToLower(path)
	return slices.ContainsFunc(paths, func(p string) bool { return below(path, p) })
}

// below reports whether a listed path includes a path. It ignores a trailing slash.
func below(path, listed string) bool {
	whole := strings.TrimSuffix(listed, "/")
	return strings.TrimSuffix(path, "/") == whole || strings.HasSuffix(listed, "/") && strings.HasPrefix(path, listed)
}
