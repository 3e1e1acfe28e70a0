package strictyaml

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

type structFields struct {
	byKey  map[string]int
	keys   []string
	inline int // index of the map that takes all other keys; -1 if the struct doesn't have one
}

func (d *Decoder) fieldsOf(t reflect.Type) structFields {
	if f, ok := d.fields[t]; ok {
		return f
	}
	f := structFields{byKey: map[string]int{}, inline: -1}
	for i := range t.NumField() {
		tag, ok := t.Field(i).Tag.Lookup("yaml")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case !ok || name == "-" || !t.Field(i).IsExported():
		case options == "inline":
			f.inline = i
		default:
			f.byKey[name] = i
			f.keys = append(f.keys, name)
		}
	}
	d.fields[t] = f
	return f
}

func (d *Decoder) structValue(n *yaml.Node, path Path, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, path, "a map")
		return
	}
	f := d.fieldsOf(v.Type())
	for _, e := range d.entries(n, path) {
		p := path.With(e.key.Value)
		if i, ok := f.byKey[e.key.Value]; ok {
			d.value(e.value, p, v.Field(i))
			continue
		}
		if f.inline < 0 {
			d.Report(e.key, p, "yaml/unknown-key", fmt.Sprintf("there is no key %q here", e.key.Value),
				unknownRemedy(e.key.Value, f.keys, hints(v)))
			continue
		}
		m := v.Field(f.inline)
		if m.IsNil() {
			m.Set(reflect.MakeMap(m.Type()))
		}
		item := reflect.New(m.Type().Elem()).Elem()
		d.value(e.value, p, item)
		m.SetMapIndex(reflect.ValueOf(e.key.Value), item)
	}
}

func hints(v reflect.Value) map[string]string {
	if h, ok := v.Interface().(KeyHinter); ok {
		return h.KeyHints()
	}
	return nil
}

func unknownRemedy(key string, known []string, hints map[string]string) string {
	if h, ok := hints[key]; ok {
		return h
	}
	if near := Nearest(key, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	sorted := slices.Sorted(slices.Values(known))
	if len(sorted) > 24 {
		return "see the fields in the generated example"
	}
	return "the keys here are " + strings.Join(sorted, ", ")
}

// Nearest returns the candidate that is most similar to word, or "" if no candidate is similar.
func Nearest(word string, candidates []string) string {
	best, bestDistance := "", 0
	for _, c := range candidates {
		dist := distance(normalKey(word), normalKey(c))
		limit := max(1, min(len(c), len(word))/3)
		if dist <= limit && (best == "" || dist < bestDistance) {
			best, bestDistance = c, dist
		}
	}
	return best
}

func normalKey(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
}

// distance returns the number of edits between two short words. An edit inserts, deletes or replaces a character, or swaps two neighboring
// characters.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := last[j]
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
