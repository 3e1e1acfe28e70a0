package catalogue

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// Reference returns the documentation of all services' sections as a fragment of services-configuration.yaml that contains only comments. Lines that
// begin with "## " are explanations. The other lines become settings with defaults if "# " is removed.
func Reference() []byte {
	b, err := reference(nil)
	if err != nil {
		return nil // the charts are part of paictl, and a test reads them all
	}
	return b
}

func reference(files fs.FS) ([]byte, error) {
	charts, err := readCharts(files)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	out.WriteString(referenceHead)
	for _, name := range sorted(maps.Keys(charts)) {
		text, err := charts[name].reference()
		if err != nil {
			return nil, fmt.Errorf("chart %s: %w", name, err)
		}
		out.WriteString("\n" + text)
	}
	out.WriteString(referenceTail)
	return []byte(out.String()), nil
}

const referenceHead = `## The services and their settings. Each section below shows the defaults; remove "# "
## from the name of the service and from the settings that you change. A setting that stays
## a comment, or has no value, keeps its default, in this release and in later ones.
`

const referenceTail = `
## A service from another chart. Only chart and version are required.
# my-service:
#   ## oci://REGISTRY/PATH, https://REPOSITORY#NAME, https://....tgz, or a path.
#   chart: oci://registry.example.com/charts/my-service
#   version: 1.2.3
#   ## sha256 of the chart's archive: paictl installs only an archive that matches it.
#   digest: sha256:0000000000000000000000000000000000000000000000000000000000000000
#   enabled: true
#   namespace: pai-system
#   ## Services that must be ready before it starts.
#   requires: []
#   ## Values of the chart, as its own documentation describes them.
#   values: {}
#   ## Values that are secret. They are merged over the others and never shown.
#   secretValues: {}
`

// reference returns the commented section of a chart.
func (c *embeddedChart) reference() (string, error) {
	lines := []string{"## " + c.Name() + ": " + strings.TrimSpace(c.Metadata.Description)}
	if len(c.requires) > 0 {
		lines = append(lines, "## It starts after "+strings.Join(c.requires, ", ")+".")
	}
	lines = append(lines,
		"# "+c.Name()+":",
		"#   ## Whether the service runs.",
		"#   enabled: "+strconv.FormatBool(c.enabled))
	if c.hasPods() {
		lines = append(lines,
			"#   ## Roles of the layout on whose machines it runs, or all.",
			"#   placement: ["+strings.Join(c.placement, ", ")+"]")
	}
	settings, err := c.settings()
	if err != nil {
		return "", err
	}
	for _, line := range settings {
		lines = append(lines, "#   "+line)
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// comment matches the beginning of a comment in values.yaml. The form "# --" is for helm-docs.
var comment = regexp.MustCompile(`^(\s*)#+( --)?`)

// blockScalar matches the line before a block scalar. Inside a block scalar, # doesn't begin a comment.
var blockScalar = regexp.MustCompile(`[:-] +[|>][0-9+-]*\s*$`)

// settings returns the lines of values.yaml without the keys that only paictl sets. settings adds notes from the schema to the comments.
func (c *embeddedChart) settings() ([]string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(c.valuesFile, &doc); err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	notes := map[int]string{} // by line, from 1
	c.schemaNotes(doc.Content[0], nil, notes)
	lines := strings.Split(strings.TrimRight(string(c.valuesFile), "\n"), "\n")
	hidden := hiddenLines(doc.Content[0], lines)
	var out []string
	block := -1 // indentation of the key of the current multi-line text
	for i, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		inBlock := block >= 0 && (indent > block || strings.TrimSpace(line) == "")
		if !inBlock {
			block = -1
		}
		switch {
		case hidden[i+1]:
			continue
		case inBlock:
		case strings.TrimSpace(line) == "":
			continue
		case comment.MatchString(line):
			line = comment.ReplaceAllString(line, "$1##")
		case blockScalar.MatchString(line):
			block = indent
		}
		if note := notes[i+1]; note != "" && !inBlock {
			out = append(out, line[:indent]+"## "+note)
		}
		out = append(out, line)
	}
	return trimBlank(out), nil
}

func trimBlank(lines []string) []string {
	blank := func(s string) bool { return strings.TrimSpace(s) == "" }
	for len(lines) > 0 && blank(lines[0]) {
		lines = lines[1:]
	}
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// hiddenLines returns the lines of values.yaml whose values only paictl sets, including the comments of these lines.
func hiddenLines(root *yaml.Node, lines []string) map[int]bool {
	hidden := map[int]bool{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key := root.Content[i]
		if key.Value != keyGlobal && key.Value != keyCredentialsRevision {
			continue
		}
		first, last := key.Line, len(lines)
		for first > 1 && comment.MatchString(lines[first-2]) {
			first--
		}
		if i+2 < len(root.Content) {
			for last = root.Content[i+2].Line - 1; last > key.Line && comment.MatchString(lines[last-1]); {
				last--
			}
		}
		for n := first; n <= last; n++ {
			hidden[n] = true
		}
	}
	return hidden
}

// schemaNotes adds notes from the schema: the limits of each key, and a description if values.yaml contains no comment.
func (c *embeddedChart) schemaNotes(n *yaml.Node, p strictyaml.Path, notes map[int]string) {
	if n.Kind != yaml.MappingNode || c.schema.root == nil || n.Style&yaml.FlowStyle != 0 {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		sub := p.With(key.Value)
		if s := c.schema.at(sub); s != nil {
			note := limits(s)
			if key.HeadComment == "" {
				note = strings.TrimSpace(s.Description + " " + note)
			}
			notes[key.Line] = note
		}
		c.schemaNotes(value, sub, notes)
	}
}

// at returns the schema of the key at a path, or nil if the schema doesn't contain the key's name.
func (s *valuesSchema) at(p strictyaml.Path) *jsonschema.Schema {
	part := s.root
	for _, step := range p {
		key, ok := step.(string)
		if !ok || part == nil {
			return nil
		}
		var next *jsonschema.Schema
		for _, one := range expand([]*jsonschema.Schema{part}) {
			if child := one.Properties[key]; child != nil && next == nil {
				next = child
			}
		}
		if part = next; part == nil {
			return nil
		}
	}
	return part
}

// limits describes the restrictions of a schema, without the type.
func limits(s *jsonschema.Schema) string {
	var out []string
	if s.Enum != nil {
		var words []string
		for _, v := range s.Enum.Values {
			words = append(words, fmt.Sprint(v))
		}
		out = append(out, "One of: "+strings.Join(words, ", ")+".")
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		out = append(out, fmt.Sprintf("From %s to %s.", number(s.Minimum), number(s.Maximum)))
	case s.Minimum != nil:
		out = append(out, fmt.Sprintf("At least %s.", number(s.Minimum)))
	case s.Maximum != nil:
		out = append(out, fmt.Sprintf("At most %s.", number(s.Maximum)))
	}
	if s.WriteOnly {
		out = append(out, "Secret: kept in a Kubernetes Secret and never shown.")
	}
	return strings.Join(out, " ")
}
