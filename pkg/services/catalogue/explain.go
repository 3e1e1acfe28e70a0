package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// explain converts an error of schema validation to problems with remedies. A problem never contains the value, because the value may be a misplaced
// secret.
func (s *valuesSchema) explain(e *jsonschema.ValidationError, values map[string]any) []problem {
	p := pathIn(values, e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if len(e.Causes) == 0 {
			return []problem{{p, "matches more than one of the allowed forms", s.describe(e)}}
		}
		return s.alternatives(e, p, values)
	case *kind.AdditionalProperties:
		return s.unknownKeys(e, p, k.Properties)
	case *kind.FalseSchema:
		return []problem{{p, "is not allowed here", "remove it"}}
	case *kind.Required:
		var out []problem
		for _, key := range k.Missing {
			out = append(out, problem{p.With(key), "is missing", s.describeKey(e, key)})
		}
		return out
	}
	if len(e.Causes) > 0 {
		var out []problem
		for _, cause := range e.Causes {
			out = append(out, s.explain(cause, values)...)
		}
		return out
	}
	message, remedy := s.leaf(e)
	return []problem{{p, message, cmp.Or(remedy, s.describe(e))}}
}

// leaf explains a validation error that has no causes.
func (s *valuesSchema) leaf(e *jsonschema.ValidationError) (message, remedy string) {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return fmt.Sprintf("expected %s, found %s", typeNames(k.Want), typeName(k.Got)), typeRemedy(k)
	case *kind.Enum:
		return "is not one of the allowed values", choices(k)
	case *kind.Const:
		return fmt.Sprintf("must be %v", k.Want), ""
	case *kind.Pattern:
		return "is not in the expected form", strings.TrimSpace(s.describe(e) + " " + s.form(e, k.Want))
	case *kind.Format:
		return "is not a valid " + k.Want, ""
	case *kind.Minimum:
		return "is less than " + number(k.Want), "the smallest value is " + number(k.Want)
	case *kind.Maximum:
		return "is more than " + number(k.Want), "the largest value is " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(k.Want), ""
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want), ""
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want), ""
	case *kind.MinLength:
		if k.Got == 0 {
			return "is empty", ""
		}
		return fmt.Sprintf("has %s, fewer than %d", plural.Of(k.Got, "character"), k.Want), ""
	case *kind.MaxLength:
		return fmt.Sprintf("has %s, more than %d", plural.Of(k.Got, "character"), k.Want), ""
	case *kind.MinItems:
		return fmt.Sprintf("has %s, fewer than %d", plural.Of(k.Got, "entry"), k.Want), ""
	case *kind.MaxItems:
		return fmt.Sprintf("has %s, more than %d", plural.Of(k.Got, "entry"), k.Want), ""
	case *kind.UniqueItems:
		return fmt.Sprintf("has the same entry twice, at %d and %d", k.Duplicates[0], k.Duplicates[1]), "remove one of the two"
	case *kind.MinProperties:
		return fmt.Sprintf("has %s, fewer than %d", plural.Of(k.Got, "key"), k.Want), ""
	case *kind.MaxProperties:
		return fmt.Sprintf("has %s, more than %d", plural.Of(k.Got, "key"), k.Want), ""
	case *kind.PropertyNames:
		return fmt.Sprintf("%q is not an allowed key", k.Property), ""
	case *kind.DependentRequired:
		return fmt.Sprintf("%s also needs %s", k.Prop, strings.Join(k.Missing, ", ")), ""
	case *kind.Not:
		return "is not allowed", ""
	}
	return "is not allowed", ""
}

