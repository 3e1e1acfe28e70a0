package strictyaml

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxFindings limits the number of findings about one file. A file with more findings is probably the wrong file.
const maxFindings = 1000

// NodeDecoder is implemented by types that can have more than one form in YAML.
type NodeDecoder interface {
	// DecodeNode decodes n into the receiver, and reports mistakes to d.
	DecodeNode(d *Decoder, n *yaml.Node, path Path)
}

// KeyHinter is implemented by structs for which common wrong keys are known.
type KeyHinter interface {
	// KeyHints maps wrong keys to hints with the correct keys.
	KeyHints() map[string]string
}

// Decode parses data and decodes it into out, a pointer to a struct with yaml tags. A null value leaves a field unchanged, so the caller can set
// defaults before or afterwards.
func Decode(file string, data []byte, out any) (*Document, Findings) {
	doc, findings := Parse(file, data)
	if len(findings) > 0 {
		return doc, findings
	}
	return doc, doc.Decode(out)
}

// Decode decodes the document into out, which must be a pointer.
func (d *Document) Decode(out any) Findings {
	if d.root == nil {
		return nil
	}
	dec := &Decoder{file: d.File, fields: map[reflect.Type]structFields{}}
	dec.Value(d.root, nil, out)
	dec.findings.Sort()
	return dec.findings
}

// Decoder decodes nodes into Go values, and collects findings.
type Decoder struct {
	file     string
	findings Findings
	fields   map[reflect.Type]structFields
}

// Value decodes n into out, which must be a pointer.
func (d *Decoder) Value(n *yaml.Node, path Path, out any) {
	d.value(n, path, reflect.ValueOf(out).Elem())
}

// Apart decodes n into out, which must be a pointer. It returns the findings instead of reporting them, with paths that begin at n. Callers use it
// to check the entries of a list separately.
func (d *Decoder) Apart(n *yaml.Node, out any) Findings {
	part := &Decoder{file: d.file, fields: d.fields}
	part.Value(n, nil, out)
	part.findings.Sort()
	return part.findings
}

// Ignored accepts and ignores a value of any form.
type Ignored struct{}

// DecodeNode implements NodeDecoder.
func (*Ignored) DecodeNode(*Decoder, *yaml.Node, Path) {}

// Report adds a finding at the position of n. It does nothing if the file already has too many findings.
func (d *Decoder) Report(n *yaml.Node, path Path, rule, message, remedy string) {
	if len(d.findings) >= maxFindings {
		return
	}
	d.findings = append(d.findings, Finding{File: d.file, Line: n.Line, Column: n.Column, Field: path.String(),
		Rule: rule, Severity: Error, Message: message, Remedy: remedy})
}

func (d *Decoder) wrongType(n *yaml.Node, path Path, want string) {
	remedy := ""
	if n.Kind == yaml.ScalarNode && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 && (want == "a whole number" || want == "true or false") {
		remedy = "remove the quotes, if that is what you meant"
	}
	if n.Kind == yaml.ScalarNode && strings.HasPrefix(want, "a list") {
		remedy = "write each entry on a separate line that begins with \"- \""
	}
	switch {
	case remedy != "":
	case want == "a map":
		remedy = `write its keys on the lines below, indented, each as "key: value"`
	case want == "a whole number" && n.Kind == yaml.ScalarNode && n.Value != "" && strings.Trim(n.Value, "+-_0123456789") == "":
		d.Report(n, path, "yaml/type", "the number is out of range", "write a number closer to zero")
		return
	default:
		remedy = "write " + want + " there"
	}
	d.Report(n, path, "yaml/type", fmt.Sprintf("expected %s, found %s", want, describe(n)), remedy)
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	// Omit the value from the message, because it may be a secret.
	switch n.ShortTag() {
	case "!!int":
		return "a whole number"
	case "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "nothing"
	}
	return "text"
}

func (d *Decoder) value(n *yaml.Node, path Path, v reflect.Value) {
	n = deref(n)
	if v.Kind() == reflect.Pointer {
		if isNull(n) {
			return
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.value(n, path, v.Elem())
		return
	}
	if v.CanAddr() {
		if nd, ok := v.Addr().Interface().(NodeDecoder); ok {
			nd.DecodeNode(d, n, path)
			return
		}
	}
	if isNull(n) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structValue(n, path, v)
	case reflect.Map:
		d.mapValue(n, path, v)
	case reflect.Slice:
		d.slice(n, path, v)
	case reflect.Interface:
		if a := d.any(n, path); a != nil {
			v.Set(reflect.ValueOf(a))
		}
	default:
		d.scalar(n, path, v)
	}
}

// ambiguous matches numbers with different meanings in YAML 1.1 and 1.2. A number with a leading 0 is octal in one of these versions and decimal in
// the other. Only YAML 1.1 allows underscores.
var ambiguous = regexp.MustCompile(`^[-+]?(0[0-9_]|[0-9]+_)[0-9_]*$`)

// Ambiguous reports whether a value is a number with different meanings in different versions of YAML.
func Ambiguous(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0 && n.ShortTag() != "!!str" && ambiguous.MatchString(n.Value)
}

// RuleNumber is the rule of findings about ambiguous numbers.
const RuleNumber = "yaml/number"

// AmbiguousMessage and AmbiguousRemedy are the message and the remedy for an ambiguous number.
const (
	AmbiguousMessage = "a number with a leading 0, or with _, has another value in another version of YAML"
	AmbiguousRemedy  = "write the number without them, an octal one as 0o17, and text in quotes"
)

