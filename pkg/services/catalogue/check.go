package catalogue

import (
	"maps"

	"github.com/openpai/paictl/pkg/strictyaml"
)

// checkValues holds each embedded service's values against its chart's schema, and then
// takes the secrets out of them.
func (b *builder) checkValues() {
	for _, name := range sorted(maps.Keys(b.services)) {
		s := b.services[name]
		if s.Upstream != nil {
			continue
		}
		c := b.embedded[name]
		for _, p := range c.schema.check(merge(c.Values, s.Values)) {
			b.fail(at(name, p.path...), "services/values", p.message, p.remedy)
		}
		b.takeSecrets(s, c.schema)
	}
}

// sectionPath leads from a value of an upstream service to the field that sets it.
func sectionPath(s *Service, p strictyaml.Path) strictyaml.Path {
	if len(p) > 0 {
		if key, ok := p[0].(string); ok && s.secretValues[key] != nil && s.Values[key] == nil {
			return at(s.Name, keySecretValues).With(p...)
		}
	}
	return at(s.Name, keyValues).With(p...)
}
