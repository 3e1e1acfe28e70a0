package annotation

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/strictyaml"
)

// kind is what a value of a document is.
type kind uint8

const (
	kindNull kind = iota
	kindText
	kindInt
	kindBool
	// kindOther is a scalar that the fast reader does not want to judge: text for those who want
	// text, and a reason to ask the YAML library for all others.
	kindOther
	kindMap
	kindList
)

// value is a value of a document: an entry of tree.nodes.
type value struct {
	key, text   span  // of an entry in a map, of a scalar
	first, next int32 // the first child, the next sibling; 0 is none
	line        int32 // 0 if the fast reader made it
	kind        kind
}

// span is a part of tree.source.
type span struct{ from, to int32 }

// tree is a parsed annotation. Values have no pointers, so that a tree from the pool takes no
// allocation and no work of the garbage collector. Entry 0 is the root.
type tree struct {
	source string
	nodes  []value
	// unsure is set where the fast reader can't say what the YAML library would.
	unsure bool
}

var trees = sync.Pool{New: func() any { return &tree{nodes: make([]value, 0, 64)} }}

func newTree() *tree {
	t, _ := trees.Get().(*tree)
	return t
}

// release gives the tree back. Texts taken from it stay valid.
func (t *tree) release() {
	if cap(t.nodes) > 1<<14 {
		return
	}
	t.source, t.nodes, t.unsure = "", t.nodes[:0], false
	trees.Put(t)
}

func (t *tree) key(i int32) string { return t.part(t.nodes[i].key) }

func (t *tree) text(i int32) string { return t.part(t.nodes[i].text) }

func (t *tree) part(s span) string { return t.source[s.from:s.to] }

func (t *tree) add(v value) int32 {
	t.nodes = append(t.nodes, v)
	return int32(len(t.nodes) - 1)
}

// children iterates over the entries of a map or list.
func (t *tree) children(parent int32) func(func(int32) bool) {
	return func(yield func(int32) bool) {
		for i := t.nodes[parent].first; i != 0; i = t.nodes[i].next {
			if !yield(i) {
				return
			}
		}
	}
}

// fault is a mistake in an annotation.
type fault struct {
	line    int32
	message string
}

func (f *fault) Error() string {
	if f.line == 0 {
		return f.message
	}
	return fmt.Sprintf("line %d: %s", f.line, f.message)
}

func (t *tree) fault(i int32, format string, args ...any) error {
	return &fault{t.nodes[i].line, fmt.Sprintf(format, args...)}
}

var kindNames = [...]string{kindNull: "nothing", kindText: "text", kindInt: "a whole number", kindBool: "true or false",
	kindOther: "something else", kindMap: "a map", kindList: "a list"}

func (t *tree) wrongKind(i int32, field, want string) error {
	if t.nodes[i].kind == kindOther {
		t.unsure = true
	}
	return t.fault(i, "%s must be %s, not %s", field, want, kindNames[t.nodes[i].kind])
}

// str reads text; numbers and the like are the text that was written. Nothing leaves *out alone.
func (t *tree) str(i int32, field string, out *string) error {
	switch t.nodes[i].kind {
	case kindNull:
	case kindText, kindInt, kindBool, kindOther:
		*out = t.text(i)
	default:
		return t.wrongKind(i, field, "text")
	}
	return nil
}

func (t *tree) boolean(i int32, field string, out *bool) error {
	switch t.nodes[i].kind {
	case kindNull:
	case kindBool:
		*out = t.text(i)[0]|0x20 == 't'
	default:
		return t.wrongKind(i, field, "true or false")
	}
	return nil
}

func (t *tree) number(i int32, field string, out *int) error {
	switch t.nodes[i].kind {
	case kindNull:
	case kindInt:
		n, err := strconv.ParseInt(strings.ReplaceAll(t.text(i), "_", ""), 0, 32)
		if err != nil {
			return t.fault(i, "%s is %q, which is no number that makes sense here", field, t.text(i))
		}
		*out = int(n)
	default:
		return t.wrongKind(i, field, "a whole number")
	}
	return nil
}