// alternatives explains why a value matches none of the alternative schemas. If exactly one alternative has the type of the value, alternatives
// returns the errors of that alternative. If no alternative has this type, alternatives lists the allowed types.
func (s *valuesSchema) alternatives(e *jsonschema.ValidationError, p strictyaml.Path, values map[string]any) []problem {
	var want []string
	var near [][]problem
	for _, cause := range e.Causes {
		if k, ok := typeError(cause, len(e.InstanceLocation)); ok {
			want = append(want, k.Want...)
			continue
		}
		near = append(near, s.explain(cause, values))
	}
	switch {
	case len(near) == 1:
		return near[0]
	case len(near) == 0:
		k, _ := typeError(e.Causes[0], len(e.InstanceLocation))
		slices.Sort(want)
		names := typeNames(slices.Compact(want))
		return []problem{{p, fmt.Sprintf("expected %s, found %s", names, typeName(k.Got)), "write " + names + " there"}}
	}
	return []problem{{p, "matches none of the allowed forms", cmp.Or(s.describe(e), near[0][0].message)}}
}

// typeError returns the error about the type of the value itself, if e contains this error.
func typeError(e *jsonschema.ValidationError, depth int) (*kind.Type, bool) {
	if k, ok := e.ErrorKind.(*kind.Type); ok && len(e.InstanceLocation) == depth {
		return k, true
	}
	if len(e.Causes) == 1 {
		return typeError(e.Causes[0], depth)
	}
	return nil, false
}

func (s *valuesSchema) unknownKeys(e *jsonschema.ValidationError, p strictyaml.Path, keys []string) []problem {
	var known []string
	if part := s.byLocation[e.SchemaURL]; part != nil {
		known = sorted(maps.Keys(part.Properties))
	}
	if len(p) == 0 {
		known = append(known, s.beside...)
	}
	// The remedy must not suggest keys that paictl itself sets.
	known = slices.DeleteFunc(known, func(key string) bool { return key == keyGlobal || key == keyCredentialsRevision })
	var out []problem
	for _, key := range slices.Sorted(slices.Values(keys)) {
		message, remedy := unknownKey(key, known)
		out = append(out, problem{p.With(key), message, remedy})
	}
	return out
}

// describe returns the schema's description of the value, or "".
func (s *valuesSchema) describe(e *jsonschema.ValidationError) string {
	if part := s.byLocation[e.SchemaURL]; part != nil {
		return part.Description
	}
	return ""
}

// form describes the strings that match a pattern. form returns the examples of the schema, if any.
func (s *valuesSchema) form(e *jsonschema.ValidationError, pattern string) string {
	if part := s.byLocation[e.SchemaURL]; part != nil && len(part.Examples) > 0 {
		var all []string
		for _, x := range part.Examples {
			all = append(all, fmt.Sprint(x))
		}
		return "Write for example " + strings.Join(all, " or ") + "."
	}
	return "It must match " + pattern
}

func (s *valuesSchema) describeKey(e *jsonschema.ValidationError, key string) string {
	if part := s.byLocation[e.SchemaURL]; part != nil && part.Properties[key] != nil {
		return part.Properties[key].Description
	}
	return ""
}

func typeName(t string) string {
	switch t {
	case "string":
		return "text"
	case "integer":
		return "a whole number"
	case "number":
		return "a number"
	case "boolean":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "a map"
	case "null":
		return "nothing"
	}
	return t
}

func typeNames(types []string) string {
	var names []string
	for _, t := range types {
		names = append(names, typeName(t))
	}
	return strings.Join(names, " or ")
}

func typeRemedy(k *kind.Type) string {
	want := func(t string) bool { return slices.Contains(k.Want, t) }
	switch {
	case want("array"):
		return "write each entry on a separate line that begins with \"- \""
	case want("string") && k.Got != "object" && k.Got != "array":
		return "put the value in quotes"
	case k.Got == "string" && (want("integer") || want("number") || want("boolean")):
		return "remove the quotes, if there are any"
	case want("object"):
		return `write its keys on the lines below, indented, each as "key: value"`
	}
	return "write " + typeNames(k.Want) + " there"
}

func choices(k *kind.Enum) string {
	var words []string
	for _, v := range k.Want {
		if text, ok := v.(string); ok {
			words = append(words, strconv.Quote(text))
			continue
		}
		words = append(words, fmt.Sprint(v))
	}
	return "write one of " + strings.Join(words, ", ")
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
