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

// valuesSchema is a chart's values.schema.json.
type valuesSchema struct {
	root *jsonschema.Schema
	// byLocation has the parts of the schema by the locations in errors.
	byLocation map[string]*jsonschema.Schema
	// beside are keys that a section may have but the schema doesn't define.
	beside []string
}

// Addresses of schemas. The library checks a schema against the meta-schema, unless its address is the address of a schema in the library.
const (
	schemaOfOthers = "mem:///values.schema.json"
	schemaOfOurs   = "https://json-schema.org/paictl/values.schema.json"
)

// newValuesSchema compiles a schema; a chart without a schema accepts all values. References to other files are an error, so that a check never
// waits for a network. The address is one of the above.
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

// variants returns the subschemas that apply to the same value.
func variants(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat(s.AllOf, s.AnyOf, s.OneOf)
	for _, one := range []*jsonschema.Schema{s.Ref, s.If, s.Then, s.Else} {
		if one != nil {
			out = append(out, one)
		}
	}
	return out
}

// itemSchemas returns the schemas of a list's entries, for any draft.
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

// problem is a violation of the schema.
type problem struct {
	path            strictyaml.Path
	message, remedy string
}

// check returns all violations of the schema in complete values.
func (s *valuesSchema) check(values map[string]any) (problems []problem) {
	if s.root == nil {
		return nil
	}
	// A third-party chart's schema could contain something that the library doesn't expect.
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

// dedupe removes problems that several parts of a schema report, and sorts the rest, because the library iterates over
// maps in random order.
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

// pathIn converts a location in JSON to a path, whose steps into lists are numbers.
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
