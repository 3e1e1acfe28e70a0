package strictyaml

import (
	"bytes"
	"strings"

	"gopkg.in/yaml.v3"
)

// Comments maps fields to the comments above them. The keys are paths in the form of Path.String. The comment of "" is written at the beginning
// of the file. The lines of a comment don't begin with "#".
type Comments map[string]string

// Encode encodes v, a value or a *yaml.Node, as YAML with comments. Text that could be parsed as another type, or that contains control
// characters, is quoted, so that any string is preserved.
func Encode(v any, comments Comments) ([]byte, error) {
	root, err := Node(v)
	if err != nil {
		return nil, err
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

// annotate adds comments to keys by path. It doesn't enter lists, so their entries get no comments.
func annotate(n *yaml.Node, path string, comments Comments) {
	if n.Kind != yaml.MappingNode || len(comments) == 0 {
		return
	}
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
