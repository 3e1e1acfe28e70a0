package release

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// shapes generates random schemas, and an object with all fields that these schemas may keep. Each path has the same type in all schemas.
type shapes struct {
	*rand.Rand
	seed uint64
}

// deep is the number of levels in a schema. The object has one additional level.
const deep = 3

func (s shapes) typeAt(path string) string {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, s.seed, path)
	switch {
	case path == "":
		return "object"
	case h.Sum64()%4 == 0:
		return "array"
	}
	return "object"
}

// schema returns a schema in two forms: as in a definition, and as in the API server's pruning code. The fields are a, b and metadata.
func (s shapes) schema(path string, depth int) (map[string]any, structuralschema.Structural) {
	typ := s.typeAt(path)
	out, parsed := map[string]any{"type": typ}, structuralschema.Structural{}
	if s.IntN(4) == 0 {
		out["x-kubernetes-preserve-unknown-fields"], parsed.XPreserveUnknownFields = true, true
	}
	if depth == 0 {
		return out, parsed
	}
	if typ == "array" {
		if s.IntN(4) > 0 {
			items, p := s.schema(path+"[]", depth-1)
			out["items"], parsed.Items = items, &p
		}
		return out, parsed
	}
	if s.IntN(5) == 0 {
		out["x-kubernetes-embedded-resource"], parsed.XEmbeddedResource = true, true
	}
	switch s.IntN(6) {
	case 0:
		out["additionalProperties"], parsed.AdditionalProperties = true, &structuralschema.StructuralOrBool{Bool: true}
	case 1:
		more, p := s.schema(path+".x", depth-1)
		out["additionalProperties"], parsed.AdditionalProperties = more, &structuralschema.StructuralOrBool{Structural: &p, Bool: true}
	default:
		properties := map[string]any{}
		parsed.Properties = map[string]structuralschema.Structural{}
		for _, name := range []string{"a", "b", "metadata"} {
			if s.IntN(3) > 0 {
				properties[name], parsed.Properties[name] = s.schema(path+".x", depth-1)
			}
		}
		out["properties"] = properties
	}
	return out, parsed
}

// full returns an object with all fields. All fields of an object have the same type, as in a map.
func (s shapes) full(path string, depth int) any {
	switch typ := s.typeAt(path); {
	case depth == 0:
		return map[string]any{"z": "text"}
	case typ == "array":
		return []any{s.full(path+"[]", depth-1)}
	}
	out := map[string]any{}
	for _, name := range []string{"a", "b", "apiVersion", "kind", "metadata", "z"} {
		out[name] = s.full(path+".x", depth-1)
	}
	return out
}

func TestLossesAreWhatTheAPIServerPrunes(t *testing.T) {
	lossy, rounds := 0, 3000
	if testing.Short() {
		rounds = 600
	}
	for seed := range uint64(rounds) {
		s := shapes{rand.New(rand.NewPCG(seed, 7)), seed}
		from, oldPruned := s.schema("", deep)
		to, nextPruned := s.schema("", deep)
		if s.IntN(3) == 0 { // no change
			s.Rand = rand.New(rand.NewPCG(seed, 7))
			to, nextPruned = s.schema("", deep)
		}
		object, _ := s.full("", deep+1).(map[string]any)
		pruning.Prune(object, &oldPruned, true)
		next := runtime.DeepCopyJSON(object)
		pruning.Prune(next, &nextPruned, true)
		lost := lostFields(root(versionWith(from)), root(versionWith(to)), "")
		if pruned := fmt.Sprint(object) != fmt.Sprint(next); pruned != (len(lost) > 0) {
			text, err := yaml.Marshal([]any{from, to, object, next})
			require.NoError(t, err)
			require.Fail(t, "a loss isn't foreseen, or none is", "seed %d: pruned %t, foreseen %v\n%s", seed, pruned, lost, text)
		}
		if len(lost) > 0 {
			lossy++
		}
	}
	require.Greater(t, lossy, rounds/4)
	require.Less(t, lossy, rounds*9/10)
}

func versionWith(schema map[string]any) map[string]any {
	return map[string]any{"schema": map[string]any{"openAPIV3Schema": schema}}
}
