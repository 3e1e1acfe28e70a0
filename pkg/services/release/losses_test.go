package release

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openpai/paictl/pkg/hint"
)

func TestWhatObjectsLoseByAnotherDefinition(t *testing.T) {
	one := func(text string) *unstructured.Unstructured {
		parsed, err := parseObjects("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {versions: [" + text + "]}\n")
		require.NoError(t, err)
		return parsed[0]
	}
	v := func(schema string) *unstructured.Unstructured {
		return one("{name: v1, served: true, schema: {openAPIV3Schema: " + schema + "}}")
	}
	const spec = "{type: object, properties: {spec: {type: object, properties: {"
	for name, c := range map[string]struct {
		from, to *unstructured.Unstructured
		want     []string
	}{
		"nothing":                {v(spec + "a: {type: string}}}}}"), v(spec + "a: {type: integer}, b: {type: string}}}}}"), nil},
		"a field":                {v(spec + "a: {type: string}, b: {type: string}}}}}"), v(spec + "b: {type: string}}}}}"), []string{"field spec.a of version v1"}},
		"a field with all below": {v(spec + "a: {type: object, properties: {x: {type: string}}}}}}}"), v(spec + "}}}}"), []string{"field spec.a of version v1"}},
		"a field of a list":      {v(spec + "a: {type: array, items: {type: object, properties: {x: {type: string}, z: {}}}}}}}}"), v(spec + "a: {type: array, items: {type: object, properties: {x: {}}}}}}}}"), []string{"field spec.a[].z of version v1"}},
		"a field of a map":       {v(spec + "a: {additionalProperties: {properties: {x: {}}}}}}}}"), v(spec + "a: {additionalProperties: {properties: {}}}}}}}"), []string{"field spec.a.*.x of version v1"}},
		"a map":                  {v(spec + "a: {additionalProperties: {type: string}}}}}}"), v(spec + "a: {type: object}}}}}"), []string{"fields without a name in spec.a of version v1"}},
		"it becomes a map":       {v(spec + "a: {properties: {x: {}}}}}}}"), v(spec + "a: {additionalProperties: {type: string}}}}}}"), nil},
		"free fields":            {v("{type: object, x-kubernetes-preserve-unknown-fields: true}"), v("{type: object}"), []string{"fields without a name in the object of version v1"}},
		"all fields become free": {v(spec + "a: {}}}}}"), v("{type: object, x-kubernetes-preserve-unknown-fields: true}"), nil},
		"named fields of free ones": {
			v(spec + "a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {x: {type: object, properties: {w: {type: string}}}}}}}}}"),
			v(spec + "a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {x: {type: object}}}}}}}"), []string{"field spec.a.x.w of version v1"},
		},
		"a free field gets a name": {
			v(spec + "a: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}"),
			v(spec + "a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {x: {type: object}, w: {type: string}}}}}}}"), []string{"fields without a name in spec.a.x of version v1"},
		},
		"a list of free fields": {
			v(spec + "a: {type: array, items: {type: object, properties: {x: {type: string}}}}}}}}"),
			v(spec + "a: {type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: object}}}}}}"), nil,
		},
		"a map of anything empties objects": {
			v(spec + "a: {type: object, additionalProperties: {type: object, properties: {x: {type: string}}}}}}}}"),
			v(spec + "a: {type: object, additionalProperties: true}}}}}"), []string{"field spec.a.*.x of version v1"},
		},
		"a map of anything":         {v(spec + "a: {type: object, additionalProperties: {type: string}}}}}}"), v(spec + "a: {type: object, additionalProperties: true}}}}}"), nil},
		"what every object has":     {v("{type: object, properties: {apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}}}"), v("{type: object}"), nil},
		"what an object inside has": {v(spec + "a: {type: object, x-kubernetes-embedded-resource: true, properties: {kind: {type: string}, metadata: {type: object}}}}}}}"), v(spec + "a: {type: object, x-kubernetes-embedded-resource: true}}}}}"), nil},
		"it is no longer an object inside": {
			v(spec + "a: {type: object, x-kubernetes-embedded-resource: true}}}}}"), v(spec + "a: {type: object, properties: {kind: {type: string}}}}}}}"),
			[]string{"field spec.a.apiVersion of version v1", "field spec.a.metadata of version v1"},
		},
		"a version":                {one("{name: v1, served: true}, {name: v2, served: true}"), one("{name: v1, served: true}"), []string{"version v2"}},
		"a version that is served": {one("{name: v1, served: true}"), one("{name: v1, served: false}"), []string{"version v1, which would no longer be served"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, losses(c.from, c.to)) })
	}
	assert.Equal(t, "a, b, c, d, e and 2 others", few(strings.Fields("a b c d e f g")))
}

// colored returns a definition with the additional field color in version v1.
func colored(group string) string {
	return strings.Replace(gears(group, "v1"), "size: {type: integer}", "size: {type: integer}, color: {type: string}", 1)
}

func (w world) color(group, name string) string {
	w.Helper()
	one, err := w.gears(group, "v1").Get(w.Context(), name, metav1.GetOptions{})
	require.NoError(w, err)
	color, _, _ := unstructured.NestedString(one.Object, "spec", "color")
	return color
}