func (d *Decoder) scalar(n *yaml.Node, path Path, v reflect.Value) {
	scalar, tag := n.Kind == yaml.ScalarNode, n.ShortTag()
	if v.Kind() != reflect.String && Ambiguous(n) {
		d.Report(n, path, RuleNumber, AmbiguousMessage, AmbiguousRemedy)
		return
	}
	switch v.Kind() {
	case reflect.String:
		// In a string field, numbers and booleans keep their original text. For example, 1.10 stays 1.10, and a password may be 0123.
		if !scalar {
			d.wrongType(n, path, "text")
			return
		}
		v.SetString(n.Value)
	case reflect.Bool:
		var b bool
		if !scalar || tag != "!!bool" || n.Decode(&b) != nil {
			d.wrongType(n, path, "true or false")
			return
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int32, reflect.Int64:
		if !scalar || tag != "!!int" {
			d.wrongType(n, path, "a whole number")
			return
		}
		var i int64
		if n.Decode(&i) != nil || v.OverflowInt(i) {
			d.Report(n, path, "yaml/type", "not a whole number, or one that is too large", "")
			return
		}
		v.SetInt(i)
	case reflect.Float64:
		var f float64
		if !scalar || (tag != "!!int" && tag != "!!float") || n.Decode(&f) != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			d.wrongType(n, path, "a number")
			return
		}
		v.SetFloat(f)
	default:
		d.Report(n, path, "yaml/type", "cannot be set from a file", "")
	}
}

func (d *Decoder) slice(n *yaml.Node, path Path, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.wrongType(n, path, "a list")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, c := range n.Content {
		p := path.With(i)
		if isNull(deref(c)) {
			d.Report(c, p, "yaml/empty-entry", "the entry is empty", "remove it, or write its value")
			continue
		}
		d.value(c, p, out.Index(i))
	}
	v.Set(out)
}

func (d *Decoder) mapValue(n *yaml.Node, path Path, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, path, "a map")
		return
	}
	out := v
	if v.IsNil() {
		out = reflect.MakeMapWithSize(v.Type(), len(n.Content)/2)
	}
	for _, e := range d.entries(n, path) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(e.value, path.With(e.key.Value), item)
		out.SetMapIndex(reflect.ValueOf(e.key.Value).Convert(v.Type().Key()), item)
	}
	v.Set(out)
}

func (d *Decoder) any(n *yaml.Node, path Path) any {
	n = deref(n)
	switch n.Kind {
	case yaml.MappingNode:
		out := make(map[string]any, len(n.Content)/2)
		for _, e := range d.entries(n, path) {
			out[e.key.Value] = d.any(e.value, path.With(e.key.Value))
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, c := range n.Content {
			out[i] = d.any(c, path.With(i))
		}
		return out
	}
	if n.ShortTag() == "!!timestamp" {
		return n.Value
	}
	if Ambiguous(n) {
		d.Report(n, path, RuleNumber, AmbiguousMessage, AmbiguousRemedy)
	}
	var out any
	if err := n.Decode(&out); err != nil {
		d.Report(n, path, "yaml/type", "the value does not fit its tag", "put it in quotes")
		return nil
	}
	if f, ok := out.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		d.Report(n, path, "yaml/type", "not a finite number", "write a finite number")
		return nil
	}
	return out
}

type entry struct{ key, value *yaml.Node }

// Pair is a key and its value in a mapping.
type Pair struct{ Key, Value *yaml.Node }

// Pairs returns the pairs of the mapping n in the order of the file, with merges (<<) expanded. It reports duplicate keys, and keys that aren't
// plain text. DecodeNode methods can call Pairs.
func (d *Decoder) Pairs(n *yaml.Node, path Path) []Pair {
	entries := d.entries(n, path)
	out := make([]Pair, len(entries))
	for i, e := range entries {
		out[i] = Pair{Key: e.key, Value: e.value}
	}
	return out
}

// entries returns the pairs of a mapping, with merges (<<) expanded. Explicit keys override merged keys. It reports duplicate keys, and keys
// that aren't plain text.
func (d *Decoder) entries(n *yaml.Node, path Path) []entry {
	out := make([]entry, 0, len(n.Content)/2)
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := deref(n.Content[i]), n.Content[i+1]
		switch first := seen[key.Value]; {
		case isMerge(key):
			merges = append(merges, value)
		case key.Kind != yaml.ScalarNode:
			d.Report(key, path, "yaml/key", "a key must be text", "")
		case first != nil:
			d.Report(key, path.With(key.Value), "yaml/duplicate-key",
				fmt.Sprintf("the key is already set on line %d", first.Line), "keep one of the two")
		default:
			seen[key.Value] = key
			out = append(out, entry{key, value})
		}
	}
	for _, m := range merges {
		out = d.merge(out, seen, m, path)
	}
	return out
}

func (d *Decoder) merge(out []entry, seen map[string]*yaml.Node, n *yaml.Node, path Path) []entry {
	n = deref(n)
	switch n.Kind {
	case yaml.SequenceNode:
		for _, c := range n.Content {
			out = d.merge(out, seen, c, path)
		}
	case yaml.MappingNode:
		for _, e := range d.entries(n, path) {
			if seen[e.key.Value] == nil {
				seen[e.key.Value] = e.key
				out = append(out, e)
			}
		}
	default:
		d.Report(n, path, "yaml/merge", "<< needs a map or a list of maps", "write << : *name, where name is the anchor of a map")
	}
	return out
}
