package strictyaml

import (
	"bytes"
	"strings"

	"gopkg.in/yaml.v3"
)

// Comments are put above fields when a file is written; the key is Path.String(). The
// comment of "" opens the file. Lines need no "#".
type Comments map[string]string

// Encode writes v, a value or a *yaml.Node, as YAML with comments. Text that could be read as something else, or
// holds control characters, is quoted, so that any string survives.
func Encode(v any, comments Comments) ([]byte, error) {
	// Encoding a node into a node would lose the comments that it has.
	root, ok := v.(*yaml.Node)
	if !ok {
		root = &yaml.Node{}
		if err := root.Encode(v); err != nil {
			return nil, err
		}
	}
	annotate(root, "", comments)
	var b bytes.Buffer
	if head := comments[""]; head != "" {
		b.WriteString(comment(head) + "\n\n")
	}
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func comment(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight("# "+l, " ")
	}
	return strings.Join(lines, "\n")
}

// annotate hangs comments on keys by path and makes odd strings safe. Paths go through
// maps only: entries of lists carry no comments.
func annotate(n *yaml.Node, path string, comments Comments) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.ShortTag() == "!!str" && needsQuotes(n.Value) {
			n.Style = yaml.DoubleQuotedStyle
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			annotate(c, path+"[]", comments)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			p := key.Value
			if path != "" {
				p = path + "." + key.Value
			}
			if text := comments[p]; text != "" {
				key.HeadComment = comment(text)
			}
			annotate(n.Content[i+1], p, comments)
		}
	}
}

// needsQuotes finds text for which the encoder's own choice of style is not safe: block
// scalars with leading or trailing white space, and characters that editors hide.
func needsQuotes(s string) bool {
	if s != strings.TrimSpace(s) {
		return true
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0xa0 || r == 0xfeff || r == 0x2028 || r == 0x2029 {
			return true
		}
	}
	return false
}