func TestAnUpgradeTakesNothingFromADefinitionUnlessItIsTold(t *testing.T) {
	for _, folder := range []string{"crds", "templates"} {
		t.Run(folder, func(t *testing.T) {
			w := newWorld(t)
			group := folder + ".loses.test.paictl.example"
			const rest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\ndata: {count: '%s'}\n"
			files := func(crd, count string) map[string]string {
				return map[string]string{folder + "/gear.yaml": crd, "templates/c.yaml": strings.Replace(rest, "%s", count, 1)}
			}
			w.apply(w.upgrade(files(colored(group), "1")))
			require.Equal(t, "red", w.write(group, "v1", "one"))

			back := w.upgrade(files(gears(group, "v1"), "2"))
			_, err := w.manager.Plan(t.Context(), back)
			require.ErrorContains(t, err, "customresourcedefinition gears."+group+" would lose field spec.color of version v1, with the content that objects have there")
			assert.Equal(t, "use the paictl, or the chart, that installed it; to remove it anyway: paictl service upgrade -n demo --downgrade", hint.Of(err))
			_, err = w.manager.Apply(t.Context(), back)
			require.ErrorContains(t, err, "would lose field spec.color")
			m, err := w.client.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "demo", metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, "1", m.Data["count"], "nothing was changed")
			assert.Equal(t, "red", w.color(group, "one"))

			back.Downgrade = true
			plan, err := w.manager.Plan(t.Context(), back)
			require.NoError(t, err)
			assert.Equal(t, []string{"CustomResourceDefinition gears." + group + ": field spec.color of version v1"}, plan.Loses)
			assert.Equal(t, "red", w.color(group, "one"), "a plan changes nothing")
			assert.Equal(t, Upgraded, w.apply(back).Action)
			assert.Empty(t, w.color(group, "one"), "the API no longer has it")
			plan, err = w.manager.Plan(t.Context(), back)
			require.NoError(t, err)
			assert.Equal(t, Plan{Action: Unchanged}, plan)
		})
	}
}

// After a rollback, the cluster contains the later definition, and the release contains the earlier chart.
func TestAStartLeavesALaterDefinition(t *testing.T) {
	w := newWorld(t)
	const group = "later.test.paictl.example"
	files := func(crd, count string) map[string]string {
		return map[string]string{"templates/gear.yaml": crd, "templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\ndata: {count: '" + count + "', word: {{ .Values.word | default \"none\" }}}\n"}
	}
	start := w.upgrade(files(gears(group, "v1"), "1"))
	start.Upgrade = false
	w.apply(start)
	out := w.apply(w.upgrade(files(strings.ReplaceAll(gears(group, "v1", "v2"), "size: {type: integer}}", "size: {type: integer}, color: {type: string}}"), "2")))
	require.Equal(t, "red", w.write(group, "v2", "one"))
	require.NoError(t, w.manager.Rollback(t.Context(), w.namespace, "demo", out.Previous))

	plan, err := w.manager.Plan(t.Context(), start)
	require.NoError(t, err)
	assert.Equal(t, Plan{Action: Unchanged}, plan)
	start.Values = map[string]any{"word": "other"}
	assert.Equal(t, Upgraded, w.apply(start).Action, "what else changes is sent")
	assert.Equal(t, []string{"v1", "v2"}, versionsOf(w.definition(group), true))
	assert.Equal(t, "red", w.color(group, "one"))
	start.Values = nil
	start.Upgrade = true
	assert.Equal(t, Upgraded, w.apply(start).Action, "an upgrade to the chart that the release has leaves it as well")
	assert.Equal(t, "red", w.color(group, "one"))

	start.Downgrade = true
	_, err = w.manager.Plan(t.Context(), start)
	require.ErrorContains(t, err, "no longer has version v2, in which the cluster stores objects")
}

// A stopped service leaves a definition, and an earlier chart of the service is started.
func TestAnInstallLeavesALaterDefinition(t *testing.T) {
	w := newWorld(t)
	const group = "stays.test.paictl.example"
	files := func(crd string) map[string]string {
		return map[string]string{"templates/gear.yaml": strings.Replace(crd, "metadata: {", "metadata: {annotations: {helm.sh/resource-policy: keep}, ", 1)}
	}
	w.apply(w.upgrade(files(colored(group))))
	require.Equal(t, "red", w.write(group, "v1", "one"))
	require.NoError(t, w.manager.Uninstall(t.Context(), w.namespace, "demo"))

	early := w.upgrade(files(gears(group, "v1")))
	early.Upgrade = false
	assert.Equal(t, Installed, w.apply(early).Action)
	assert.Equal(t, "red", w.color(group, "one"))

	mixed := w.upgrade(files(strings.ReplaceAll(gears(group, "v1"), "size:", "weight:")))
	mixed.Upgrade = false
	_, err := w.manager.Apply(t.Context(), mixed)
	require.ErrorContains(t, err, "would lose field spec.color of version v1, field spec.size of version v1")
	assert.Equal(t, "red", w.color(group, "one"))
}
