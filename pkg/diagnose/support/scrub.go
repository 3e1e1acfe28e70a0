package support

import (
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/diagnose/support/redact"
)

// annotationApplied is the annotation in which kubectl stores a copy of the whole object.
const annotationApplied = "kubectl.kubernetes.io/last-applied-configuration"

// scrub removes fields that don't help readers from an object. It redacts all environment variables of a private object. In other objects, it
// redacts only variables whose names are names of secrets.
func scrub(o map[string]any, private bool) {
	if meta, ok := o["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
		if annotations, ok := meta["annotations"].(map[string]any); ok {
			delete(annotations, annotationApplied)
		}
	}
	environment(o, private)
}

func environment(v any, private bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			if list, ok := x.([]any); ok && key == "env" {
				for _, e := range list {
					variable(e, private)
				}
			}
			environment(x, private)
		}
	case []any:
		for _, x := range v {
			environment(x, private)
		}
	}
}

func variable(v any, private bool) {
	e, _ := v.(map[string]any)
	value, _ := e["value"].(string)
	name, _ := e["name"].(string)
	switch {
	case value == "":
	case private:
		e["value"] = redact.Mark(redact.Environment)
	case redact.IsSecretName(name) || config.LooksSecret(name):
		e["value"] = redact.Mark(redact.Password)
	}
}
