package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/openpai/paictl/pkg/server/wire"
)

// table finds what a path means. OpenPAI's server takes paths in any case and with a slash at the end, and clients send such: the
// path is written as the table spells it before net/http's ServeMux looks at it. Parts that are parameters stay as they came.
type table struct {
	root *segment
}

// segment is one part of a path of the table.
type segment struct {
	fixed   map[string]*segment // by lower case
	spelled string              // as the table has it
	any     *segment            // a parameter
	rest    bool                // a parameter that takes all that follows
	methods []string            // that end here; "" is any
}

// prefix is what the front of an OpenPAI cluster puts before its paths.
const prefix = "/rest-server"

const (
	maxPath    = 4096
	maxSegment = 1024
)

func newTable() *table { return &table{&segment{}} }

// add takes a route's path.
func (t *table) add(method, path string) {
	at := t.root
	for _, part := range parts(path) {
		switch {
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

// find spells a path as the table does; methods are those that it takes, none where the table hasn't got it. A slash at the end stays where
// a parameter takes all that follows: what is behind it may be another's, to whom a slash has a meaning.
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

// find looks for fixed parts first: a parameter of that text is what the table doesn't mean. Where nothing ends there it is nil.
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

// normal is the path of a request without what OpenPAI's front puts before it. A path that others could
// read in another way than we do is refused: it has an escaped slash, dot or backslash, empty parts, or parts that walk up.
func normal(r *http.Request) (string, error) {
	escaped := r.URL.EscapedPath()
	lower := strings.ToLower(escaped)
	for _, bad := range []string{"%2f", "%5c", "%2e", "%00", "%25", "\\", "//"} {
		if strings.Contains(lower, bad) {
			return "", wire.Bad("the path of the address is malformed")
		}
	}
	path := r.URL.Path
	if !strings.HasPrefix(path, "/") || len(path) > maxPath || !utf8.ValidString(path) {
		return "", wire.Bad("the path of the address is malformed")
	}
	for _, c := range path {
		if c < ' ' || c == 0x7f {
			return "", wire.Bad("the path of the address is malformed")
		}
	}
	if first := path[:min(len(path), len(prefix))]; strings.EqualFold(first, prefix) && (len(path) == len(prefix) || path[len(prefix)] == '/') {
		path = path[len(prefix):]
	}
	for _, part := range parts(path) {
		if part == "." || part == ".." || len(part) > maxSegment {
			return "", wire.Bad("the path of the address is malformed")
		}
	}
	if path == "" {
		return "/", nil
	}
	return path, nil
}

// allowed reports whether a path takes a method, and which it takes otherwise.
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

// noAPI says that there is no such operation. It repeats the path, as OpenPAI does, and not the query, which may hold a secret.
func noAPI(path string) *wire.Error {
	if path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	return &wire.Error{Status: http.StatusNotFound, Code: wire.CodeNoAPI, Message: fmt.Sprintf("API %s is not found.", wire.Shown(path))}
}
