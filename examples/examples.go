// Package examples embeds the quick-start files that people copy, and the catalogue of job templates, so that programs can use them without a
// checkout of the repository.
// In: the YAML files of this folder. Out: their text by name, and the templates. The tests of pkg/config turn each quick-start file into a
// configuration.
package examples

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed quick-start*.yaml
var files embed.FS

// Full is the name of the example that shows every field.
const Full = "full"

const stem = "quick-start"

// Names returns the names of the quick-start examples. The first is Full.
func Names() []string {
	out := []string{Full}
	entries, _ := files.ReadDir(".") // an embedded folder can be read
	for _, e := range entries {
		if name := strings.TrimSuffix(strings.TrimPrefix(e.Name(), stem+"-"), ".yaml"); name != stem {
			out = append(out, name)
		}
	}
	return out
}

// Text returns the text of a quick-start example.
func Text(name string) ([]byte, error) {
	file := stem + "-" + name + ".yaml"
	if name == Full {
		file = stem + ".yaml"
	}
	b, err := files.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("there is no example %q; there are: %s", name, strings.Join(Names(), ", "))
	}
	return b, nil
}
