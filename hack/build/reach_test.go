package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// reach collects the methods that a template can call on values, and on the results of these methods.
type reach struct {
	seen    map[seen]bool
	methods map[string]string // a type that has the method, by its name
}

// seen is a type, with whether text/template can take the address of its values. If so, the values also have the methods of the pointer.
type seen struct {
	reflect.Type
	addressable bool
}

// add adds a type, and all types that it contains.
func (r *reach) add(t reflect.Type, addressable bool) {
	if r.seen[seen{t, addressable}] {
		return
	}
	r.seen[seen{t, addressable}] = true
	of := t
	if addressable && t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		of = reflect.PointerTo(t)
	}
	for i := range of.NumMethod() {
		m := of.Method(i)
		if n := m.Type.NumOut(); n == 0 || n > 2 || n == 2 && m.Type.Out(1) != reflect.TypeFor[error]() {
			continue // text/template rejects it
		}
		r.methods[m.Name] = of.String()
		r.add(m.Type.Out(0), false)
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		r.add(t.Elem(), true)
	case reflect.Array:
		r.add(t.Elem(), addressable)
	case reflect.Map:
		r.add(t.Key(), false)
		r.add(t.Elem(), false)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				r.add(f.Type, addressable)
			}
		}
	case reflect.Func:
		for i := range t.NumOut() {
			r.add(t.Out(i), false)
		}
	}
}

// look adds the types of a value and of all values that it contains. The type alone isn't enough if it contains "any".
func (r *reach) look(v reflect.Value) {
	if !v.IsValid() {
		return
	}
	r.add(v.Type(), false)
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		r.look(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			r.look(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			r.look(v.MapIndex(key))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				r.look(v.Field(i))
			}
		}
	}
}

// ofTemplates returns the methods that the templates of a chart can reach. These are the methods of Helm's objects, and the methods of the results
// of all functions.
func ofTemplates(t *testing.T) map[string]string {
	t.Helper()
	r := &reach{map[seen]bool{}, map[string]string{}}
	c, err := loader.Load("testdata/chart")
	require.NoError(t, err)
	c.Templates = []*chart.File{{Name: "templates/look.yaml", Data: []byte(`{{ call .Release.look . }}
{{ call .Release.look (fromToml "a = 1979-05-27T07:32:00Z\nb = 1979-05-27\nc = 07:32:00\nd = 1979-05-27T07:32:00\ne = [1, 2.5]\n[[f]]\ng = true") }}
{{ call .Release.look (fromYaml "a: 2001-12-14t21:59:43.10-05:00\nb: [1, 2.5, null, true, {c: d}]") }}{{ call .Release.look (fromYamlArray "[1, a]") }}
{{ call .Release.look (fromJson "{\"a\": [1, \"b\", null, {}]}") }}{{ call .Release.look (fromJsonArray "[1, []]") }}{{ call .Release.look (lookup "v1" "Pod" "" "") }}`)}}
	_, err = engine.Render(c, chartutil.Values{
		"Values": chartutil.Values(c.Values), "Capabilities": chartutil.DefaultCapabilities,
		"Release": map[string]any{"look": func(v any) string { r.look(reflect.ValueOf(v)); return "" }},
	})
	require.NoError(t, err)
	for _, f := range sprig.TxtFuncMap() {
		r.add(reflect.TypeOf(f), false)
	}
	require.Contains(t, r.methods, "AsSecrets", "the template saw .Files")
	return r.methods
}

// If a chart can call a method that isn't kept, only the released paictl fails. If Helm or sprig adds such a method, add it to methods and to
// testdata/chart.
func TestMethodsInReachOfChartsAreKept(t *testing.T) {
	t.Parallel()
	template, err := os.ReadFile("testdata/chart/templates/reach.yaml")
	require.NoError(t, err)
	kept := methods()
	for name, of := range ofTemplates(t) {
		assert.Contains(t, kept, name, "%s has it", of)
		if name != "Encode" && name != "Error" { // a template has no io.Writer, and an error ends it
			assert.Regexp(t, `\.`+name+`\b`, string(template), "testdata/chart doesn't call it; %s has it", of)
		}
	}
}

// Helm must be able to render the chart. Otherwise the comparison of the programs would compare only errors.
func TestTheChartRenders(t *testing.T) {
	t.Parallel()
	c, err := loader.Load("testdata/chart")
	require.NoError(t, err)
	values, err := chartutil.ToRenderValues(c, nil, chartutil.ReleaseOptions{Name: "reach", Namespace: "default", Revision: 1, IsInstall: true}, chartutil.DefaultCapabilities)
	require.NoError(t, err)
	files, err := engine.Render(c, values)
	require.NoError(t, err)
	var object struct{ Data map[string]string }
	require.NoError(t, yaml.Unmarshal([]byte(files["reach/templates/reach.yaml"]), &object))
	for _, line := range []string{"kubernetes: v1.", "version: 1 2 3 rc.1 build", "json: 3.4.5\n", "duration: 768h0m0s"} {
		assert.Contains(t, object.Data["all"], line)
	}
}

// Methods that no template can call would only make paictl larger.
func TestNoOtherMethodsAreKept(t *testing.T) {
	t.Parallel()
	in := ofTemplates(t)
	for _, name := range methods() {
		assert.Contains(t, in, name)
	}
}

// If the result of a function has the type "any", a person must check whether its values can have methods. The values of these functions don't have
// any.
func TestFunctionsWithUnknownResultsAreKnown(t *testing.T) {
	t.Parallel()
	// These functions return an argument, a part of an argument, or maps and lists of decoded JSON.
	known := strings.Fields("append chunk coalesce compact concat deepCopy default dict dig first fromJson get initial last list merge mergeOverwrite mustAppend mustChunk mustCompact mustDeepCopy " +
		"mustFirst mustFromJson mustInitial mustLast mustMerge mustMergeOverwrite mustPrepend mustPush mustRest mustReverse mustSlice mustUniq mustWithout omit pick pluck prepend push rest reverse set slice " +
		"ternary tuple uniq unset urlParse values without")
	var unknown []string
	for name, f := range sprig.TxtFuncMap() {
		if t := reflect.TypeOf(f); t.NumOut() > 0 && strings.Contains(t.Out(0).String(), "interface {}") {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	assert.Equal(t, known, unknown)
	// ofTemplates inspects the results of the functions that decode data. The other functions return strings or an argument.
	assert.Equal(t, strings.Fields("fromJson fromJsonArray fromToml fromYaml fromYamlArray include lookup required toJson toToml toYaml toYamlPretty tpl"), ofHelm(t))
}

// ofHelm returns the functions that Helm adds to the functions of sprig.
func ofHelm(t *testing.T) []string {
	t.Helper()
	dir, err := ask(t.Context(), "list", "-m", "-f", "{{.Dir}}", "helm.sh/helm/v3")
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, "pkg/engine/funcs.go"), nil, 0)
	require.NoError(t, err)
	names := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.BasicLit); ok {
				name, err := strconv.Unquote(key.Value)
				require.NoError(t, err)
				names[name] = true
			}
		}
		return true
	})
	return slices.Sorted(maps.Keys(names))
}
