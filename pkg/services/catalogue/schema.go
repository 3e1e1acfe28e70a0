package catalogue

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

type valuesSchema struct {
	root *jsonschema.Schema
	// byLocation holds the parts of the schema by location. Validation errors contain these locations.
	byLocation map[string]*jsonschema.Schema
	// beside lists keys that a section may contain although the schema doesn't define these keys.
	beside []string
}

// These are the addresses of schemas. The library doesn't check a schema against the meta-schema if the address has the form of an address in the
// library.
const (
	schemaOfOthers = "mem:///values.schema.json"
	schemaOfOurs   = "https://json-schema.org/paictl/values.schema.json"
)

// newValuesSchema compiles a schema. A chart without a schema accepts all values. References to other files are errors, so that a check never depends
// on a network. address is schemaOfOthers or schemaOfOurs.
func newValuesSchema(data []byte, address string) (*valuesSchema, error) {
	if len(data) == 0 {
		return &valuesSchema{}, nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	if err := c.AddResource(address, doc); err != nil {
		return nil, err
	}
	root, err := c.Compile(address)
	if err != nil {
		return nil, err
	}
	s := &valuesSchema{root: root, byLocation: map[string]*jsonschema.Schema{}}
	s.index(root)
	return s, nil
}

func (s *valuesSchema) index(part *jsonschema.Schema) {
	if part == nil || s.byLocation[part.Location] != nil {
		return
	}
	s.byLocation[part.Location] = part
	for _, other := range variants(part) {
		s.index(other)
	}
	for _, child := range part.Properties {
		s.index(child)
	}
	for _, child := range part.PatternProperties {
		s.index(child)
	}
	if child, ok := part.AdditionalProperties.(*jsonschema.Schema); ok {
		s.index(child)
	}
	for _, child := range itemSchemas(part) {
		s.index(child)
	}
}

// variants returns the subschemas that apply to the same value as s.
func variants(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat(s.AllOf, s.AnyOf, s.OneOf)
	for _, one := range []*jsonschema.Schema{s.Ref, s.If, s.Then, s.Else} {
		if one != nil {
			out = append(out, one)
		}
	}
	return out
}

// itemSchemas returns the schemas of a list's items, for any draft of JSON Schema.
func itemSchemas(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Clone(s.PrefixItems)
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		out = append(out, items)
	case []*jsonschema.Schema:
		out = append(out, items...)
	}
	if s.Items2020 != nil {
		out = append(out, s.Items2020)
	}
	if rest, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
		out = append(out, rest)
	}
	return out
}

type problem struct {
	path            strictyaml.Path
	message, remedy string
}

// check returns all violations of the schema. The values must include the chart's defaults.
func (s *valuesSchema) check(values map[string]any) (problems []problem) {
	if s.root == nil {
		return nil
	}
	// The library may panic on an unexpected schema of a third-party chart.
	defer func() {
		if r := recover(); r != nil {
			problems = []problem{{message: fmt.Sprintf("the values can't be checked: %v", r)}}
		}
	}()
	err := s.root.Validate(values)
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return dedupe(s.explain(invalid, values))
	}
	if err != nil {
		return []problem{{message: fmt.Sprintf("the values can't be checked: %v", err)}}
	}
	return nil
}

// dedupe sorts problems and removes duplicates. Several parts of a schema may report the same problem. Sorting is necessary because the library
// iterates over maps in random order.
func dedupe(problems []problem) []problem {
	slices.SortStableFunc(problems, func(a, b problem) int {
		return cmp.Or(strings.Compare(a.path.String(), b.path.String()), strings.Compare(a.message, b.message))
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(problems, func(p problem) bool {
		key := p.path.String() + "\x00" + p.message
		defer func() { seen[key] = true }()
		return seen[key]
	})
}

// pathIn converts a location in JSON to a path. List indices become numbers.
func pathIn(values any, location []string) strictyaml.Path {
	p := strictyaml.Path{}
	for _, step := range location {
		switch v := values.(type) {
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return p
			}
			values = v[i]
			p = append(p, i)
		case map[string]any:
			values = v[step]
			p = append(p, step)
		default:
			return p
		}
	}
	return p
}
