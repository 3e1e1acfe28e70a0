package sim

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// step is an entry of a steps file: a map with the key op and the fields of that operation.
type step struct {
	line, column int
	op           string
	operation    // nil in a malformed step
	findings     strictyaml.Findings
}

// operation is the action of a step. Its run returns an error for a mistake in the text of the step.
type operation interface {
	run(r *Stepper, line *Line) error
}

// Operations with their fields.
type (
	startStep struct {
		Op           string    `yaml:"op"`
		Config       *document `yaml:"config"`
		HealthyNodes nodeNames `yaml:"healthyNodes"`
	}
	scheduleStep struct {
		Op             string    `yaml:"op"`
		Pod            podName   `yaml:"pod"`
		Spec           document  `yaml:"podSchedulingSpec"`
		Phase          string    `yaml:"phase"`
		SuggestedNodes nodeNames `yaml:"suggestedNodes"`
	}
	addStep struct {
		Op        string   `yaml:"op"`
		Pod       podName  `yaml:"pod"`
		Spec      document `yaml:"podSchedulingSpec"`
		BindInfo  document `yaml:"podBindInfo"`
		Isolation string   `yaml:"podLeafCellIsolation"`
		Node      string   `yaml:"node"`
	}
	deleteStep struct {
		Op   string   `yaml:"op"`
		Pod  podName  `yaml:"pod"`
		Spec document `yaml:"podSchedulingSpec"`
	}
	nodeStep struct {
		Op   string `yaml:"op"`
		Node string `yaml:"node"`
	}
	inspectStep struct {
		Op string `yaml:"op"`
	}
)

var operations = map[string]func() operation{
	"start":                func() operation { return &startStep{} },
	"schedule":             func() operation { return &scheduleStep{} },
	"addAllocatedPod":      func() operation { return &addStep{} },
	"deleteAllocatedPod":   func() operation { return &deleteStep{} },
	"deleteUnallocatedPod": func() operation { return &deleteStep{} },
	"setNodeBad":           func() operation { return &nodeStep{} },
	"setNodeHealthy":       func() operation { return &nodeStep{} },
	"inspect":              func() operation { return &inspectStep{} },
}

// DecodeNode implements strictyaml.NodeDecoder. It stores the findings in the step, so that one invalid step doesn't prevent
// the other steps.
func (s *step) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, _ strictyaml.Path) {
	s.line, s.column = n.Line, n.Column
	var head struct {
		Op     string                        `yaml:"op"`
		Fields map[string]strictyaml.Ignored `yaml:",inline"`
	}
	s.findings = d.Apart(n, &head)
	s.op = head.Op
	if create := operations[s.op]; create != nil && len(s.findings) == 0 {
		s.operation = create()
		s.findings = d.Apart(n, s.operation)
	}
}

// unknown returns the error for a step with a missing or unknown operation.
func (s *step) unknown() error {
	names := slices.Sorted(maps.Keys(operations))
	if near := strictyaml.Nearest(s.op, names); near != "" {
		return fmt.Errorf("op: there is no operation %q; did you mean %q?", s.op, near)
	}
	return fmt.Errorf("op: there is no operation %q; write one of %s", s.op, strings.Join(names, ", "))
}

// document is YAML inside a step, either as a string or as a part of the step.
type document struct {
	text    string
	line    int
	written bool // whether it is a part of the step
}

// DecodeNode implements strictyaml.NodeDecoder. It accepts both forms.
func (v *document) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, path strictyaml.Path) {
	v.line, v.written = n.Line, n.Kind != yaml.ScalarNode
	if !v.written {
		d.Value(n, path, &v.text)
		return
	}
	b, err := yaml.Marshal(plain(n))
	if err != nil {
		d.Report(n, path, "yaml/type", fmt.Sprintf("can't be written as YAML: %v", err), "write it as text")
		return
	}
	v.text = string(bytes.TrimSpace(b))
}

// plain returns a copy of a value with all aliases replaced, because their anchors may be elsewhere in the steps. The parser
// has already limited the size of the result.
func plain(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	out := *n
	out.Anchor, out.Content, out.Style = "", nil, n.Style&^yaml.FlowStyle // without flow style, so that the lines of mistakes are exact
	for _, c := range n.Content {
		out.Content = append(out.Content, plain(c))
	}
	return &out
}

// nodeNames is a list of node names. nil means all nodes. "*" in a step also means all nodes.
type nodeNames []string

// DecodeNode implements strictyaml.NodeDecoder. It accepts a list of names or "*".
func (l *nodeNames) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, path strictyaml.Path) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Value == "*":
	case n.Kind == yaml.SequenceNode || n.Kind == yaml.AliasNode:
		d.Value(n, path, (*[]string)(l))
	default:
		d.Report(n, path, "yaml/type", "expected names of nodes", `write a list, such as [node-1, node-2], or "*" for all nodes`)
	}
}

// podName is the name of a pod in a step: an id as text, or {namespace, name, uid}.
type podName struct {
	// id identifies the pod. name is namespace/name.
	id, name string
}

// DecodeNode implements strictyaml.NodeDecoder.
func (p *podName) DecodeNode(d *strictyaml.Decoder, n *yaml.Node, path strictyaml.Path) {
	if n.Kind == yaml.ScalarNode {
		d.Value(n, path, &p.id)
		p.name = inNamespace("", p.id)
		return
	}
	var given struct {
		Namespace string `yaml:"namespace"`
		Name      string `yaml:"name"`
		UID       string `yaml:"uid"`
	}
	if n.Kind == yaml.MappingNode {
		d.Value(n, path, &given)
	}
	if given.Name == "" {
		d.Report(n, path.With("name"), "replay/pod", "the name is missing", `write an id, such as "pod: p1", or {namespace: default, name: p1, uid: 1}`)
	}
	p.name = inNamespace(given.Namespace, given.Name)
	if p.id = given.UID; p.id == "" {
		p.id = p.name
	}
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
