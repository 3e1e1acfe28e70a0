package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/server"
)

// TypeScript returns TypeScript declarations for the routes below prefix: the parameters, body and response of each route, and the types that these
// use.
func TypeScript(version, prefix string, routes []server.Route) (string, error) {
	data, err := Document(version, routes)
	if err != nil {
		return "", err
	}
	d := struct {
		Paths      map[string]map[string]operation `json:"paths"`
		Components struct {
			Schemas map[string]*schema `json:"schemas"`
		} `json:"components"`
	}{}
	if err := json.Unmarshal(data, &d); err != nil {
		return "", err
	}
	s := &script{schemas: d.Components.Schemas, seen: map[string]bool{}}
	var table strings.Builder
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		if !strings.HasPrefix(path, prefix) {
			continue
		}
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			o := d.Paths[path][method]
			fmt.Fprintf(&table, "  /** %s. */\n  %s: %s;\n", o.Summary, strconv.Quote(strings.ToUpper(method)+" "+path), s.operation(&o))
		}
	}
	var out strings.Builder
	out.WriteString("// Made from the table of routes by: go test ./pkg/server/openapi -update\n\n/** The routes, by method and path. */\nexport interface Routes {\n" + table.String() + "}\n")
	s.reference("wire.Error")
	for len(s.waiting) > 0 {
		name := s.waiting[0]
		s.waiting = s.waiting[1:]
		fmt.Fprintf(&s.types, "\n%s", s.declaration(name))
	}
	return out.String() + s.types.String(), nil
}

type operation struct {
	Summary    string `json:"summary"`
	Parameters []struct {
		Name   string  `json:"name"`
		In     string  `json:"in"`
		Schema *schema `json:"schema"`
	} `json:"parameters"`
	RequestBody *content           `json:"requestBody"`
	Responses   map[string]content `json:"responses"`
}

type content struct {
	Content map[string]struct {
		Schema *schema `json:"schema"`
	} `json:"content"`
}

// of returns the schema of the only media type, or nil without a described response.
func (c *content) of() *schema {
	if c != nil {
		for _, media := range c.Content {
			return media.Schema
		}
	}
	return nil
}

// schema holds the parts of JSON Schema that the document uses.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"items"`
	More       json.RawMessage    `json:"additionalProperties"`
	AnyOf      []*schema          `json:"anyOf"`
	OneOf      []*schema          `json:"oneOf"`
	Enum       []any              `json:"enum"`
	Patterns   map[string]*schema `json:"patternProperties"`
}

// UnmarshalJSON implements json.Unmarshaler. The schema true allows all values, like an empty schema.
func (s *schema) UnmarshalJSON(data []byte) error {
	if string(data) == "true" || string(data) == "false" {
		return nil
	}
	type plain schema
	return json.Unmarshal(data, (*plain)(s))
}

// script holds the generated TypeScript text.
type script struct {
	schemas map[string]*schema
	types   strings.Builder
	waiting []string
	seen    map[string]bool
}

func (s *script) operation(o *operation) string {
	parts := map[string][]string{}
	for _, p := range o.Parameters {
		optional := "?"
		if p.In == "path" {
			optional = ""
		}
		parts[p.In] = append(parts[p.In], key(p.Name)+optional+": "+s.text(p.Schema))
	}
	var fields []string
	for _, in := range []string{"path", "query"} {
		if len(parts[in]) > 0 {
			fields = append(fields, in+": { "+strings.Join(parts[in], "; ")+" }")
		}
	}
	if body := o.RequestBody.of(); body != nil {
		fields = append(fields, "body: "+s.text(body))
	}
	answer := "unknown"
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		if c := o.Responses[status]; status < "300" && c.of() != nil {
			answer = s.text(c.of())
		}
	}
	return "{ " + strings.Join(append(fields, "answer: "+answer), "; ") + " }"
}

// text returns the TypeScript type of a schema.
func (s *script) text(of *schema) string {
	switch {
	case of == nil:
		return "unknown"
	case of.Ref != "":
		return s.reference(strings.TrimPrefix(of.Ref, ownRefs))
	case len(of.AnyOf)+len(of.OneOf) > 0:
		var forms []string
		for _, one := range slices.Concat(of.AnyOf, of.OneOf) {
			forms = append(forms, s.text(one))
		}
		return strings.Join(forms, " | ")
	case len(of.Enum) > 0:
		var values []string
		for _, v := range of.Enum {
			text, _ := json.Marshal(v) // it comes from JSON
			values = append(values, string(text))
		}
		return strings.Join(values, " | ")
	}
	switch of.Type {
	case "string", "boolean", "null":
		return of.Type.(string)
	case "integer", "number":
		return "number"
	case "array":
		inner := s.text(of.Items)
		if strings.Contains(inner, " ") {
			inner = "(" + inner + ")"
		}
		return inner + "[]"
	case "object":
		return s.object(of)
	}
	return "unknown"
}

func (s *script) object(of *schema) string {
	if len(of.Properties) == 0 {
		more := &schema{}
		if json.Unmarshal(of.More, more) == nil && (more.Type != nil || more.Ref != "" || len(more.AnyOf) > 0) {
			return "Record<string, " + s.text(more) + ">"
		}
		for _, pattern := range of.Patterns {
			return "Record<string, " + s.text(pattern) + ">"
		}
		return "Record<string, unknown>"
	}
	return "{ " + strings.Join(s.fields(of), "; ") + " }"
}

func (s *script) fields(of *schema) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		optional := "?"
		if slices.Contains(of.Required, name) {
			optional = ""
		}
		out = append(out, key(name)+optional+": "+s.text(of.Properties[name]))
	}
	return out
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func key(name string) string {
	if plainKey.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

// reference returns the name of a type, and adds the type to the declarations.
func (s *script) reference(name string) string {
	if !s.seen[name] {
		s.seen[name] = true
		s.waiting = append(s.waiting, name)
	}
	var out strings.Builder
	for _, part := range strings.FieldsFunc(name, func(c rune) bool { return c == '.' || c == '_' || c == '-' }) {
		out.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return cmp.Or(out.String(), "unknown")
}

func (s *script) declaration(name string) string {
	of := s.schemas[name]
	if of == nil || len(of.Properties) == 0 {
		return "export type " + s.reference(name) + " = " + s.text(of) + ";\n"
	}
	return "export interface " + s.reference(name) + " {\n  " + strings.Join(s.fields(of), ";\n  ") + ";\n}\n"
}
