package openapi

import (
	"encoding"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/invopop/jsonschema"
)

// schemas holds the JSON schemas of the types of requests and responses.
type schemas struct {
	reflector jsonschema.Reflector
	types     map[string]reflect.Type // by name
	all       map[string]any
}

const (
	ownRefs  = "#/components/schemas/"
	refsThen = `"#/$defs/`
)

func newSchemas() *schemas {
	s := &schemas{types: map[string]reflect.Type{}, all: map[string]any{}}
	s.reflector = jsonschema.Reflector{Anonymous: true, Mapper: written, Namer: func(t reflect.Type) string {
		if t.Name() == "" {
			return "" // it is described in place
		}
		name := named(t)
		s.types[name] = t
		return name
	}}
	return s
}

// odd matches characters that are invalid in names of schemas. The names of generic types contain brackets.
var odd = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// named returns a name for the schema of a type. No type of another package has the same name.
func named(t reflect.Type) string {
	path := strings.Split(t.PkgPath(), "/")
	pkg := path[len(path)-1]
	if len(path) > 1 && (pkg == "v1" || pkg == "api") { // several packages have this name
		pkg = path[len(path)-2] + "." + pkg
	}
	return odd.ReplaceAllString(pkg+"."+t.Name(), "_")
}

// written returns the schema of a type that isn't encoded by its fields, or nil.
func written(t reflect.Type) *jsonschema.Schema {
	value := reflect.New(t)
	switch v := value.Interface().(type) {
	case *time.Time, *json.RawMessage:
		return nil // it is in types already
	case json.Marshaler:
		return byExample(v)
	case encoding.TextMarshaler:
		return &jsonschema.Schema{Type: "string"}
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
	}
	return nil
}

// byExample returns the schema of a type with its own encoding. It derives the schema from one encoded value. The schema allows a string or any JSON
// value.
func byExample(v json.Marshaler) *jsonschema.Schema {
	if data, err := v.MarshalJSON(); err == nil && len(data) > 0 && data[0] == '"' {
		return &jsonschema.Schema{Type: "string"}
	}
	return &jsonschema.Schema{}
}

// of returns the schema of a type, or a reference to the schema if the type has a name.
func (s *schemas) of(t reflect.Type) (any, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[struct{}]() {
		return map[string]any{"type": "object", "additionalProperties": false}, nil
	}
	data, err := json.Marshal(s.reflector.ReflectFromType(t))
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), refsThen, `"`+ownRefs)), &out); err != nil {
		return nil, err
	}
	defs, _ := out["$defs"].(map[string]any)
	for name, def := range defs {
		if _, known := s.all[name]; !known {
			s.all[name] = def
			nullable(s.types[name], def)
		}
	}
	delete(out, "$defs")
	delete(out, "$schema")
	if ref, _ := out["$ref"].(string); ref == "" {
		nullable(t, out)
	}
	return out, nil
}

// nullable marks the fields that may be null. These fields can be nil in Go, and aren't omitted if they are nil.
func nullable(t reflect.Type, schema any) {
	def, _ := schema.(map[string]any)
	fields, _ := def["properties"].(map[string]any)
	if t == nil || t.Kind() != reflect.Struct || fields == nil {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			nullable(inner, schema)
			continue
		}
		of, there := fields[name]
		if list, _ := of.(map[string]any); there && hasNulls(f.Type) && list["items"] != nil {
			list["items"] = orNull(list["items"])
		}
		if !there || strings.Contains(rest, "omit") {
			continue
		}
		switch f.Type.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			fields[name] = orNull(of)
		}
	}
}

func orNull(of any) any { return map[string]any{"anyOf": []any{of, map[string]any{"type": "null"}}} }

// hasNulls reports whether a type is a list whose values may be null, such as a list of numbers.
func hasNulls(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Pointer && t.Elem().Elem().Kind() != reflect.Struct
}
