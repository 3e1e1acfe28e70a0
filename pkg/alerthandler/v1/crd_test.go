package v1

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The definition contains the fields of the types with their kinds and values. Fields that are always written are required.
func TestTheDefinitionHasTheFieldsOfTheTypes(t *testing.T) {
	crd := apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict(CRD, &crd))
	require.Equal(t, GroupVersion.Group, crd.Spec.Group)
	require.Equal(t, Actions.Resource, crd.Spec.Names.Plural)
	require.Equal(t, Kind, crd.Spec.Names.Kind)
	require.Len(t, crd.Spec.Versions, 1)
	require.Equal(t, GroupVersion.Version, crd.Spec.Versions[0].Name)
	compare(t, Kind, reflect.TypeFor[Action](), crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
}

// compare checks that a schema describes a type.
func compare(t *testing.T, at string, typ reflect.Type, schema *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	enums := map[reflect.Type][]string{
		reflect.TypeFor[Operation](): texts(Operations()), reflect.TypeFor[Phase](): texts(Phases()), reflect.TypeFor[RequesterKind](): texts([]RequesterKind{ByPerson, ByOperator, ByPolicy}),
	}
	var values []string
	for _, v := range schema.Enum {
		values = append(values, strings.Trim(string(v.Raw), `"`))
	}
	require.ElementsMatch(t, enums[typ], values, "%s: values", at)
	kind, format := "", ""
	switch typ.Kind() {
	case reflect.Pointer:
		compare(t, at, typ.Elem(), schema)
		return
	case reflect.String:
		kind = "string"
	case reflect.Bool:
		kind = "boolean"
	case reflect.Int32, reflect.Int64:
		kind, format = "integer", typ.Kind().String()
	case reflect.Slice:
		kind = "array"
		require.NotNil(t, schema.Items, at)
		compare(t, at+"[]", typ.Elem(), schema.Items.Schema)
	case reflect.Struct:
		kind = "object"
		if typ == reflect.TypeFor[metav1.Time]() {
			kind, format = "string", "date-time"
		} else if typ != reflect.TypeFor[metav1.ObjectMeta]() {
			compareFields(t, at, typ, schema)
		}
	default:
		t.Fatalf("%s has the type %s, which this test doesn't know", at, typ)
	}
	require.Equal(t, kind, schema.Type, "%s: type", at)
	require.Equal(t, format, schema.Format, "%s: format", at)
}

func compareFields(t *testing.T, at string, typ reflect.Type, schema *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	var names, required []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			names = append(names, "apiVersion", "kind")
			continue
		}
		require.NotEmpty(t, name, "%s.%s has no name in JSON", at, f.Name)
		names = append(names, name)
		if !strings.Contains(options, "omitempty") {
			required = append(required, name)
		}
		if below, ok := schema.Properties[name]; ok {
			compare(t, at+"."+name, f.Type, &below)
		}
	}
	require.ElementsMatch(t, names, slices.Collect(maps.Keys(schema.Properties)), "%s: fields", at)
	require.ElementsMatch(t, required, schema.Required, "%s: required fields", at)
}

func texts[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}
