package job

import (
	"fmt"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

const (
	extrasKey = "extras"
	notifyKey = "jobStatusChangeNotification"
)

// SetNotify sets extras.jobStatusChangeNotification in a job file, which lists the changes of state that the job's owner gets a notice about. The
// rest of the text doesn't change.
func SetNotify(file string, data []byte, states []v1.NotifyState) ([]byte, error) {
	root, err := topOf(file, data)
	if err != nil {
		return nil, err
	}
	var words []string
	for _, s := range states {
		words = append(words, string(s)+": true")
	}
	value := "{" + strings.Join(words, ", ") + "}"
	out := string(data)
	if root != nil && root.Kind == yaml.MappingNode && root.Style&yaml.FlowStyle == 0 {
		out = withNotify(string(data), root, value)
	}
	if !setsNotify(out, data, value) {
		return nil, hint.Errorf(fmt.Sprintf("write it into the file: extras: {%s: %s}", notifyKey, value), "%s: %s.%s can't be set in place", file, extrasKey, notifyKey)
	}
	return []byte(out), nil
}

// withNotify writes the value into a text whose outermost value is a mapping with one line per key. It returns the text unchanged if extras has
// another form.
func withNotify(text string, root *yaml.Node, value string) string {
	lines := strings.SplitAfter(strings.TrimRight(text, " \t\r\n")+"\n", "\n")
	extrasAt, extras := entryOf(root, extrasKey)
	if extras == nil {
		return strings.Join(lines, "") + extrasKey + ":\n  " + notifyKey + ": " + value + "\n"
	}
	if empty(extras) {
		line := withoutValue(lines[extrasAt.Line-1], extrasAt, extras)
		return strings.Join(lines[:extrasAt.Line-1], "") + line + "  " + notifyKey + ": " + value + "\n" + strings.Join(lines[extrasAt.Line:], "")
	}
	if extras.Kind != yaml.MappingNode || extras.Style&yaml.FlowStyle != 0 || len(extras.Content) == 0 {
		return text
	}
	line := func(n *yaml.Node) string {
		return strings.Repeat(" ", n.Column-1) + notifyKey + ": " + value + "\n"
	}
	key, old := entryOf(extras, notifyKey)
	if old == nil {
		return strings.Join(lines[:extrasAt.Line], "") + line(extras.Content[0]) + strings.Join(lines[extrasAt.Line:], "")
	}
	return strings.Join(lines[:key.Line-1], "") + line(key) + strings.Join(lines[lastLine(old):], "")
}

// empty reports whether a value is null or {}.
func empty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" || n.Kind == yaml.MappingNode && len(n.Content) == 0
}

// withoutValue removes an empty value from the line of its key.
func withoutValue(line string, key, value *yaml.Node) string {
	from := value.Column - 1
	if value.Line != key.Line || from < 0 || from > len(line) {
		return line
	}
	end := from + len(value.Value)
	if value.Kind == yaml.MappingNode {
		n := strings.Index(line[from:], "}")
		if n < 0 {
			return line
		}
		end = from + n + 1
	}
	if end == from || end > len(line) {
		return line
	}
	return strings.TrimRight(line[:from], " \t") + line[end:]
}

// entryOf returns the key and the value of an entry in a mapping, or nil if the mapping has no such entry.
func entryOf(n *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// lastLine returns the last line of a value. Each scalar in the value must be on a single line.
func lastLine(n *yaml.Node) int {
	last := n.Line
	for _, c := range n.Content {
		last = max(last, lastLine(c))
	}
	return last
}

// setsNotify reports whether text differs from data only in the notification setting, which is value in text.
func setsNotify(text string, data []byte, value string) bool {
	var now, was, want map[string]any
	if yaml.Unmarshal([]byte(text), &now) != nil || yaml.Unmarshal(data, &was) != nil || yaml.Unmarshal([]byte(value), &want) != nil || now == nil {
		return false
	}
	extras, _ := now[extrasKey].(map[string]any)
	set, ok := extras[notifyKey].(map[string]any)
	if !ok || len(set) != len(want) || len(want) > 0 && !reflect.DeepEqual(set, want) {
		return false
	}
	rest := func(doc map[string]any) map[string]any {
		e, _ := doc[extrasKey].(map[string]any)
		delete(e, notifyKey)
		if len(e) == 0 {
			delete(doc, extrasKey)
		}
		return doc
	}
	return reflect.DeepEqual(rest(now), rest(was))
}
