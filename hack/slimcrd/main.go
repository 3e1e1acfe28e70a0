// slimcrd removes the descriptions from the pod template in a custom resource definition. They come from Kubernetes, and make up four fifths of the
// file.
// In: the definition's file. Out: the same file.
package main

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: slimcrd FILE")
		os.Exit(2)
	}
	if err := slim(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "slimcrd:", err)
		os.Exit(1)
	}
}

func slim(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	crd := map[string]any{}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return err
	}
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil {
		return err
	}
	for _, v := range versions {
		pod, found, err := unstructured.NestedMap(v.(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties",
			"taskRoles", "items", "properties", "task", "properties", "pod", "properties")
		if err != nil || !found {
			return fmt.Errorf("%s has no pod template: %w", file, err)
		}
		for _, field := range pod {
			quiet(field.(map[string]any))
		}
		// When Go encodes the type, it writes this field, always with the value null.
		if err := unstructured.SetNestedMap(pod, map[string]any{"type": "string", "format": "date-time", "nullable": true},
			"metadata", "properties", "creationTimestamp"); err != nil {
			return err
		}
		if err := unstructured.SetNestedMap(v.(map[string]any), pod, "schema", "openAPIV3Schema", "properties", "spec", "properties",
			"taskRoles", "items", "properties", "task", "properties", "pod", "properties"); err != nil {
			return err
		}
	}
	crd["spec"].(map[string]any)["versions"] = versions
	out, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), out...), 0o644)
}

// quiet removes the descriptions from a schema. It keeps fields that are named description.
func quiet(schema map[string]any) {
	delete(schema, "description")
	if schema["x-kubernetes-int-or-string"] == true && schema["pattern"] != nil {
		// This field is a quantity. Pods also accept numbers with fractions, and the pattern applies only to texts.
		delete(schema, "anyOf")
		delete(schema, "x-kubernetes-int-or-string")
		schema["x-kubernetes-preserve-unknown-fields"] = true
	}
	if fields, ok := schema["properties"].(map[string]any); ok {
		for _, f := range fields {
			quiet(f.(map[string]any))
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if s, ok := schema[key].(map[string]any); ok {
			quiet(s)
		}
	}
}