// read parses text and calls use on the tree: on the fast reader's if that takes the text and use is
// content with it, else on the YAML library's. What use returns about the latter is the answer.
func read(text string, limit int, use func(*tree) error) error {
	if len(text) > limit {
		return fmt.Errorf("it has %d bytes, more than the limit of %d", len(text), limit)
	}
	t := newTree()
	defer t.release()
	if t.readFast(text) && use(t) == nil && !t.unsure {
		return nil
	}
	return readSlow(text, use)
}

// readSlow parses by the YAML library.
func readSlow(text string, use func(*tree) error) error {
	var s slowTree
	if _, findings := strictyaml.Decode("", []byte(text), &s); len(findings) > 0 {
		f := findings[0]
		message := f.Message
		if f.Field != "" {
			message = f.Field + ": " + message
		}
		if f.Remedy != "" {
			message += "; " + f.Remedy
		}
		return &fault{int32(f.Line), message}
	}
	if len(s.nodes) == 0 {
		return errors.New("it is empty")
	}
	s.tree.source = s.source.String()
	return use(&s.tree)
}

// slowTree fills a tree from YAML nodes.
type slowTree struct {
	tree
	source strings.Builder
	full   bool // there were too many values
}

// keep stores a text in the source.
func (s *slowTree) keep(text string) span {
	from := s.source.Len()
	s.source.WriteString(text)
	return span{int32(from), int32(s.source.Len())}
}

// What aliases can make of a short text is bounded.
const (
	maxValues = 1 << 18
	maxText   = 8 << 20
)

// DecodeNode implements strictyaml.NodeDecoder.
func (s *slowTree) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, path strictyaml.Path) {
	s.fill(d, n, path)
}

func (s *slowTree) fill(d *strictyaml.Decoder, n *yaml.Node, path strictyaml.Path) int32 {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if len(s.nodes) >= maxValues || s.source.Len() > maxText {
		if !s.full {
			d.Report(n, path, "yaml/size", "too many values once aliases are expanded", "write fewer")
		}
		s.full = true
		return 0
	}
	me := s.add(value{line: int32(n.Line)})
	switch n.Kind {
	case yaml.MappingNode:
		s.nodes[me].kind = kindMap
		s.fillMap(d, n, path, me)
	case yaml.SequenceNode:
		s.nodes[me].kind = kindList
		last := int32(0)
		for i, c := range n.Content {
			if s.full {
				return me
			}
			s.link(me, &last, s.fill(d, c, path.With(i)))
		}
	default:
		k, text := scalarOf(n)
		s.nodes[me].kind, s.nodes[me].text = k, s.keep(text)
	}
	return me
}

func (s *slowTree) fillMap(d *strictyaml.Decoder, n *yaml.Node, path strictyaml.Path, me int32) {
	last, seen := int32(0), make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		switch {
		case k.Kind != yaml.ScalarNode:
			d.Report(k, path, "yaml/key", "a key must be text", "")
			return
		case k.ShortTag() == "!!merge":
			d.Report(k, path, "yaml/merge", "<< is not supported here", "write the values out")
			return
		case seen[k.Value]:
			d.Report(k, path.With(k.Value), "yaml/duplicate-key", "the key is set twice", "keep one of the two")
			return
		}
		seen[k.Value] = true
		child := s.fill(d, n.Content[i+1], path.With(k.Value))
		if child == 0 {
			return
		}
		s.nodes[child].key = s.keep(k.Value)
		s.link(me, &last, child)
	}
}

func (t *tree) link(parent int32, last *int32, child int32) {
	if child == 0 {
		return
	}
	if *last == 0 {
		t.nodes[parent].first = child
	} else {
		t.nodes[*last].next = child
	}
	*last = child
}

// scalarOf returns a scalar's kind and the text that was written.
func scalarOf(n *yaml.Node) (kind, string) {
	switch n.ShortTag() {
	case "!!null":
		return kindNull, ""
	case "!!int":
		return kindInt, n.Value
	case "!!bool":
		// A tag may turn any text into a "bool".
		if l := strings.ToLower(n.Value); l == "true" || l == "false" {
			return kindBool, n.Value
		}
	}
	return kindText, n.Value
}
