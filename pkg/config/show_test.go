package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

func TestEveryValueNamesItsOrigin(t *testing.T) {
	c := valid(t, folder(t, goodFiles()))
	values, err := c.Values()
	require.NoError(t, err)
	got := map[string]Value{}
	for _, v := range values {
		got[v.Field] = v
	}
	assert.Equal(t, Value{LayoutFile, "machine-list[1].hostip", "10.0.0.2", "layout.yaml:8"}, got["machine-list[1].hostip"])
	assert.Equal(t, Value{KubernetesFile, "kubernetes.load-balance-ip", "10.0.0.1", "default"}, got["kubernetes.load-balance-ip"])
	assert.Equal(t, Value{ServicesFile, "rest-server.server-port", 9186, "services-configuration.yaml:3"}, got["rest-server.server-port"])
	assert.Equal(t, "********", got["ssh.password"].Value)
	b, err := c.Annotated()
	require.NoError(t, err)
	assert.Contains(t, string(b), "hostip: 10.0.0.2 # layout.yaml:8\n")
	assert.Contains(t, string(b), "api-servers-port: 6443 # default\n")
	assert.Contains(t, string(b), "password: '********' # layout.yaml:3\n")
}

func TestSecretsOfServicesAreMasked(t *testing.T) {
	files := goodFiles()
	files[ServicesFile] = "cluster: {docker-registry: {username: u, password: hidden1}}\n" +
		"rest-server: {default-pai-admin-password: hidden2, jwt-secret: hidden3, list: [{token: hidden4}]}\n"
	c := valid(t, folder(t, files))
	b, err := c.Annotated()
	require.NoError(t, err)
	assert.NotContains(t, string(b), "hidden")
	values, err := c.Values()
	require.NoError(t, err)
	j, err := json.Marshal(values)
	require.NoError(t, err)
	assert.NotContains(t, string(j), "hidden")
	assert.Equal(t, "hidden1", c.Services.Cluster.DockerRegistry.Password.Reveal(), "the configuration itself keeps it")
}

func TestPathsThatAreSecretAreMaskedWithAllBelow(t *testing.T) {
	files := goodFiles()
	files[ServicesFile] = "grafana: {admin: hidden1, theme: dark}\nown: {secretValues: {a: {b: [hidden2, {c: 77777}]}, empty: ''}}\nlist: [hidden3, shown]\n"
	c := valid(t, folder(t, files))
	secrets := []strictyaml.Path{{"grafana", "admin"}, {"own", "secretValues"}, {"list", 0}, {"absent", "x"}, {"list", "x"}, {"grafana", "theme", "x"}}
	b, err := c.Annotated(secrets...)
	require.NoError(t, err)
	for _, hidden := range []string{"hidden", "77777"} {
		assert.NotContains(t, string(b), hidden)
	}
	assert.Contains(t, string(b), "- shown")
	assert.Contains(t, string(b), `empty: ""`)
	values, err := c.Values(secrets...)
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprint(values), "hidden")
	assert.Equal(t, "hidden1", c.Services.Sections["grafana"].(map[string]any)["admin"], "the configuration itself keeps it")
}

// A test in pkg/cmd/config covers the published schemas of files with sections of services, because only that package imports the charts.
func TestPublishedSchemasAreCurrent(t *testing.T) {
	for _, name := range []string{LayoutFile, KubernetesFile, RolesFile} {
		b, err := Schema(name, nil)
		require.NoError(t, err)
		goldenAt(t, filepath.Join("..", "..", "docs", "schema", SchemaFile(name)), b)
	}
}

func TestSchemasHoldThoseOfTheServices(t *testing.T) {
	sections := map[string][]byte{"prometheus": []byte(`{"$schema":"x","type":"object","additionalProperties":false,"properties":{"b":{"type":"integer"},"a":{"writeOnly":true}}}`)}
	for name, path := range map[string]string{ServicesFile: "properties", QuickStartSchema: "properties.services.properties"} {
		b, err := Schema(name, sections)
		require.NoError(t, err)
		var s map[string]any
		require.NoError(t, json.Unmarshal(b, &s))
		for step := range strings.SplitSeq(path, ".") {
			s = s[step].(map[string]any)
		}
		got, err := json.Marshal(s["prometheus"])
		require.NoError(t, err)
		assert.JSONEq(t, `{"additionalProperties":false,"properties":{"a":{"writeOnly":true},"b":{"type":"integer"}},"type":"object"}`, string(got))
	}
	_, err := Schema(ServicesFile, map[string][]byte{"prometheus": []byte("{")})
	require.ErrorContains(t, err, "read the schema of the section prometheus")
	b, err := Schema(LayoutFile, sections)
	require.NoError(t, err)
	assert.NotContains(t, string(b), "prometheus")
}

func TestEveryFieldHasADescription(t *testing.T) {
	for _, name := range SchemaNames() {
		b, err := Schema(name, nil)
		require.NoError(t, err)
		var s map[string]any
		require.NoError(t, json.Unmarshal(b, &s))
		undocumented(t, name, s)
	}
}

func undocumented(t *testing.T, p string, s map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	for k, v := range properties {
		child := v.(map[string]any)
		assert.NotEmpty(t, child["description"], "%s.%s", p, k)
		undocumented(t, p+"."+k, child)
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if child, ok := s[key].(map[string]any); ok {
			undocumented(t, p+"."+key, child)
		}
	}
	one, _ := s["oneOf"].([]any)
	for _, o := range one {
		undocumented(t, p, o.(map[string]any))
	}
}

// Users copy the examples, so each example must generate a configuration. All findings must be explained by the generation itself.
func TestExamplesGenerateOffline(t *testing.T) {
	examples, err := filepath.Glob("../../examples/quick-start*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(examples), 6)
	for _, file := range examples {
		t.Run(filepath.Base(file), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "c")
			g, err := Generate(t.Context(), Generation{QuickStart: file, OutDir: out, Offline: true})
			require.NoError(t, err)
			for _, w := range g.Warnings {
				assert.Contains(t, []string{"quick-start/no-file"}, w.Rule, w.String())
			}
			valid(t, out)
		})
	}
}

func TestTheExampleShowsEveryField(t *testing.T) {
	b, err := os.ReadFile("../../examples/quick-start.yaml")
	require.NoError(t, err)
	for field := range quickStartDocs() {
		key := field[strings.LastIndex(field, ".")+1:]
		if strings.HasPrefix(field, "machines[].ssh-") {
			continue // the same as at the top
		}
		assert.Contains(t, string(b), key+":", field)
	}
}
