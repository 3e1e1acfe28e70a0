package catalogue

import (
	"fmt"
	"maps"
	"math"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

// checkResources rejects limits that are less than the requests, because the API server would reject such limits later. checkResources also rejects
// amounts that exceed the range of a quantity. The schema has already checked the syntax. section holds the configured values. all also holds the
// chart's defaults.
func (b *builder) checkResources(p strictyaml.Path, section, all map[string]any) {
	for _, key := range sorted(maps.Keys(all)) {
		inner, ok := all[key].(map[string]any)
		if !ok {
			continue
		}
		set := table(section, key)
		requests, limits := table(inner, "requests"), table(inner, "limits")
		if key != "resources" || len(requests)+len(limits) == 0 {
			b.checkResources(p.With(key), set, inner)
			continue
		}
		for _, name := range sorted(maps.Keys(requests)) {
			request := b.amount(p.With(key, "requests", name), requests[name])
			limit := b.amount(p.With(key, "limits", name), limits[name])
			if request == nil || limit == nil || limit.Cmp(*request) >= 0 {
				continue
			}
			at, remedy := p.With(key, "limits", name), fmt.Sprintf("write at least %v, or lower requests.%s", requests[name], name)
			if table(set, "limits")[name] == nil {
				at, remedy = p.With(key, "requests", name), fmt.Sprintf("write at most %v, or raise limits.%s", limits[name], name)
			}
			b.fail(at, "services/values", fmt.Sprintf("the limit %v is below the request %v", limits[name], requests[name]), remedy)
		}
	}
}

// table returns the map at a key, or nil.
func table(m map[string]any, key string) map[string]any {
	t, _ := m[key].(map[string]any)
	return t
}

func (b *builder) amount(p strictyaml.Path, v any) *resource.Quantity {
	if v == nil {
		return nil
	}
	q, err := resource.ParseQuantity(fmt.Sprint(v))
	if err != nil {
		return nil // the schema's finding names it
	}
	if q.CmpInt64(math.MaxInt64) >= 0 {
		b.fail(p, "services/values", fmt.Sprintf("%v is more than a quantity can hold", v), "write a quantity such as 500m or 4Gi")
		return nil
	}
	return &q
}
