package catalogue

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/secret"
)

// SecretPaths returns the paths of all secrets in services-configuration.yaml. A chart's schema marks secrets as writeOnly. In addition, all values
// below secretValues of an upstream service are secrets, and all values in a section without a chart. Each path leads to a value that is neither a
// map nor a list.
func SecretPaths(cfg *config.Cluster) []strictyaml.Path {
	// If the embedded charts can't be read, every setting counts as a secret.
	embedded, _ := readCharts(nil)
	return secretPaths(cfg, embedded)
}

func secretPaths(cfg *config.Cluster, embedded map[string]*embeddedChart) []strictyaml.Path {
	var out []strictyaml.Path
	add := func(p strictyaml.Path, _ any) { out = append(out, p) }
	for _, name := range sorted(maps.Keys(cfg.Services.Sections)) {
		section := cfg.Services.Sections[name]
		switch c := embedded[name]; {
		case isUpstream(section):
			leaves(section.(map[string]any)[keySecretValues], at(name, keySecretValues), add)
		case c == nil:
			leaves(section, at(name), add)
		case c.schema.root != nil:
			for _, f := range former[name] {
				if value, ok := valueAt(section, f.path); ok {
					leaves(value, append(at(name), f.path...), add)
				}
			}
			writeOnly([]*jsonschema.Schema{c.schema.root}, section, at(name), func(p strictyaml.Path, v any) { leaves(v, p, add) })
		}
	}
	return out
}

// valueAt returns the value at a path, and reports whether the value exists. The path must not contain list indices.
func valueAt(v any, path strictyaml.Path) (any, bool) {
	for _, step := range path {
		m, _ := v.(map[string]any)
		key, _ := step.(string)
		below, ok := m[key]
		if !ok {
			return nil, false
		}
		v = below
	}
	return v, true
}

// leaves calls visit for each value except maps, lists and nil.
func leaves(v any, p strictyaml.Path, visit func(strictyaml.Path, any)) {
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for _, key := range sorted(maps.Keys(v)) {
			leaves(v[key], p.With(key), visit)
		}
	case []any:
		for i, e := range v {
			leaves(e, p.With(i), visit)
		}
	default:
		visit(p, v)
	}
}

// writeOnly calls visit for each value that at least one schema marks as writeOnly.
func writeOnly(schemas []*jsonschema.Schema, v any, p strictyaml.Path, visit func(strictyaml.Path, any)) {
	schemas = expand(schemas)
	for _, s := range schemas {
		if s.WriteOnly {
			visit(p, v)
			return
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sorted(maps.Keys(v)) {
			writeOnly(schemasOfKey(schemas, key), v[key], p.With(key), visit)
		}
	case []any:
		var items []*jsonschema.Schema
		for _, s := range schemas {
			items = append(items, itemSchemas(s)...)
		}
		for i, e := range v {
			writeOnly(items, e, p.With(i), visit)
		}
	}
}

// expand returns the given schemas and all subschemas that apply to the same value.
func expand(schemas []*jsonschema.Schema) []*jsonschema.Schema {
	seen := map[*jsonschema.Schema]bool{}
	var out []*jsonschema.Schema
	for len(schemas) > 0 {
		s := schemas[0]
		schemas = schemas[1:]
		if seen[s] {
			continue
		}
		seen[s] = true
		out = append(out, s)
		schemas = append(variants(s), schemas...)
	}
	return out
}

func schemasOfKey(schemas []*jsonschema.Schema, key string) []*jsonschema.Schema {
	var out []*jsonschema.Schema
	for _, s := range schemas {
		if child := s.Properties[key]; child != nil {
			out = append(out, child)
			continue
		}
		matched := false
		for pattern, child := range s.PatternProperties {
			if pattern.MatchString(key) {
				out, matched = append(out, child), true
			}
		}
		if child, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !matched {
			out = append(out, child)
		}
	}
	return out
}

// takeSecrets moves the secrets of an embedded service from the values to the credentials.
func (b *builder) takeSecrets(s *Service, schema *valuesSchema) {
	if schema.root == nil {
		return
	}
	var found []strictyaml.Path
	writeOnly([]*jsonschema.Schema{schema.root}, s.Values, nil, func(p strictyaml.Path, _ any) { found = append(found, p) })
	for _, p := range found {
		text, isText := take(s.Values, p).(string)
		if !isText || text == "" {
			continue // the schema has reported it
		}
		key := dotted(p)
		if len(validation.IsConfigMapKey(key)) > 0 {
			b.fail(at(s.Name, p...), "services/credentials", fmt.Sprintf("%s can't be the name of a credential", p), "use A-Z, a-z, 0-9, -, _ and . in keys")
			continue
		}
		if s.Credentials == nil {
			s.Credentials = map[string]secret.String{}
		}
		s.Credentials[key] = secret.String(text)
	}
	if len(s.Credentials) == 0 {
		return
	}
	if own, _ := s.Values[keyCredentialsSecret].(string); own != "" {
		b.fail(at(s.Name, keyCredentialsSecret), "services/credentials", fmt.Sprintf("the section names your own Secret, but also contains %s", joinKeys(s.Credentials)), "remove one of the two")
		return
	}
	s.Values[keyCredentialsSecret] = s.CredentialsName()
	if schema.root.Properties[keyCredentialsKeys] != nil {
		keys := []any{}
		for _, key := range sorted(maps.Keys(s.Credentials)) {
			keys = append(keys, key)
		}
		s.Values[keyCredentialsKeys] = keys
	}
}

// take removes the value at a path and returns the value. In a list, take leaves an empty string, so that the indices of later items don't change.
func take(v any, p strictyaml.Path) any {
	for i, step := range p {
		last := i == len(p)-1
		switch step := step.(type) {
		case string:
			m := v.(map[string]any)
			v = m[step]
			if last {
				delete(m, step)
			}
		case int:
			list := v.([]any)
			v = list[step]
			if last {
				list[step] = ""
			}
		}
	}
	return v
}

// dotted returns a path as a key of a Secret, with dots between the steps.
func dotted(p strictyaml.Path) string {
	var steps []string
	for _, step := range p {
		switch step := step.(type) {
		case string:
			steps = append(steps, step)
		case int:
			steps = append(steps, strconv.Itoa(step))
		}
	}
	return strings.Join(steps, ".")
}

func joinKeys[V any](m map[string]V) string { return strings.Join(sorted(maps.Keys(m)), ", ") }
