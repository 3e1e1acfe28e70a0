package protocol

import (
	"fmt"
	"math"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

const (
	// maxValues is the maximum number of values after aliases are expanded, because a small file can expand to many values.
	maxValues = 20_000
	// maxMarks is the maximum number of characters that separate values. It is checked before parsing, because each value takes about 300 bytes.
	maxMarks = 60_000
)

type kind int

const (
	kindNull kind = iota
	kindText
	kindNumber
	kindBool
	kindList
	kindMap
)

// String returns the kind in words, as in messages.
func (k kind) String() string {
	return [...]string{"nothing", "text", "a number", "true or false", "a list", "a map"}[k]
}

// value is one value of the file, with its position. Aliases and merges are resolved.
type value struct {
	node   *yaml.Node // as written; of an alias, its target
	key    *yaml.Node // the key that it belongs to; nil in a list
	line   int
	column int
	kind   kind
	number float64
	whole  bool // number is written as a whole number, or is one
	truth  bool
	fields []field
	items  []*value
}

type field struct {
	name  string
	value *value
}

func (v *value) field(name string) *value {
	if v == nil {
		return nil
	}
	for _, f := range v.fields {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

func (v *value) names() []string {
	out := make([]string, len(v.fields))
	for i, f := range v.fields {
		out[i] = f.name
	}
	return out
}

func (v *value) text() string { return v.node.Value }

// tree is a whole parsed file.
type tree struct {
	root   *value
	doc    *strictyaml.Document
	top    *yaml.Node
	values int
}

// readTree parses a file. The tree is nil if there are findings.
func readTree(file string, data []byte) (*tree, strictyaml.Findings) {
	if len(data) > MaxBytes {
		return nil, strictyaml.Findings{{File: file, Line: 1, Column: 1, Rule: "job/size", Severity: strictyaml.Error,
			Message: fmt.Sprintf("the file has more than %d kB, the limit of a job file", MaxBytes>>10),
			Remedy:  "put programs and data on storage, into the image, or into a folder that is sent with the job (--code)"}}
	}
	if strictyaml.Marks(data) > maxMarks {
		return nil, strictyaml.Findings{{File: file, Line: 1, Column: 1, Rule: "yaml/size", Severity: strictyaml.Error,
			Message: fmt.Sprintf("the file has more than %d of the characters that separate values: line ends and , : ? [ {", maxMarks),
			Remedy:  "put data on storage, into the image, or into a folder that is sent with the job (--code)"}}
	}
	doc, findings := strictyaml.Parse(file, data)
	if len(findings) > 0 {
		return nil, findings
	}
	t := &tree{doc: doc}
	if findings = doc.Decode(t); len(findings) > 0 {
		return nil, findings
	}
	return t, nil
}

// DecodeNode implements strictyaml.NodeDecoder.
func (t *tree) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, path strictyaml.Path) {
	t.top = n
	t.root = t.read(d, n, nil, path)
}

func (t *tree) read(d *strictyaml.Decoder, n, key *yaml.Node, path strictyaml.Path) *value {
	v := &value{key: key, line: n.Line, column: n.Column}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	v.node = n
	if t.values++; t.values > maxValues {
		if t.values == maxValues+1 {
			d.Report(n, path, "yaml/size", fmt.Sprintf("more than %d values once aliases are expanded", maxValues), "write the values out without anchors and aliases")
		}
		return v
	}
	switch n.Kind {
	case yaml.MappingNode:
		v.kind = kindMap
		for _, p := range d.Pairs(n, path) {
			v.fields = append(v.fields, field{p.Key.Value, t.read(d, p.Value, p.Key, path.With(p.Key.Value))})
		}
	case yaml.SequenceNode:
		v.kind = kindList
		for i, c := range n.Content {
			v.items = append(v.items, t.read(d, c, nil, path.With(i)))
		}
	default:
		v.scalar(d, path)
	}
	return v
}

func (v *value) scalar(d *strictyaml.Decoder, path strictyaml.Path) {
	var err error
	switch v.node.ShortTag() {
	case "!!null":
	case "!!bool":
		v.kind, err = kindBool, v.node.Decode(&v.truth)
	case "!!int", "!!float":
		v.kind, err = kindNumber, v.node.Decode(&v.number)
		v.whole = v.number == math.Trunc(v.number)
		if math.IsNaN(v.number) || math.IsInf(v.number, 0) {
			d.Report(v.node, path, "yaml/type", "not a finite number", "write a finite number")
		}
	default: // a date is also accepted as text
		v.kind = kindText
	}
	if err != nil {
		d.Report(v.node, path, "yaml/type", "the value does not fit its tag", "put it in quotes")
	}
}

// find returns the value at a path. If there is no such value, it returns the nearest ancestor that exists.
func (t *tree) find(path strictyaml.Path) *value {
	v := t.root
	for _, step := range path {
		var next *value
		switch s := step.(type) {
		case string:
			next = v.field(s)
		case int:
			if s >= 0 && s < len(v.items) {
				next = v.items[s]
			}
		}
		if next == nil {
			return v
		}
		v = next
	}
	return v
}

// position returns the line and column of a field or, if the field doesn't exist, of the nearest ancestor that exists.
func (t *tree) position(path strictyaml.Path) (line, column int) { return t.find(path).place() }

// place returns the position at which a reader looks for a value. For a map, this is the position of its key.
func (v *value) place() (line, column int) {
	if v.key != nil && v.kind == kindMap {
		return v.key.Line, v.key.Column
	}
	return v.line, v.column
}
