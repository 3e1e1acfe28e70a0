package release

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// id identifies an object independently of its API version.
type id struct{ group, kind, namespace, name string }

// String returns the object for messages, such as "deployment pai-system/grafana".
func (i id) String() string {
	kind := strings.ToLower(i.kind)
	if i.namespace == "" {
		return kind + " " + i.name
	}
	return kind + " " + i.namespace + "/" + i.name
}

// title returns the object for lists, such as "Deployment pai-system/grafana".
func (i id) title() string { return i.kind + strings.TrimPrefix(i.String(), strings.ToLower(i.kind)) }

// object is an object of a manifest. mapping is nil if the API doesn't serve the object's kind yet.
type object struct {
	id
	*unstructured.Unstructured
	mapping *meta.RESTMapping
}

// manifest holds objects in the order of the manifest's text.
type manifest []object

func (m manifest) byID() map[id]object {
	out := make(map[id]object, len(m))
	for _, o := range m {
		out[o.id] = o
	}
	return out
}

// parseObjects parses the documents of a manifest. parseObjects splits each list into its items.
func parseObjects(text string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifest: %w", err)
		}
		var content map[string]any
		if err := yaml.Unmarshal(doc, &content); err != nil {
			return nil, fmt.Errorf("read the manifest of %s: %w", source(doc), err)
		}
		if len(content) == 0 {
			continue
		}
		u := &unstructured.Unstructured{Object: integers(content).(map[string]any)}
		if u.GetKind() == "" || u.GetAPIVersion() == "" {
			return nil, fmt.Errorf("read the manifest of %s: an object has no kind or no apiVersion", source(doc))
		}
		if !u.IsList() {
			out = append(out, u)
			continue
		}
		list, err := u.ToList()
		if err != nil {
			return nil, fmt.Errorf("read the manifest of %s: %w", source(doc), err)
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
}

// source returns the path of the template of a document, such as "prometheus/templates/config.yaml".
func source(doc []byte) string {
	for line := range bytes.Lines(doc) {
		if s, ok := strings.CutPrefix(string(line), "# Source: "); ok {
			return strings.TrimSpace(s)
		}
	}
	return "the chart"
}

// integers converts whole numbers to int64, like the API's decoder. Unstructured objects accept no other integer type.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		if whole := int64(v); float64(whole) == v {
			return whole
		}
	}
	return v
}

// mapObjects parses a manifest and finds the API resource of each object. Objects without a namespace receive the release's namespace. If the API
// doesn't serve the kind of an object and may returns true for the kind, the object has no mapping. If may returns false, mapObjects returns an
// error.
func (s *session) mapObjects(text string, may func(schema.GroupKind) bool) (manifest, error) {
	parsed, err := parseObjects(text)
	if err != nil {
		return nil, err
	}
	out := make(manifest, 0, len(parsed))
	for _, u := range parsed {
		o, err := s.mapObject(u, may)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// mustBeServed returns false, so that mapObjects requires all kinds of the manifest to exist.
func mustBeServed(schema.GroupKind) bool { return false }

func (s *session) mapObject(u *unstructured.Unstructured, may func(schema.GroupKind) bool) (object, error) {
	gvk := u.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) && !may(gvk.GroupKind()) {
		// Another release may have added the kind after the API's discovery was read.
		s.mapper.Reset()
		mapping, err = s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	switch {
	case meta.IsNoMatchError(err) && may(gvk.GroupKind()):
		mapping = nil
		// Another version of the kind shows whether the kind is namespaced.
		if now, err := s.mapper.RESTMapping(gvk.GroupKind()); err == nil && now.Scope.Name() == meta.RESTScopeNameNamespace && u.GetNamespace() == "" {
			u.SetNamespace(s.namespace)
		}
	case err != nil:
		return object{}, noKind(u, err)
	case mapping.Scope.Name() == meta.RESTScopeNameNamespace && u.GetNamespace() == "":
		u.SetNamespace(s.namespace)
	case mapping.Scope.Name() == meta.RESTScopeNameRoot:
		u.SetNamespace("")
	}
	return object{idOf(u), u, mapping}, nil
}

func idOf(u *unstructured.Unstructured) id {
	return id{u.GroupVersionKind().Group, u.GetKind(), u.GetNamespace(), u.GetName()}
}

// definedBy returns the kinds that a chart itself defines.
func definedBy(c *helmchart.Chart, texts ...string) map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{}
	if c != nil {
		for _, crd := range c.CRDObjects() {
			texts = append(texts, string(crd.File.Data))
		}
	}
	for _, text := range texts {
		if !strings.Contains(text, "CustomResourceDefinition") {
			continue
		}
		parsed, err := parseObjects(text)
		if err != nil {
			continue // reported when the text is used
		}
		for _, u := range parsed {
			if u.GetKind() != "CustomResourceDefinition" {
				continue
			}
			out[definedKind(u)] = true
		}
	}
	return out
}

// definedKind returns the kind that a definition defines.
func definedKind(u *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}
