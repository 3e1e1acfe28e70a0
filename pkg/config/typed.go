package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// typed checks the values of a file against an API type of another program. It is as strict as that program, but it reports all findings at once,
// with their positions.
type typed struct {
	enums map[string][]string // fields that accept only these words, by path
	fail  func(p fieldPath, rule, message, remedy string)
}

// value checks whether v is a valid value for the type t. The argument at is the path of v in the file, and the argument field is the path in the
// type.
func (c *typed) value(v any, t reflect.Type, at fieldPath, field string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if v == nil {
		return // null selects the program's default
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		c.leaf(v, t, at)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		c.object(v, t, at, field)
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			c.wrongType(at, "a map", v)
			return
		}
		for _, k := range sortedKeys(m) {
			c.value(m[k], t.Elem(), at.With(k), field+".*")
		}
	case reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			c.wrongType(at, "a list", v)
			return
		}
		for i, x := range list {
			c.value(x, t.Elem(), at.With(i), field+"[]")
		}
	default:
		c.scalar(v, t, at, field)
	}
}

func (c *typed) object(v any, t reflect.Type, at fieldPath, field string) {
	m, ok := v.(map[string]any)
	if !ok {
		c.wrongType(at, "a map", v)
		return
	}
	fields := jsonFields(t)
	for _, k := range sortedKeys(m) {
		ft, ok := fields[k]
		if !ok {
			remedy := "look the field up in the reference of the type; names are case-sensitive"
			if near := strictyaml.Nearest(k, sortedKeys(fields)); near != "" {
				remedy = fmt.Sprintf("did you mean %q?", near)
			}
			c.fail(at.With(k), "extra/unknown-key", fmt.Sprintf("%s has no field %q", nameOfType(t), k), remedy)
			continue
		}
		c.value(m[k], ft, at.With(k), strings.TrimPrefix(field+"."+k, "."))
	}
}

// jsonFields returns the fields of a struct by their JSON names, including the fields of embedded structs.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for k, ft := range jsonFields(f.Type) {
				out[k] = ft
			}
		case name != "" && name != "-":
			out[name] = f.Type
		}
	}
	return out
}

// leaf checks a value whose type is parsed from text, such as a duration.
func (c *typed) leaf(v any, t reflect.Type, at fieldPath) {
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, reflect.New(t).Interface())
	}
	if err == nil {
		return
	}
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		c.fail(at, "extra/value", "this is not a duration", "write a number with its unit, such as 90s, 10m or 1h30m")
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[resource.QuantityValue]():
		c.fail(at, "extra/value", "this is not a quantity", "write a number with its unit, such as 500Mi or 2")
	default:
		c.fail(at, "extra/value", fmt.Sprintf("this is not a %s", nameOfType(t)), "look the field up in the reference of the type")
	}
}

func (c *typed) scalar(v any, t reflect.Type, at fieldPath, field string) {
	switch t.Kind() {
	case reflect.String:
		s, ok := v.(string)
		if !ok {
			c.wrongType(at, "text", v)
			return
		}
		words := c.enums[field]
		if len(words) == 0 || slices.Contains(words, s) {
			return
		}
		remedy := "write one of " + strings.Join(words, ", ")
		if near := strictyaml.Nearest(s, words); near != "" {
			remedy = fmt.Sprintf("did you mean %q? (there are: %s)", near, strings.Join(words, ", "))
		}
		c.fail(at, "extra/value", fmt.Sprintf("%q is not one of its values", s), remedy)
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			c.wrongType(at, "true or false", v)
		}
	case reflect.Float32, reflect.Float64:
		if k := reflect.ValueOf(v).Kind(); k != reflect.Float64 && !isInteger(v) {
			c.wrongType(at, "a number", v)
		}
	default:
		if !isInteger(v) {
			c.wrongType(at, "a whole number", v)
			return
		}
		b, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(b, reflect.New(t).Interface())
		}
		if err != nil {
			c.fail(at, "extra/value", "the number does not fit", "write a smaller one")
		}
	}
}

func isInteger(v any) bool {
	switch v.(type) {
	case int, int64, uint64:
		return true
	}
	return false
}

func (c *typed) wrongType(at fieldPath, want string, v any) {
	remedy := "write " + want + " there"
	text, _ := v.(string)
	// Without quotes, the value would not be a string.
	_, err := strconv.ParseFloat(text, 64)
	quoted := text != "" && (err == nil || text == "true" || text == "false")
	switch {
	case want == "text":
		remedy = "put the value in quotes"
	case want == "a list":
		remedy = "write each entry on a separate line that begins with \"- \""
	case quoted && want != "a map":
		remedy = "remove the quotes, if that is what you meant"
	}
	c.fail(at, "extra/type", fmt.Sprintf("expected %s, found %s", want, describeValue(v)), remedy)
}

// describeValue returns the kind of a value. It doesn't return the value itself, because the value may be a secret.
func describeValue(v any) string {
	switch v.(type) {
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case bool:
		return "true or false"
	case string:
		return "text"
	}
	if isInteger(v) {
		return "a whole number"
	}
	return "a number"
}

// nameOfType returns the name of a type in the documentation of its program. In this package, the copies of kubeadm's types have other names.
func nameOfType(t reflect.Type) string {
	if part, ok := strings.CutPrefix(t.Name(), "kubeadm"); ok {
		return "the type of kubeadm's configuration for " + part
	}
	return t.Name()
}
