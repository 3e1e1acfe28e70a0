package release

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// node is a part of a schema, with the data for the API server's pruning rules. See prune and skipPrune in
// k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning.
type node struct {
	schema map[string]any // nil: without a schema
	keeps  bool           // fields that the schema doesn't name are kept
	root   bool
}

// all reports whether the API server keeps all fields below the node.
func (n node) all() bool { return n.schema == nil && n.keeps }

func (n node) typ() string { return textAt(n.schema, "type") }

func textAt(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func isSet(m map[string]any, key string) bool {
	set, _ := m[key].(bool)
	return set
}

func root(version map[string]any) node {
	s, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
	n := at(s)
	n.root = true
	return n
}

func at(schema map[string]any) node {
	return node{schema: schema, keeps: isSet(schema, "x-kubernetes-preserve-unknown-fields")}
}

func (n node) properties() map[string]any {
	p, _ := n.schema["properties"].(map[string]any)
	return p
}

// metadata reports whether a field exists in each object, regardless of the schema.
func (n node) metadata(field string) bool {
	return (n.root || isSet(n.schema, "x-kubernetes-embedded-resource")) && slices.Contains(metadataFields, field)
}

var metadataFields = []string{"apiVersion", "kind", "metadata"}

// field returns the node of a field. The result there is false if the API server prunes the field.
func (n node) field(name string) (below node, there bool) {
	if n.metadata(name) {
		return node{keeps: true}, true
	}
	if p, ok := n.properties()[name].(map[string]any); ok {
		return at(p), true
	}
	return n.unnamed()
}

// unnamed returns the node of fields whose names aren't in the schema. If additionalProperties is true, the API server prunes the fields below such a
// field.
func (n node) unnamed() (below node, there bool) {
	if more, ok := n.schema["additionalProperties"]; ok {
		s, _ := more.(map[string]any)
		return at(s), true
	}
	return node{keeps: true}, n.keeps
}

// items returns the node of a list's items. If the list keeps unknown fields, the items also keep unknown fields.
func (n node) items() node {
	s, _ := n.schema["items"].(map[string]any)
	below := at(s)
	below.keeps = below.keeps || n.keeps
	return below
}

// lostFields returns the outermost fields below a path that the schema from keeps and the schema to prunes.
func lostFields(from, to node, path string) []string {
	if to.all() || from.schema == nil && !from.keeps {
		return nil
	}
	typ := from.typ()
	if from.all() {
		if typ = to.typ(); typ != "" && typ != "object" && typ != "array" {
			return nil
		}
	}
	var out []string
	allLost := false
	if typ != "array" {
		out, allLost = lostOfObject(from, to, path)
	}
	if items := from.items(); typ != "object" && (!allLost || !items.all()) {
		out = append(out, lostFields(items, to.items(), path+"[]")...)
	}
	return out
}

func lostOfObject(from, to node, path string) (out []string, unnamedLost bool) {
	old, had := from.unnamed()
	next, has := to.unnamed()
	switch {
	case had && !has:
		out, unnamedLost = append(out, "fields without a name in "+cmp.Or(path, "the object")), true
	case had:
		out = append(out, lostFields(old, next, path+".*")...)
	}
	names := map[string]any{}
	maps.Copy(names, from.properties())
	maps.Copy(names, to.properties())
	for _, name := range metadataFields {
		if from.metadata(name) {
			names[name] = nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, had := from.field(name)
		next, has := to.field(name)
		below := strings.TrimPrefix(path+"."+name, ".")
		_, named := from.properties()[name]
		switch {
		case !had || unnamedLost && !named && !from.metadata(name):
		case !has:
			out = append(out, "field "+below)
		default:
			out = append(out, lostFields(old, next, below)...)
		}
	}
	return out, unnamedLost
}
