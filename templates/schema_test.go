package templates

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
	"helm.sh/helm/v3/pkg/chart"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// rawValues returns the parsed values.yaml of a chart, with its comments.
func rawValues(t *testing.T, c *chart.Chart) *yaml.Node {
	t.Helper()
	for _, f := range c.Raw {
		if f.Name != "values.yaml" {
			continue
		}
		var doc yaml.Node
		require.NoError(t, yaml.Unmarshal(f.Data, &doc))
		require.NotEmpty(t, doc.Content)
		return doc.Content[0]
	}
	t.Fatal("there is no values.yaml")
	return nil
}

func schemaOf(t *testing.T, c *chart.Chart) map[string]any {
	t.Helper()
	require.NotEmpty(t, c.Schema, "values.schema.json is missing")
	var out map[string]any
	require.NoError(t, json.Unmarshal(c.Schema, &out))
	return out
}

func TestSchemasCompile(t *testing.T) {
	eachChart(t, func(t *testing.T, c *chart.Chart) {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Schema))
		require.NoError(t, err)
		compiler := jsonschema.NewCompiler()
		require.NoError(t, compiler.AddResource("values.schema.json", doc))
		_, err = compiler.Compile("values.schema.json")
		require.NoError(t, err)
	})
}

// The schema rejects quantities that Kubernetes would reject in a pod, so that paictl reports them before it starts a service.
func TestResourcesOfPodsAreQuantities(t *testing.T) {
	eachChart(t, func(t *testing.T, c *chart.Chart) {
		resources, _ := schemaOf(t, c)["properties"].(map[string]any)["resources"].(map[string]any)
		if resources == nil {
			return
		}
		compiler := jsonschema.NewCompiler()
		require.NoError(t, compiler.AddResource("resources.json", resources))
		schema, err := compiler.Compile("resources.json")
		require.NoError(t, err)
		for limits, valid := range map[string]bool{
			`{"cpu": "500m", "memory": "64Mi"}`: true, `{"cpu": 2, "memory": "1.5Gi"}`: true, `{"cpu": 0.5}`: true, `{"memory": "1e9", "nvidia.com/gpu": 1}`: true,
			`5`: false, `{"memory": "lots"}`: false, `{"memory": "64 Mi"}`: false, `{"memory": "64MB"}`: false, `{"cpu": true}`: false,
		} {
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(`{"requests": {"cpu": "10m"}, "limits": ` + limits + `}`))
			require.NoError(t, err)
			require.Equal(t, valid, schema.Validate(doc) == nil, limits)
		}
	})
}

// The comments of values.yaml become the documentation of services-configuration.yaml, and the schema checks that file. A key needs both.
func TestEveryValueIsDescribedInValuesAndInTheSchema(t *testing.T) {
	eachChart(t, func(t *testing.T, c *chart.Chart) {
		checkDescribed(t, rawValues(t, c), schemaOf(t, c), "")
	})
}

func checkDescribed(t *testing.T, node *yaml.Node, schema map[string]any, at string) {
	properties, _ := schema["properties"].(map[string]any)
	if node.Kind != yaml.MappingNode || properties == nil {
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := at + key.Value
		property, ok := properties[key.Value].(map[string]any)
		if !ok {
			t.Errorf("%s is in values.yaml and not in the schema", name)
			continue
		}
		comment := strings.TrimSpace(key.HeadComment)
		// Keys that Kubernetes defines, such as requests: {...}, need no comment.
		if comment == "" && value.Style&yaml.FlowStyle == 0 {
			t.Errorf("%s has no comment in values.yaml", name)
		}
		if comment != "" && !regexp.MustCompile(`[.:)]$`).MatchString(comment) {
			t.Errorf("%s: the comment is no whole sentence: %s", name, comment)
		}
		if value.Style&yaml.FlowStyle == 0 {
			checkDescribed(t, value, property, name+".")
		}
	}
}

// setByPaictl lists the values that paictl sets if needed. The defaults of a chart need not contain them.
var setByPaictl = []string{"global", "credentialsSecret", "credentialsChecksum"}

func TestSchemasAreStrict(t *testing.T) {
	eachChart(t, func(t *testing.T, c *chart.Chart) {
		schema := schemaOf(t, c)
		checkStrict(t, schema, "")
		top := schema["properties"].(map[string]any)
		require.Contains(t, top, "global")
		for name := range top {
			if c.Values[name] == nil && !slices.Contains(setByPaictl, name) {
				t.Errorf("%s is in the schema and has no default in values.yaml", name)
			}
		}
		if c.Metadata.Annotations[annotationPlacement] != "none" {
			for _, name := range []string{"nodeSelector", "affinity", "tolerations"} {
				require.Contains(t, top, name)
			}
		}
	})
}

// checkStrict reports objects that accept any key by oversight. A schema that lists properties must say whether other properties are allowed.
func checkStrict(t *testing.T, schema map[string]any, at string) {
	properties, _ := schema["properties"].(map[string]any)
	if properties != nil && schema["type"] == "object" {
		if _, ok := schema["additionalProperties"]; !ok {
			t.Errorf("%q takes unknown keys: additionalProperties is missing", at)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, ok := properties[name].(map[string]any)
		if !ok {
			continue
		}
		if description, _ := property["description"].(string); description == "" {
			t.Errorf("%s%s has no description in the schema", at, name)
		}
		checkStrict(t, property, at+name+".")
	}
	// If the entries of a list accept other keys, another program defines their format.
	if items, ok := schema["items"].(map[string]any); ok && items["additionalProperties"] == false {
		checkStrict(t, items, at+"items.")
	}
}

func TestUnknownValuesAndTheTagLatestAreRefused(t *testing.T) {
	eachChart(t, func(t *testing.T, c *chart.Chart) {
		plain := variants[0].values
		v := plain(t, c.Name())
		v["pourquoi"] = true
		_, err := render(t, c, v)
		require.ErrorContains(t, err, "pourquoi")
		if c.Values["image"] == nil {
			return
		}
		v = plain(t, c.Name())
		v["image"] = map[string]any{"tag": "latest"}
		_, err = render(t, c, v)
		require.ErrorContains(t, err, "tag")
	})
}

func TestTheSchemaKnowsThePoliciesOfTheScheduler(t *testing.T) {
	s := schemaOf(t, load(t, "scheduler"))
	var at any = s
	for _, key := range []string{"properties", "virtualClusters", "additionalProperties", "properties", "policy", "enum"} {
		at = at.(map[string]any)[key]
	}
	require.Len(t, at, len(cell.Policies))
	for i, name := range cell.PolicyNames() {
		require.Equal(t, name, at.([]any)[i])
	}
}
