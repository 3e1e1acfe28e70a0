package store

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/secret"
)

// found is a scalar whose value is secret.
type found struct {
	node  *yaml.Node
	field string // machine-list[gpu-3].ssh.password
}

// secretsOf returns a function that finds the secrets in a file: fields of type secret.String, values at the given paths, and values that look
// secret in sections without a known schema.
func secretsOf(name string, paths []strictyaml.Path) func(root *yaml.Node) []found {
	types := map[string]reflect.Type{
		config.LayoutFile: reflect.TypeFor[layout.Layout](), config.KubernetesFile: reflect.TypeFor[config.Kubernetes](),
		config.RolesFile: reflect.TypeFor[config.Roles](), config.ServicesFile: reflect.TypeFor[config.Services](),
	}
	return func(root *yaml.Node) []found {
		w := walker{seen: map[visit]bool{}, taken: map[*yaml.Node]bool{}}
		if t := types[name]; t != nil {
			w.typed(root, t, "", "")
		}
		for _, p := range paths {
			if n, label := lookup(root, p); n != nil {
				w.all(n, label)
			}
		}
		return w.found
	}
}

// walker searches a document for secrets, guided by the Go type of the document. A document with aliases is a graph, so walker visits a node only
// once per type.
type walker struct {
	found []found
	taken map[*yaml.Node]bool
	seen  map[visit]bool
}

type visit struct {
	node *yaml.Node
	as   any
}

func (w *walker) first(n *yaml.Node, as any) bool {
	v := visit{n, as}
	if w.seen[v] {
		return false
	}
	w.seen[v] = true
	return true
}

func (w *walker) typed(n *yaml.Node, t reflect.Type, key, label string) {
	n = deref(n)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[secret.String]() {
		w.all(n, label)
		return
	}
	if t.Kind() == reflect.Interface {
		w.untyped(n, key, label)
		return
	}
	if !w.first(n, t) {
		return
	}
	switch {
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		eachItem(n, label, func(item *yaml.Node, label string) { w.typed(item, t.Elem(), key, label) })
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Map:
		eachEntry(n, label, func(key string, value *yaml.Node, label string) { w.typed(value, t.Elem(), key, label) })
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		fields := fieldTypes(t)
		eachEntry(n, label, func(key string, value *yaml.Node, label string) {
			field, ok := fields[key]
			if !ok {
				field = fields[inline]
			}
			if field != nil {
				w.typed(value, field, key, label)
			}
		})
	}
}

const inline = ",inline"

// fieldTypes maps the YAML keys of a struct to the types of its fields. The key inline matches all other keys.
func fieldTypes(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			out[inline] = f.Type.Elem()
		case name != "":
			out[name] = f.Type
		}
	}
	return out
}

// untyped searches a value without a known schema. It records too many values rather than too few.
func (w *walker) untyped(n *yaml.Node, key, label string) {
	n = deref(n)
	switch {
	case config.LooksSecret(key):
		w.all(n, label)
	case n.Kind == yaml.ScalarNode:
		if carriesSecret(n.Value) {
			w.take(n, label)
		}
	case !w.first(n, "untyped"):
	case n.Kind == yaml.SequenceNode:
		eachItem(n, label, func(item *yaml.Node, label string) { w.untyped(item, "", label) })
	case n.Kind == yaml.MappingNode:
		eachEntry(n, label, func(key string, value *yaml.Node, label string) { w.untyped(value, key, label) })
	}
}

var urlLogin = regexp.MustCompile(`://[^/?#@\s]*:[^/?#@\s]+@`)

// carriesSecret reports whether a value is secret under any key, such as a URL with a password, or a private key.
func carriesSecret(value string) bool {
	return urlLogin.MatchString(value) || strings.Contains(value, "PRIVATE KEY-----")
}

func (w *walker) all(n *yaml.Node, label string) {
	n = deref(n)
	switch {
	case n.Kind == yaml.ScalarNode:
		w.take(n, label)
	case !w.first(n, "all"):
	case n.Kind == yaml.SequenceNode:
		eachItem(n, label, w.all)
	case n.Kind == yaml.MappingNode:
		eachEntry(n, label, func(_ string, value *yaml.Node, label string) { w.all(value, label) })
	}
}

// take records a scalar as secret. It ignores empty values, null and booleans.
func (w *walker) take(n *yaml.Node, label string) {
	tag := n.ShortTag()
	if n.Value == "" || tag == "!!null" || tag == "!!bool" || w.taken[n] {
		return
	}
	w.taken[n] = true
	w.found = append(w.found, found{n, label})
}

// eachEntry calls f for each pair of a mapping, and for the pairs of merged mappings.
func eachEntry(n *yaml.Node, label string, f func(key string, value *yaml.Node, label string)) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := deref(n.Content[i]), n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			merged := []*yaml.Node{deref(value)}
			if merged[0].Kind == yaml.SequenceNode {
				merged = merged[0].Content
			}
			for _, m := range merged {
				if m = deref(m); m.Kind == yaml.MappingNode {
					eachEntry(m, label, f)
				}
			}
			continue
		}
		f(key.Value, value, below(label, key.Value))
	}
}

func below(label, key string) string {
	step := strictyaml.Path{key}.String()
	if label == "" || strings.HasPrefix(step, "[") {
		return label + step
	}
	return label + "." + step
}

// eachItem calls f for each entry of a list. The label of an entry contains the name of the entry, if the entry has a name. Such a label stays the
// same when other entries are inserted.
func eachItem(n *yaml.Node, label string, f func(item *yaml.Node, label string)) {
	for i, item := range n.Content {
		f(item, fmt.Sprintf("%s[%s]", label, itemName(deref(item), i)))
	}
}

func itemName(n *yaml.Node, i int) string {
	if n.Kind == yaml.MappingNode {
		for _, name := range []string{"hostname", "name", "hostip"} {
			for j := 0; j+1 < len(n.Content); j += 2 {
				if v := n.Content[j+1]; n.Content[j].Value == name && v.Kind == yaml.ScalarNode && v.Value != "" {
					return v.Value
				}
			}
		}
	}
	return fmt.Sprint(i)
}

// lookup returns the node at a path. It follows aliases and merges.
func lookup(root *yaml.Node, path strictyaml.Path) (n *yaml.Node, label string) {
	n = deref(root)
	for _, step := range path {
		var next *yaml.Node
		var nextLabel string
		switch s := step.(type) {
		case string:
			if n.Kind == yaml.MappingNode {
				eachEntry(n, label, func(key string, value *yaml.Node, label string) {
					if next == nil && key == s {
						next, nextLabel = value, label
					}
				})
			}
		case int:
			if n.Kind == yaml.SequenceNode && s < len(n.Content) {
				next, nextLabel = n.Content[s], fmt.Sprintf("%s[%s]", label, itemName(deref(n.Content[s]), s))
			}
		}
		if next == nil {
			return nil, ""
		}
		n, label = deref(next), nextLabel
	}
	return n, label
}

func deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}
