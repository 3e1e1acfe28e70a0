package strictyaml

import (
	"strconv"
	"strings"
)

// Path is the path of a field in a document. Keys are strings, and positions in a list are ints.
type Path []any

// With returns a new path with additional steps at its end.
func (p Path) With(steps ...any) Path {
	out := make(Path, 0, len(p)+len(steps))
	return append(append(out, p...), steps...)
}

// String returns the path in the form machine-list[2].labels["a.b/c"].
func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch s := step.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(s) + "]")
		case string:
			switch {
			case !plainKey(s):
				b.WriteString("[" + strconv.Quote(s) + "]")
			case b.Len() > 0:
				b.WriteString("." + s)
			default:
				b.WriteString(s)
			}
		}
	}
	return b.String()
}

func plainKey(s string) bool {
	for _, r := range s {
		if r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return s != ""
}
