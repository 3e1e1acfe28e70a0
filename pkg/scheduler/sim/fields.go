package sim

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/strictyaml"
)

// mistake is what is wrong in the writing of a step: where, what, and what to do.
type mistake struct {
	file                   string
	line                   int
	field, message, remedy string
}

func (m *mistake) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d: ", m.file, m.line)
	if m.field != "" {
		b.WriteString(m.field + ": ")
	}
	b.WriteString(m.message)
	if m.remedy != "" {
		b.WriteString("; " + m.remedy)
	}
	return b.String()
}

// step is one step with its fields.
type step struct {
	file   string
	number int
	line   int
	op     string
	fields map[string]*yaml.Node
}

// The fields that each operation takes.
var operations = map[string][]string{
	"start":                {"config", "healthyNodes"},
	"schedule":             {"pod", "phase", "suggestedNodes", "podSchedulingSpec"},
	"addAllocatedPod":      {"pod", "podSchedulingSpec", "podBindInfo", "podLeafCellIsolation", "node"},
	"deleteAllocatedPod":   {"pod", "podSchedulingSpec"},
	"deleteUnallocatedPod": {"pod", "podSchedulingSpec"},
	"setNodeBad":           {"node"},
	"setNodeHealthy":       {"node"},
	"inspect":              {},
}

func operationNames() []string {
	var out []string
	for name := range operations {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (s *step) mistake(n *yaml.Node, field, remedy, format string, args ...any) error {
	line := s.line
	if n != nil && n.Line > 0 {
		line = n.Line
	}
	return &mistake{s.file, line, field, fmt.Sprintf(format, args...), remedy}
}

// newStep reads the writing of a step: {op: NAME, ...}, or {NAME: {...}}, or NAME alone.
func newStep(file string, number int, n *yaml.Node) (*step, error) {
	s := &step{file: file, number: number, fields: map[string]*yaml.Node{}}
	n = target(n)
	if n == nil {
		s.line = 1
		return s, s.mistake(nil, "", "write a map with the field op, or remove the entry", "the step is empty")
	}
	s.line = n.Line
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		s.op = n.Value
		return s, s.known(n)
	}
	if n.Kind != yaml.MappingNode {
		return s, s.mistake(n, "", `write a map such as {op: schedule, pod: p1}`, "a step is a map")
	}
	if len(n.Content) == 2 && n.Content[0].Value != "op" {
		s.op = n.Content[0].Value
		if err := s.known(n.Content[0]); err != nil {
			return s, err
		}
		return s, s.take(target(n.Content[1]))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "op" {
			s.op = target(n.Content[i+1]).Value
			if err := s.known(n.Content[i+1]); err != nil {
				return s, err
			}
		}
	}
	if s.op == "" {
		return s, s.mistake(n, "op", "write one of "+strings.Join(operationNames(), ", "), "the step has no operation")
	}
	return s, s.take(n)
}

func (s *step) known(n *yaml.Node) error {
	if _, ok := operations[s.op]; ok {
		return nil
	}
	remedy := "write one of " + strings.Join(operationNames(), ", ")
	if near := strictyaml.Nearest(s.op, operationNames()); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	}
	return s.mistake(n, "op", remedy, "there is no operation %q", s.op)
}

// take takes the fields of a map that belong to the operation, and refuses others.
func (s *step) take(n *yaml.Node) error {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return s.mistake(n, s.op, "the fields are "+strings.Join(operations[s.op], ", "), "expected a map")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if key == "op" || key == "comment" {
			continue
		}
		if !slices.Contains(operations[s.op], key) {
			remedy := "it has no fields"
			if len(operations[s.op]) > 0 {
				remedy = "its fields are " + strings.Join(operations[s.op], ", ")
			}
			if near := strictyaml.Nearest(key, operations[s.op]); near != "" {
				remedy = fmt.Sprintf("did you mean %q?", near)
			}
			return s.mistake(n.Content[i], key, remedy, "%s has no such field", s.op)
		}
		if v := target(n.Content[i+1]); !isNull(v) {
			s.fields[key] = v
		}
	}
	return nil
}

