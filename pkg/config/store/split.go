package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// Reference replaces a secret in a file of the ConfigMap. The secrets of a file are stored in the order of their references.
const Reference = `"` + referenceText + `"`

const referenceText = "secret:" + SecretName

// part is a secret that was removed from a file. It is the original text, including quotes.
type part struct {
	Field string `json:"field"` // for messages, or wholeFile
	Text  string `json:"text"`
}

const wholeFile = "(whole file)"

type span struct {
	start, end int
	field      string
}

// split separates the secrets from a file. The remaining text contains References in place of secrets. If that is impossible, split treats the
// whole file as one secret. One reason is a line break that only YAML recognizes. In both cases, join can restore the file exactly.
func split(name string, text []byte, secrets func(root *yaml.Node) []found) (shown []byte, parts []part, err error) {
	if bytes.Contains(text, []byte(referenceText)) {
		return nil, nil, hint.Errorf("write the value itself; files with their secrets come from: paictl config pull -o DIR",
			"%s contains the text %s, which marks a secret in the cluster's copy", name, referenceText)
	}
	root, err := parse(text)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	all := secrets(root)
	for _, f := range all {
		if f.node.Value == secret.Mask {
			return nil, nil, hint.Errorf("write the value itself; a folder of \"config pull --mask-secrets\" can't be pushed",
				"%s: %s is masked", name, f.field)
		}
	}
	if shown, parts, ok := takeOut(root, text, all); ok {
		return shown, parts, nil
	}
	return []byte(Reference + "\n"), []part{{wholeFile, string(text)}}, nil
}

// takeOut replaces the secrets in a file, also in comments, with references. The last result is false if the remaining text doesn't decode to the
// same data.
func takeOut(root *yaml.Node, text []byte, secrets []found) (shown []byte, parts []part, ok bool) {
	spans, err := locate(text, secrets)
	if err != nil {
		return nil, nil, false
	}
	shown, parts, err = cut(text, append(spans, commentSpans(text, spans, secrets)...))
	return shown, parts, err == nil && verify(root, shown, secrets) == nil
}

// join inserts the secrets in place of the references, and returns the original file.
func join(name string, shown []byte, parts []part) ([]byte, error) {
	if len(parts) == 1 && parts[0].Field == wholeFile {
		return []byte(parts[0].Text), nil
	}
	pieces := bytes.Split(shown, []byte(Reference))
	if len(pieces) != len(parts)+1 {
		return nil, fmt.Errorf("%s has %d references to secrets, but there are %d secrets", name, len(pieces)-1, len(parts))
	}
	out := bytes.NewBuffer(bytes.Clone(pieces[0]))
	for i, p := range parts {
		out.WriteString(p.Text)
		out.Write(pieces[i+1])
	}
	return out.Bytes(), nil
}

func parse(text []byte) (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil { // yaml.v3 panics for some inputs
			err = fmt.Errorf("not readable as YAML: %v", r)
		}
	}()
	var top yaml.Node
	if err := yaml.Unmarshal(text, &top); err != nil {
		return nil, err
	}
	if len(top.Content) != 1 {
		return nil, errors.New("no YAML document")
	}
	return top.Content[0], nil
}

// cut replaces the spans of a text with references and returns the removed parts.
func cut(text []byte, spans []span) (shown []byte, parts []part, err error) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	var out bytes.Buffer
	at := 0
	for _, s := range spans {
		if s.start < at || s.end <= s.start {
			return nil, nil, errors.New("secrets overlap")
		}
		out.Write(text[at:s.start])
		out.WriteString(Reference)
		parts = append(parts, part{s.field, string(text[s.start:s.end])})
		at = s.end
	}
	out.Write(text[at:])
	return out.Bytes(), parts, nil
}

// verify parses the text with references and compares it with the original. The two texts must be equal except for the secrets.
func verify(root *yaml.Node, shown []byte, secrets []found) error {
	again, err := parse(shown)
	if err != nil {
		return err
	}
	replaced := map[*yaml.Node]bool{}
	for _, s := range secrets {
		replaced[s.node] = true
	}
	if !same(root, again, replaced) {
		return errors.New("the file doesn't read the same without its secrets")
	}
	return nil
}

func same(a, b *yaml.Node, replaced map[*yaml.Node]bool) bool {
	if replaced[a] {
		return b.Kind == yaml.ScalarNode && b.Value == referenceText && a.Anchor == b.Anchor
	}
	if a.Kind != b.Kind || a.Anchor != b.Anchor || len(a.Content) != len(b.Content) {
		return false
	}
	switch a.Kind {
	case yaml.ScalarNode:
		return a.Value == b.Value && a.ShortTag() == b.ShortTag()
	case yaml.AliasNode:
		return a.Value == b.Value
	}
	for i := range a.Content {
		if !same(a.Content[i], b.Content[i], replaced) {
			return false
		}
	}
	return true
}
