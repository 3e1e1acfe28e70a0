package door

import (
	"net/http"
	"slices"
	"strings"
)

// class is what a request to a service is.
type class uint8

const (
	refused class = iota
	read
	signIn
	write
)

// kind says what the requests to a service are. Paths are those of the service itself; one that ends with a slash stands for all below it, too.
// They are compared without regard to case: what a service takes for the same must not pass because of that.
type kind struct {
	title string
	// closed are paths that no one gets through the door: they end the service, change its data past its API, or tell of its inside.
	closed []string
	// past, which may be nil, reports whether a path leads past the service to another one, and may not. It comes in lower case.
	past func(path string) bool
	// queries are paths where POST only reads.
	queries []string
	// signIns are paths where POST signs in to the service itself.
	signIns []string
	// files are paths where GET reads a file of the page, as it does at /: it costs next to nothing.
	files []string
	// writes are paths where something is changed; where others is false, other methods than GET and HEAD are refused elsewhere.
	writes []string
	others bool
}

// promQueries are those of Prometheus. It takes GET for them, too.
var promQueries = []string{"/api/v1/query", "/api/v1/query_range", "/api/v1/query_exemplars", "/api/v1/series", "/api/v1/labels", "/api/v1/format_query", "/api/v1/parse_query"}

// kinds are the services that paictl knows. Of others all that isn't GET or HEAD is a write.
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
		others:  true, // it knows people itself, and decides what they may
	},
}

func kindOf(name string) kind {
	if k, known := kinds[name]; known {
		return k
	}
	return kind{others: true}
}

// class tells what a request is. A service could be made to take GET for something else by headers; those don't go along.
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

// listed reports whether a path is one of a list's, whatever its case.
func listed(paths []string, path string) bool {
	path = strings.ToLower(path)
	return slices.ContainsFunc(paths, func(p string) bool { return below(path, p) })
}

// below reports whether a path is one of the list's, with or without a slash at its end.
func below(path, listed string) bool {
	whole := strings.TrimSuffix(listed, "/")
	return strings.TrimSuffix(path, "/") == whole || strings.HasSuffix(listed, "/") && strings.HasPrefix(path, listed)
}
