package proxy

import (
	"net/http"
	"slices"
	"strings"
)

// class is the class of a request to a service.
type class uint8

const (
	refused class = iota
	read
	signIn
	write
)

// kind describes the requests to a service. Paths are the paths of the service itself; one that ends with a slash stands for all
// below it, too. They are compared without regard to case, because a service may ignore it.
type kind struct {
	title string
	// closed are paths that the proxy never forwards: they stop the service, change its data outside of its API, or reveal its internals.
	closed []string
	// past, which may be nil, reports whether the service would forward a path to another service. Such paths are rejected. past gets the path in
	// lower case.
	past func(path string) bool
	// queries are paths where POST only reads.
	queries []string
	// signIns are paths where POST signs in to the service itself.
	signIns []string
	// files are paths where a GET request reads a file of the page, as at /. Such a request is cheap.
	files []string
	// writes are the paths whose requests change something. If others is false, only GET and HEAD are accepted at other paths.
	writes []string
	others bool
}

// promQueries are the paths of Prometheus's queries. It accepts GET for them, too.
var promQueries = []string{"/api/v1/query", "/api/v1/query_range", "/api/v1/query_exemplars", "/api/v1/series", "/api/v1/labels", "/api/v1/format_query", "/api/v1/parse_query"}

// kinds are the services that paictl knows. For others, POST, PUT, PATCH and DELETE are writes.
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

// class returns the class of a request. Headers that could make a service treat GET as another method aren't forwarded.
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

// file reports whether a request only reads a file of the page.
func (k *kind) file(method, path string) bool {
	return (method == http.MethodGet || method == http.MethodHead) && (path == "/" || listed(k.files, path))
}

// listed reports whether a path is in a list, without regard to case.
func listed(paths []string, path string) bool {
	path = strings.ToLower(path)
	return slices.ContainsFunc(paths, func(p string) bool { return below(path, p) })
}

// below reports whether a path matches one of a list, with or without a slash at its end.
func below(path, listed string) bool {
	whole := strings.TrimSuffix(listed, "/")
	return strings.TrimSuffix(path, "/") == whole || strings.HasSuffix(listed, "/") && strings.HasPrefix(path, listed)
}
