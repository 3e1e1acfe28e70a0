package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Limits of a document. The layout of 5,000 machines has about 100,000 nodes.
const (
	MaxBytes = 64 << 20
	MaxDepth = 60
	// MaxNodes limits the number of nodes in a document. A node counts again for each alias that repeats it.
	MaxNodes = 4_000_000
)

// Document is a parsed file that contains the positions of its fields.
type Document struct {
	File string
	root *yaml.Node // a mapping, or nil in an empty file
	text []byte
	size int
}

// Text returns the file exactly as it was read, or nil if the file couldn't be parsed.
func (d *Document) Text() []byte {
	if d == nil {
		return nil
	}
	return d.text
}

// Values returns the number of values and keys. A value counts again for each alias that repeats it. Callers with a lower limit than MaxNodes use
// this number.
func (d *Document) Values() int { return d.size }

// Parse parses one YAML document. The returned document is never nil. It is empty if the file contains syntax errors.
func Parse(file string, data []byte) (doc *Document, findings Findings) {
	doc = &Document{File: file}
	fail := func(line, column int, rule, message, remedy string) (*Document, Findings) {
		return &Document{File: file}, Findings{{File: file, Line: line, Column: column, Rule: rule,
			Severity: Error, Message: message, Remedy: remedy}}
	}
	// yaml.v3 panics for some inputs, so return a finding instead.
	defer func() {
		if r := recover(); r != nil {
			doc, findings = fail(1, 1, "yaml/syntax", fmt.Sprintf("not readable as YAML: %v", r), "")
		}
	}()
	if len(data) > MaxBytes {
		return fail(0, 0, "yaml/size", fmt.Sprintf("%d MiB is more than the limit of %d MiB", len(data)>>20, MaxBytes>>20), "")
	}
	if line, column, ok := validText(data); !ok {
		return fail(line, column, "yaml/encoding", "the file is not text in UTF-8",
			"save it as UTF-8; a file from Windows may be UTF-16")
	}
	if line, column, c := control(data); line > 0 {
		return fail(line, column, "yaml/syntax", fmt.Sprintf("control characters are not allowed: %U", c), `remove it; in a value in double quotes, write it as \x and two digits`)
	}
	if line := nestingLine(data); line > 0 {
		return fail(line, 1, "yaml/depth", fmt.Sprintf("nested deeper than %d levels", MaxDepth), "remove levels")
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var top, second yaml.Node
	err := dec.Decode(&top)
	if errors.Is(err, io.EOF) {
		return fail(1, 1, "yaml/empty", "the file is empty", "write its content again, or name another file")
	}
	if err != nil {
		line, column, text, remedy := syntaxError(data, err)
		return fail(line, column, "yaml/syntax", text, remedy)
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			line, column, text, remedy := syntaxError(data, err)
			return fail(line, column, "yaml/syntax", text, remedy)
		}
		return fail(second.Line, max(second.Column, 1), "yaml/several-documents", "the file holds several documents",
			"remove the line --- and everything after it")
	}
	if len(top.Content) != 1 || isNull(top.Content[0]) {
		return fail(1, 1, "yaml/empty", "the file is empty", "write its content again, or name another file")
	}
	root := top.Content[0]
	s := scanner{file: file}
	s.scan(root, 0)
	if len(s.findings) > 0 {
		return doc, s.findings
	}
	doc.root, doc.text, doc.size = root, data, s.nodes
	return doc, nil
}

// scanner reports constructs that would make later steps slow or ambiguous: deep nesting, aliases that multiply nodes, and tags that change the
// meaning of a value.
type scanner struct {
	file     string
	nodes    int
	stopped  bool
	findings Findings
}

func (s *scanner) scan(n *yaml.Node, depth int) {
	if s.stopped {
		return
	}
	s.nodes++
	switch {
	case depth > MaxDepth:
		s.stop(n, "yaml/depth", fmt.Sprintf("nested deeper than %d levels, or an alias that contains itself", MaxDepth))
		return
	case s.nodes > MaxNodes:
		s.stop(n, "yaml/size", fmt.Sprintf("more than %d values once aliases are expanded", MaxNodes))
		return
	case n.Kind == yaml.AliasNode:
		s.scan(n.Alias, depth+1)
		return
	}
	if n.Style&yaml.TaggedStyle != 0 && !coreTag(n.ShortTag()) {
		s.findings = append(s.findings, Finding{File: s.file, Line: n.Line, Column: n.Column, Rule: "yaml/tag",
			Severity: Error, Message: "a tag (!...) that is not supported", Remedy: "put the value in single quotes if it begins with !; otherwise remove the tag"})
	}
	for _, c := range n.Content {
		s.scan(c, depth+1)
	}
}

func (s *scanner) stop(n *yaml.Node, rule, message string) {
	s.stopped = true
	s.findings = append(s.findings, Finding{File: s.file, Line: n.Line, Column: n.Column, Rule: rule,
		Severity: Error, Message: message, Remedy: "write the values out without anchors and aliases"})
}

