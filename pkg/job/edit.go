package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
)

// SetParameter changes the value of a parameter in a job file. The rest of the text doesn't change, so the line numbers of findings still refer to
// the file.
func SetParameter(file string, data []byte, name, value string) ([]byte, error) {
	return setScalar(file, data, value, "parameters", name)
}

// SetName changes the name of the job in a job file.
func SetName(file string, data []byte, name string) ([]byte, error) {
	return setScalar(file, data, name, "name")
}

// setScalar replaces the scalar at path in a job file. The old value must be on a single line.
func setScalar(file string, data []byte, value string, path ...string) ([]byte, error) {
	n, err := topOf(file, data)
	if err != nil {
		return nil, err
	}
	field := strings.Join(path, ".")
	for _, key := range path {
		next, keys := lookup(n, key)
		if next == nil && len(path) > 1 && key == path[0] {
			return nil, hint.Errorf(fmt.Sprintf("write %s: into the file, and below it, indented: %s: VALUE", key, strings.Join(path[1:], ".")), "%s: it has no %s, so there is no %s to set", file, key, field)
		}
		if next == nil {
			return nil, hint.Errorf("there are: "+strings.Join(keys, ", "), "%s: there is no %s to set", file, field)
		}
		n = next
	}
	lines := strings.SplitAfter(string(data), "\n")
	if n.Kind != yaml.ScalarNode || n.Line < 1 || n.Line > len(lines) || n.Anchor != "" {
		return nil, hint.Errorf("change it in the file", "%s:%d: %s is not a single value", file, n.Line, field)
	}
	line := lines[n.Line-1]
	start := byteOf(line, n.Column)
	end := start + scalarLength(line[start:], n)
	for _, text := range []string{value, strconv.Quote(value)} {
		lines[n.Line-1] = line[:start] + text + line[end:]
		if out := strings.Join(lines, ""); text != "" && valueAt(out, path) == value {
			return []byte(out), nil
		}
	}
	return nil, hint.Errorf("change it in the file", "%s:%d: %s can't be replaced in place", file, n.Line, field)
}

// top receives the outermost value of a YAML file.
type top struct{ node *yaml.Node }

// DecodeNode implements strictyaml.NodeDecoder.
func (t *top) DecodeNode(_ *strictyaml.Decoder, n *yaml.Node, _ strictyaml.Path) { t.node = n }

func topOf(file string, data []byte) (*yaml.Node, error) {
	t := &top{}
	_, found := strictyaml.Decode(file, data, t)
	return t.node, found.Err()
}

func lookup(n *yaml.Node, key string) (value *yaml.Node, keys []string) {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1], nil
		}
		keys = append(keys, n.Content[i].Value)
	}
	slices.Sort(keys)
	return nil, keys
}

// valueAt reads the value at path from the new text, so that the caller can check it. It returns "" if the text has no scalar at path.
func valueAt(text string, path []string) string {
	n, err := topOf("", []byte(text))
	if err != nil {
		return ""
	}
	for _, key := range path {
		if n, _ = lookup(n, key); n == nil {
			return ""
		}
	}
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// byteOf converts yaml's column, which counts characters, to an offset in bytes.
func byteOf(line string, column int) int {
	for i := range line {
		if column--; column <= 0 {
			return i
		}
	}
	return len(line)
}

// scalarLength returns how many bytes a value takes at the beginning of rest.
func scalarLength(rest string, n *yaml.Node) int {
	switch {
	case n.Style&yaml.SingleQuotedStyle != 0:
		for i := 1; i < len(rest); i++ {
			if rest[i] == '\'' {
				if i+1 < len(rest) && rest[i+1] == '\'' {
					i++
					continue
				}
				return i + 1
			}
		}
	case n.Style&yaml.DoubleQuotedStyle != 0:
		for i := 1; i < len(rest); i++ {
			switch rest[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
	case strings.HasPrefix(rest, n.Value):
		return len(n.Value)
	}
	return len(rest)
}
