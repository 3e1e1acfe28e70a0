package strictyaml

import (
	"bytes"
	"strings"

	"gopkg.in/yaml.v3"
)

// Comments maps the paths of fields to the comments above them. A path has the form of Path.String. The comment for the path "" is written at the
// beginning of the file. The lines of a comment don't begin with "#".
type Comments map[string]string

// Encode encodes v, a value or a *yaml.Node, as YAML with comments. It quotes text that could be parsed as another type, and text with control
// characters. Any string is therefore preserved.
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

// annotate adds comments to keys by path. It skips the entries of lists.
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
