package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

var update = flag.Bool("update", false, "rewrite the published schemas")

// This test covers the schemas that contain the sections of services. pkg/config tests the other schemas.
func TestPublishedSchemasOfSectionsAreCurrent(t *testing.T) {
	for _, name := range []string{config.ServicesFile, config.QuickStartSchema} {
		b, err := config.Schema(name, catalogue.Schemas())
		require.NoError(t, err)
		file := filepath.Join("..", "..", "..", "docs", "schema", config.SchemaFile(name))
		if *update {
			require.NoError(t, os.WriteFile(file, b, 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		if !bytes.Equal(want, b) { // assert.Equal would fill pages
			t.Errorf("%s is not current; run the test with -update", file)
		}
	}
}

func TestSchemasOfSectionsAcceptAndRefuse(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"settings of a service":       {config.ServicesFile, "prometheus: {enabled: true, placement: [master]}", ""},
		"a section without settings":  {config.ServicesFile, "prometheus: {}", ""},
		"a service of one's own":      {config.ServicesFile, "mine: {chart: ./mine, values: {a: 1}}", ""},
		"an unknown key":              {config.ServicesFile, "prometheus: {enabeld: true}", "enabeld"},
		"a wrong type":                {config.ServicesFile, "prometheus: {enabled: maybe}", "enabled"},
		"an unknown key, quick-start": {config.QuickStartSchema, "machines: [10.0.0.1]\nservices: {prometheus: {enabeld: true}}", "enabeld"},
		"settings, quick-start":       {config.QuickStartSchema, "machines: [10.0.0.1]\nservices: {prometheus: {enabled: false}, mine: {chart: x}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := config.Schema(c.file, catalogue.Schemas())
			require.NoError(t, err)
			compiler := jsonschema.NewCompiler()
			schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
			require.NoError(t, err)
			require.NoError(t, compiler.AddResource("file:///schema.json", schema))
			compiled, err := compiler.Compile("file:///schema.json")
			require.NoError(t, err)
			var v any
			require.NoError(t, yaml.Unmarshal([]byte(c.text), &v))
			err = compiled.Validate(v)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}
