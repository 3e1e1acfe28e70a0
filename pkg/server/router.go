package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/openpai/paictl/pkg/server/wire"
)

// table maps paths to routes. OpenPAI's server accepts paths in any case and with a trailing slash, and clients send such paths. So the server
// converts a path to its spelling in the table before net/http's ServeMux reads it. Parameters are unchanged.
type table struct {
	root *segment
}

type segment struct {
	fixed   map[string]*segment // by lower case
	spelled string              // as in the table
	any     *segment            // a parameter
	rest    bool                // a parameter that takes the rest of the path
	methods []string            // the methods of routes that end here; "" is any
}

// prefix is the prefix that the web server of an OpenPAI cluster adds to paths.
const prefix = "/rest-server"

const (
	maxPath    = 4096
	maxSegment = 1024
)

func newTable() *table { return &table{&segment{}} }

func (t *table) add(method, path string) {
	at := t.root
	for _, part := range parts(path) {
		switch {
		case part == "{$}": // set if a path ends here
		case strings.HasSuffix(part, "...}"):
			at.rest = true
			at.methods = append(at.methods, method)
			return
		case strings.HasPrefix(part, "{"):
			if at.any == nil {
				at.any = &segment{}
			}
			at = at.any
		default:
			if at.fixed == nil {
				at.fixed = map[string]*segment{}
			}
			lower := strings.ToLower(part)
			if at.fixed[lower] == nil {
				at.fixed[lower] = &segment{spelled: part}
			}
			at = at.fixed[lower]
		}
	}
	at.methods = append(at.methods, method)
}

func parts(path string) []string {
	path = strings.Trim(path, "/")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

// find returns the path in the spelling of the table. methods lists the methods of the path, or is nil if the table doesn't contain the path. If a
// parameter matches the rest of the path, a trailing slash is kept. The rest may be a path of another service, where the slash is significant.
func (t *table) find(path string) (spelled string, methods []string) {
	found, at := t.root.find(parts(path))
	if at == nil {
		return path, nil
	}
	spelled = "/" + strings.Join(found, "/")
	if at.rest && strings.HasSuffix(path, "/") {
		spelled += "/"
	}
	return spelled, at.methods
}

// find finds the rest of a path below the segment. It tries fixed parts before a parameter. It returns nil if the table contains no such path.
func (s *segment) find(rest []string) (found []string, end *segment) {
	if len(rest) == 0 {
		if len(s.methods) == 0 {
			return nil, nil
		}
		return nil, s
	}
	if next := s.fixed[strings.ToLower(rest[0])]; next != nil {
		if found, end := next.find(rest[1:]); end != nil {
			return append([]string{next.spelled}, found...), end
		}
	}
	if s.any != nil {
		if found, end := s.any.find(rest[1:]); end != nil {
			return append([]string{rest[0]}, found...), end
		}
	}
	if s.rest {
		return rest, s
	}
	return nil, nil
}

// errPath is the error for a path that normal rejects.
var errPath = wire.Bad(`the path of the address is malformed: a name in it can't contain a slash, a backslash, "%" or control characters, and can't be "." or ".."`)

// normal returns the path of a request without the prefix that OpenPAI's web server adds. It returns an error for a path that other programs could
// interpret differently. Such a path contains an escaped slash, dot or backslash, an empty part, or a ".." part.
func normal(r *http.Request) (string, error) {
	escaped := r.URL.EscapedPath()
	lower := strings.ToLower(escaped)
	for _, bad := range []string{"%2f", "%5c", "%2e", "%00", "%25", "\\", "//"} {
		if strings.Contains(lower, bad) {
			return "", errPath
		}
	}
	path := r.URL.Path
	if !strings.HasPrefix(path, "/") || len(path) > maxPath || !utf8.ValidString(path) {
		return "", errPath
	}
	for _, c := range path {
		if c < ' ' || c == 0x7f {
			return "", errPath
		}
	}
	if first := path[:min(len(path), len(prefix))]; strings.EqualFold(first, prefix) && (len(path) == len(prefix) || path[len(prefix)] == '/') {
		path = path[len(prefix):]
	}
	for _, part := range parts(path) {
		if part == "." || part == ".." || len(part) > maxSegment {
			return "", errPath
		}
	}
	if path == "" {
		return "/", nil
	}
	return path, nil
}

// allowed reports whether a path accepts a method. If not, it returns the accepted methods in the format of an Allow header.
func allowed(method string, methods []string) (bool, string) {
	if slices.Contains(methods, "") || slices.Contains(methods, method) || method == http.MethodHead && slices.Contains(methods, http.MethodGet) {
		return true, ""
	}
	list := slices.Clone(methods)
	if slices.Contains(list, http.MethodGet) {
		list = append(list, http.MethodHead)
	}
	list = append(list, http.MethodOptions)
	slices.Sort(list)
	return false, strings.Join(slices.Compact(list), ", ")
}

// noAPI returns the error for an operation that doesn't exist. The error contains the path, as in OpenPAI, but not the query, which may contain a
// secret.
func noAPI(path string) *wire.Error {
	if path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	return &wire.Error{Status: http.StatusNotFound, Code: wire.CodeNoAPI, Message: fmt.Sprintf("API %s is not found.", wire.Shown(path))}
}
