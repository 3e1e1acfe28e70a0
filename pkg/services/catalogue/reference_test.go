package catalogue

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
)

func TestTheReferenceDocumentsEverySetting(t *testing.T) {
	b, err := reference(testCharts())
	require.NoError(t, err)
	golden(t, "reference.yaml", b)
}

// uncommented converts the reference to settings by removing "# ".
func uncommented(t *testing.T, reference []byte) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(string(reference)) {
		require.True(t, strings.HasPrefix(line, "#") || line == "\n", line)
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			line = rest
		}
		out.WriteString(line)
	}
	return out.String()
}

func TestTheReferenceWithoutCommentsIsAConfigurationOfDefaults(t *testing.T) {
	for name, files := range map[string]fs.FS{"of the test charts": testCharts(), "of paictl's own charts": nil} {
		t.Run(name, func(t *testing.T) {
			b, err := reference(files)
			require.NoError(t, err)
			if files == nil {
				assert.Equal(t, Reference(), b)
			}
			cfg := parse(t, uncommented(t, b))
			c, findings, err := Load(t.Context(), cfg, Options{Charts: files})
			require.NoError(t, err)
			assert.Empty(t, lines(findings.Errors()))
			plainly, _, err := Load(t.Context(), parse(t, ""), Options{Charts: files})
			require.NoError(t, err)
			if s := plainly.Get(storageService); s != nil {
				assert.Equal(t, s.Values["local"].(map[string]any)["serviceVolumes"], c.Get(storageService).Values["local"].(map[string]any)["serviceVolumes"])
			}
			for _, want := range plainly.Services() {
				got := c.Get(want.Name)
				if want.Name != SchedulerService { // it is off only because these machines have no GPUs
					assert.Equal(t, want.Enabled, got.Enabled, want.Name)
				}
				assert.Equal(t, want.Placement, got.Placement, want.Name)
				assert.Equal(t, want.Values[keyTolerations], got.Values[keyTolerations], "%s: an empty list keeps what paictl computes", want.Name)
				section := asJSON(t, cfg.Services.Sections[want.Name])
				for _, key := range []string{keyEnabled, keyPlacement} {
					delete(section, key)
				}
				defaults := asJSON(t, want.Chart.Values)
				for _, key := range []string{keyGlobal, keyCredentialsRevision} {
					delete(defaults, key)
				}
				assert.Equal(t, defaults, section, want.Name)
			}
		})
	}
}

func asJSON(t *testing.T, v any) map[string]any {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	out := map[string]any{}
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

func TestASectionsSchemaIsForEditors(t *testing.T) {
	all, err := schemas(testCharts())
	require.NoError(t, err)
	assert.Len(t, all, 4)
	golden(t, "metrics.schema.json", append(all["metrics"], '\n'))
	for text, valid := range map[string]bool{
		"metrics: {}": true,
		"metrics: {enabled: false, placement: [worker]}": true,
		"metrics: {enabled: maybe}":                      false,
		"metrics: {image: {tag: v1}}":                    true,
		"metrics: {global: {}}":                          false,
		"metrics: {receivers: [{token: a}]}":             false,
		"metrics: {receivers: [{name: a, token: a b}]}":  false,
	} {
		var sections map[string]any
		_, findings := strictyaml.Decode("x", []byte(text), &sections)
		require.Empty(t, findings)
		s := compileWithin(t, all["metrics"])
		assert.Equal(t, valid, s.Validate(map[string]any{"metrics": sections["metrics"]}) == nil, text)
	}
	assert.NotNil(t, Schemas())
}

// compileWithin compiles the schema of a section as a part of a larger schema, like the schema of services-configuration.yaml.
func compileWithin(t *testing.T, section []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(`{"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"metrics": ` + string(section) + `}}`))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("mem:///all.json", doc))
	s, err := c.Compile("mem:///all.json")
	require.NoError(t, err)
	return s
}

func TestTheReferenceIsPartOfAServicesFile(t *testing.T) {
	b, err := reference(testCharts())
	require.NoError(t, err)
	cfg, err := parseFiles(map[string]string{config.LayoutFile: testLayout, config.RolesFile: testRoles, config.ServicesFile: testServices + string(b)})
	require.NoError(t, err)
	assert.Empty(t, cfg.Services.Sections)
}