func coreTag(tag string) bool {
	switch tag {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq", "!!merge", "!!timestamp", "":
		return true
	}
	return false
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// validText returns the position of the first byte that is NUL or invalid in UTF-8. The last result is true if all bytes are valid.
func validText(data []byte) (line, column int, ok bool) {
	bad := bytes.IndexByte(data, 0)
	if !utf8.Valid(data) {
		for i := 0; i < len(data); {
			r, size := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && size == 1 {
				if bad < 0 || i < bad {
					bad = i
				}
				break
			}
			i += size
		}
	}
	if bad < 0 {
		return 0, 0, true
	}
	before := data[:bad]
	return bytes.Count(before, []byte("\n")) + 1, bad - bytes.LastIndexByte(before, '\n'), false
}

// control returns the first character that YAML doesn't allow in a file, with its position.
func control(data []byte) (line, column int, c rune) {
	line = 1
	for l := range bytes.Lines(data) {
		column = 0
		for _, c := range string(l) {
			column++
			mark := c == 0xfeff && (line > 1 || column > 1) // the byte order mark is allowed only at the beginning
			if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c >= 0x7f && c < 0xa0 && c != 0x85 || c == 0xfffe || c == 0xffff || mark {
				return line, column, c
			}
		}
		line++
	}
	return 0, 0, 0
}

// oddSpace searches for a space other than U+0020 where YAML needs a space. Such a space may come from a web page. oddSpace searches the line near
// and its neighboring lines.
func oddSpace(data []byte, near int) (line, column int, c rune) {
	for _, line := range []int{near, near - 1, near + 1} {
		column, before := 0, ' '
		for _, c := range lineOf(data, line) {
			column++
			if c > 0x85 && unicode.IsSpace(c) && (before == ':' || before == '-' || before == ' ') {
				return line, column, c
			}
			before = c
		}
	}
	return 0, 0, 0
}

// Marks returns the number of characters that may separate values. It doesn't parse the text. The parser creates at most four nodes for each of these
// characters, and four additional nodes.
func Marks(data []byte) int {
	n := bytes.Count(data, []byte("\u0085")) + bytes.Count(data, []byte("\u2028")) + bytes.Count(data, []byte("\u2029")) // line ends, too
	for i, c := range data {
		switch c {
		case '\n', '\r', ',', ':', '?', '[', '{':
			n++
		case '-':
			if i+1 < len(data) && (data[i+1] == ' ' || data[i+1] == '\t') {
				n++
			}
		}
	}
	return n
}

// nestingLine returns the number of a line that opens more brackets or list items than any valid document needs, or 0. Call it before the parser,
// because the parser's time grows with the square of this number.
func nestingLine(data []byte) int {
	line, run := 1, 0
	for _, c := range data {
		switch c {
		case '\n':
			line++
		case '[', '{', '-', '?':
			if run++; run > 4*MaxDepth && c != '-' {
				return line
			}
			if run > 20*MaxDepth {
				return line
			}
		case ' ', '\t', '\r':
		default:
			run = 0
		}
	}
	return 0
}

// Position returns the line and column of the value of a field. If the file doesn't contain the field, exact is false, and the position belongs to
// the nearest ancestor. In an empty document, the line is 0.
func (d *Document) Position(path Path) (line, column int, exact bool) {
	if d == nil || d.root == nil {
		return 0, 0, false
	}
	n := d.root
	for _, step := range path {
		next := child(n, step)
		if next == nil {
			return n.Line, n.Column, false
		}
		n = next
	}
	return n.Line, n.Column, true
}

// Has reports whether the file contains the field with a value other than null.
func (d *Document) Has(path ...any) bool {
	n := d.node(path)
	return n != nil && !isNull(n)
}

// Find returns the paths of all scalars with the given value, in the order of the file.
func (d *Document) Find(value string) []Path {
	var out []Path
	var walk func(n *yaml.Node, p Path)
	walk = func(n *yaml.Node, p Path) {
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				walk(n.Content[i+1], p.With(n.Content[i].Value))
			}
		case yaml.SequenceNode:
			for i, c := range n.Content {
				walk(c, p.With(i))
			}
		case yaml.ScalarNode:
			if n.Value == value {
				out = append(out, p)
			}
		}
	}
	if d != nil && d.root != nil && bytes.Contains(d.text, []byte(value)) {
		walk(d.root, nil)
	}
	return out
}

// Keys returns the keys of the mapping at path, in the order of the file. It returns nil if the value isn't a mapping.
func (d *Document) Keys(path ...any) []string {
	n := d.node(path)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var out []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		out = append(out, n.Content[i].Value)
	}
	return out
}

// Scalar returns the text of the value at path, or "" if the value isn't a scalar.
func (d *Document) Scalar(path ...any) string {
	n := d.node(path)
	if n == nil || n.Kind != yaml.ScalarNode || isNull(n) {
		return ""
	}
	return n.Value
}

func (d *Document) node(path Path) *yaml.Node {
	if d == nil || d.root == nil {
		return nil
	}
	n := deref(d.root)
	for _, step := range path {
		if n = child(n, step); n == nil {
			return nil
		}
		n = deref(n)
	}
	return n
}

func deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func child(n *yaml.Node, step any) *yaml.Node {
	n = deref(n)
	switch s := step.(type) {
	case int:
		if n.Kind == yaml.SequenceNode && s >= 0 && s < len(n.Content) {
			return n.Content[s]
		}
	case string:
		if n.Kind != yaml.MappingNode {
			return nil
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == s {
				return n.Content[i+1]
			}
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if isMerge(n.Content[i]) {
				if found := childOfMerged(n.Content[i+1], s); found != nil {
					return found
				}
			}
		}
	}
	return nil
}

func childOfMerged(n *yaml.Node, key string) *yaml.Node {
	n = deref(n)
	if n.Kind == yaml.SequenceNode {
		for _, c := range n.Content {
			if found := child(c, key); found != nil {
				return found
			}
		}
		return nil
	}
	return child(n, key)
}

func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Value == "<<" && key.ShortTag() == "!!merge"
}
