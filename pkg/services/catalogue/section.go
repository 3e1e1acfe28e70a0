package catalogue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// These keys of a section are for paictl. The chart doesn't receive these keys.
const (
	keyEnabled      = "enabled"
	keyPlacement    = "placement"
	keyChart        = "chart"
	keyVersion      = "version"
	keyDigest       = "digest"
	keyPlainHTTP    = "plainHTTP"
	keyNamespace    = "namespace"
	keyRequires     = "requires"
	keyValues       = "values"
	keySecretValues = "secretValues"
)

// embeddedService returns the service of an embedded chart. section may be nil. Volumes and values are checked later, because the checks require all
// services.
func (b *builder) embeddedService(c *embeddedChart, section any) *Service {
	s := &Service{
		Name: c.Name(), Description: c.Metadata.Description, Namespace: defaultNamespace, Requires: c.requires,
		Placement: c.placement, Enabled: c.enabled, Source: SourceEmbedded, Chart: c.Chart, Claims: c.claims,
	}
	settings, ok := section.(map[string]any)
	if section != nil && !ok {
		b.notAMap(at(s.Name))
	}
	own := plain(settings, true).(map[string]any)
	b.boolean(own, at(s.Name), keyEnabled, &s.Enabled)
	if placement, ok := b.textList(own, at(s.Name), keyPlacement); ok {
		b.place(s, c, placement)
	}
	for _, key := range []string{keyEnabled, keyPlacement} {
		delete(own, key)
	}
	s.Values = mergeComputed(merge(map[string]any{keyGlobal: globalValues(b.cfg)}, placementValues(b.cfg, s.Placement)), b.withoutFormer(s.Name, own))
	return s
}

// place checks the placement in a section. This placement replaces the chart's placement.
func (b *builder) place(s *Service, c *embeddedChart, placement []string) {
	switch bad := badPlacement(placement); {
	case !c.hasPods():
		b.fail(at(s.Name, keyPlacement), "services/placement", s.Name+" has no pods that could be placed", "remove it")
	case slices.Contains(placement, PlacementNone):
		b.fail(at(s.Name, keyPlacement), "services/placement", s.Name+" has pods, which must run somewhere", placementRemedy(b.cfg)+"; to run no pods, write enabled: false")
	case bad != "":
		b.fail(at(s.Name, keyPlacement), "services/placement", bad, placementRemedy(b.cfg))
	default:
		s.Placement = placement
	}
}

func (b *builder) notAMap(p strictyaml.Path) {
	b.fail(p, "services/section", "expected a map of settings", "write each setting on a separate line, indented, as key: value")
}

// boolean stores the value of a key in out if the key exists.
func (b *builder) boolean(m map[string]any, p strictyaml.Path, key string, out *bool) {
	switch v := m[key].(type) {
	case nil:
	case bool:
		*out = v
	default:
		b.fail(p.With(key), "services/section", "expected true or false", "write "+key+": true or "+key+": false, without quotes")
	}
}

// text stores the value of a key in out if the key exists.
func (b *builder) text(m map[string]any, p strictyaml.Path, key string, out *string) {
	switch v := m[key].(type) {
	case nil:
	case string:
		*out = v
	default:
		b.fail(p.With(key), "services/section", "expected text", "put the value in quotes")
	}
}

// textList returns the list of strings at a key, and reports whether the key exists. textList also accepts a comma-separated string.
func (b *builder) textList(m map[string]any, p strictyaml.Path, key string) ([]string, bool) {
	var out []string
	switch v := m[key].(type) {
	case nil:
		return nil, false
	case string:
		return words(v), true
	case []any:
		for i, e := range v {
			word, ok := e.(string)
			if !ok {
				b.fail(p.With(key, i), "services/section", "expected text", "put the value in quotes")
				return nil, false
			}
			out = append(out, word)
		}
		return out, true
	}
	b.fail(p.With(key), "services/section", "expected a list of names", fmt.Sprintf("write %s: [a, b]", key))
	return nil, false
}

// table returns the map at a key. The map contains values for a chart.
func (b *builder) table(m map[string]any, p strictyaml.Path, key string) map[string]any {
	switch v := m[key].(type) {
	case nil:
	case map[string]any:
		return v
	default:
		b.notAMap(p.With(key))
	}
	return map[string]any{}
}

// unknownKey returns the message for an unknown key, and a remedy that suggests a similar key.
func unknownKey(key string, known []string) (message, remedy string) {
	message = fmt.Sprintf("there is no key %q here", key)
	if near := strictyaml.Nearest(key, known); near != "" {
		return message, fmt.Sprintf("did you mean %q?", near)
	}
	slices.Sort(known)
	switch {
	case len(known) == 0:
		return message, "remove it"
	case len(known) > 24:
		return message, "see the keys in the generated services-configuration.yaml"
	}
	return message, "the keys here are " + strings.Join(known, ", ")
}
