package strictyaml

import (
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Node converts a value to a YAML node. It converts structs by their yaml tags, including omitempty and inline, and maps with sorted keys. If v is a
// *yaml.Node, Node returns it unchanged.
//
// yaml.v3 can also convert values to nodes. But it first converts them to text, and the text loses some values. For example, "\n" becomes empty.
func Node(v any) (*yaml.Node, error) {
	if n, ok := v.(*yaml.Node); ok {
		return n, nil
	}
	return node(reflect.ValueOf(v))
}

func node(v reflect.Value) (*yaml.Node, error) {
	switch v.Kind() {
	case reflect.Invalid:
		return scalar("!!null", "null"), nil
	case reflect.Pointer, reflect.Interface:
		return node(v.Elem())
	case reflect.String:
		return textNode(v.String()), nil
	case reflect.Bool:
		return scalar("!!bool", strconv.FormatBool(v.Bool())), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return scalar("!!int", strconv.FormatInt(v.Int(), 10)), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return scalar("!!int", strconv.FormatUint(v.Uint(), 10)), nil
	case reflect.Float32, reflect.Float64:
		return floatNode(v.Float()), nil
	case reflect.Slice, reflect.Array:
		return listNode(v)
	case reflect.Map:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		return n, addMap(n, v)
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		return n, addStruct(n, v)
	}
	return nil, fmt.Errorf("a value of type %s cannot be written as YAML", v.Type())
}

func scalar(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

func textNode(s string) *yaml.Node {
	n := scalar("!!str", s)
	if needsQuotes(s) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// floatNode keeps the type of a number, so that 2.0 isn't decoded as the integer 2.
func floatNode(f float64) *yaml.Node {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".eEn") {
		s += ".0"
	}
	return scalar("!!float", s)
}

func listNode(v reflect.Value) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if v.Len() == 0 {
		n.Style = yaml.FlowStyle
	}
	for i := range v.Len() {
		c, err := node(v.Index(i))
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, c)
	}
	return n, nil
}

func addMap(n *yaml.Node, v reflect.Value) error {
	keys := v.MapKeys()
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	for _, k := range keys {
		if k.Kind() != reflect.String {
			return fmt.Errorf("a map with keys of type %s cannot be written as YAML", k.Type())
		}
		if err := add(n, k.String(), v.MapIndex(k)); err != nil {
			return err
		}
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return nil
}

func addStruct(n *yaml.Node, v reflect.Value) error {
	for i := range v.NumField() {
		tag, ok := v.Type().Field(i).Tag.Lookup("yaml")
		name, options, _ := strings.Cut(tag, ",")
		field := v.Field(i)
		switch {
		case !ok || name == "-" || !v.Type().Field(i).IsExported():
		case options == "inline":
			if err := addMap(n, field); err != nil {
				return err
			}
		case options == "omitempty" && isEmpty(field):
		default:
			if err := add(n, name, field); err != nil {
				return err
			}
		}
	}
	return nil
}

// isEmpty reports whether omitempty omits a value: nil, an empty or zero value, or a struct with only empty fields.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		for i := range v.NumField() {
			if !isEmpty(v.Field(i)) {
				return false
			}
		}
		return true
	}
	return v.IsZero()
}

func add(n *yaml.Node, key string, v reflect.Value) error {
	c, err := node(v)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	n.Content = append(n.Content, textNode(key), c)
	return nil
}

// needsQuotes reports whether a text must be quoted because the encoder's default style is unsafe. Unsafe styles are used for block scalars with
// leading or trailing white space, and for characters that editors don't show.
func needsQuotes(s string) bool {
	if s != strings.TrimSpace(s) || s == "<<" || s == "=" {
		return true
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0xa0 || r == 0xfeff || r == 0x2028 || r == 0x2029 {
			return true
		}
	}
	return false
}