// target follows aliases; nil stays nil.
func target(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// text returns a field that is text, or a number that is meant as text; "" where it isn't there.
func (s *step) text(field string) (string, error) {
	n := s.fields[field]
	if n == nil {
		return "", nil
	}
	if n.Kind != yaml.ScalarNode {
		return "", s.mistake(n, field, "", "expected text")
	}
	return n.Value, nil
}

// document returns a field that holds YAML: as text, or written as part of the step.
func (s *step) document(field string) (string, error) {
	n := s.fields[field]
	if n == nil || n.Kind == yaml.ScalarNode {
		return s.text(field)
	}
	budget := maxDocument
	n, err := expanded(n, &budget)
	if err != nil {
		return "", s.mistake(s.fields[field], field, "write the values out without anchors and aliases", "%v", err)
	}
	b, err := yaml.Marshal(n)
	if err != nil {
		return "", s.mistake(n, field, "", "can't be written as YAML: %v", err)
	}
	return string(b), nil
}

// maxDocument bounds what aliases may blow a document up to, in values.
const maxDocument = 1_000_000

// expanded copies a value with what its aliases stand for: their anchors may lie elsewhere in the steps,
// where the text of the value alone doesn't have them.
func expanded(n *yaml.Node, budget *int) (*yaml.Node, error) {
	if n = target(n); n == nil {
		return nil, nil
	}
	if *budget--; *budget < 0 {
		return nil, fmt.Errorf("more than %d values once aliases are expanded, or an alias that holds itself", maxDocument)
	}
	out := *n
	out.Anchor, out.Content = "", make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		var err error
		if out.Content[i], err = expanded(c, budget); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// names returns a field that is "*" or a list; all is true for "*" and where it isn't there.
func (s *step) names(field string) (list []string, all bool, err error) {
	n := s.fields[field]
	if n == nil || n.Kind == yaml.ScalarNode && n.Value == "*" {
		return nil, true, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, false, s.mistake(n, field, `write "*" or a list of names`, "expected a list")
	}
	list = []string{}
	for _, c := range n.Content {
		c = target(c)
		if c.Kind != yaml.ScalarNode || isNull(c) {
			return nil, false, s.mistake(c, field, "write names of nodes", "an entry is no text")
		}
		list = append(list, c.Value)
	}
	return list, false, nil
}

// isolation returns device indices joined by commas, written so or as a list.
func (s *step) isolation(field string) (string, error) {
	n := s.fields[field]
	if n == nil || n.Kind == yaml.ScalarNode {
		return s.text(field)
	}
	list, _, err := s.names(field)
	return strings.Join(list, ","), err
}

// podName is how a step names a pod.
type podName struct {
	// id tells pods apart, name is namespace/name.
	id, name string
}

// pod returns the field pod: an id as text, or {namespace, name, uid}.
func (s *step) pod() (podName, error) {
	const remedy = `write an id, such as "pod: p1", or {namespace: default, name: p1, uid: 1}`
	n := s.fields["pod"]
	switch {
	case n == nil || n.Kind == yaml.ScalarNode && n.Value == "":
		return podName{}, s.mistake(n, "pod", remedy, "the pod is missing")
	case n.Kind == yaml.ScalarNode:
		return podName{n.Value, inNamespace("", n.Value)}, nil
	case n.Kind != yaml.MappingNode:
		return podName{}, s.mistake(n, "pod", remedy, "expected text or a map")
	}
	given := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i].Value, target(n.Content[i+1])
		if v.Kind != yaml.ScalarNode || !slices.Contains([]string{"namespace", "name", "uid"}, key) {
			return podName{}, s.mistake(n.Content[i], "pod."+key, remedy, "not understood")
		}
		given[key] = v.Value
	}
	if given["name"] == "" {
		return podName{}, s.mistake(n, "pod.name", remedy, "the name is missing")
	}
	name := inNamespace(given["namespace"], given["name"])
	if given["uid"] != "" {
		return podName{given["uid"], name}, nil
	}
	return podName{name, name}, nil
}

func inNamespace(namespace, name string) string {
	if namespace == "" && strings.Contains(name, "/") {
		return name
	}
	if namespace == "" {
		namespace = "default"
	}
	return namespace + "/" + name
}
