package openapi_test

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/openapi"
	"github.com/openpai/paictl/pkg/server/pages"
	v2 "github.com/openpai/paictl/pkg/server/v2"
	v3 "github.com/openpai/paictl/pkg/server/v3"
)

var update = flag.Bool("update", false, "write docs/rest-api.md")

func routes(t *testing.T) []server.Route {
	t.Helper()
	all := slices.Concat(v2.Routes("test"), v3.Routes("test"), pages.Routes(nil))
	own, err := openapi.Route("test", all)
	require.NoError(t, err)
	return append(all, own)
}

const page = "../../../docs/rest-api.md"

func TestThePageIsMadeFromTheRoutes(t *testing.T) {
	want, err := openapi.Page("test", routes(t))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
	}
	have, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, want, string(have), "make it again: go test ./pkg/server/openapi -update")
}

func TestTheDocumentIsWhatItSays(t *testing.T) {
	data, err := openapi.Document("test", routes(t))
	require.NoError(t, err)
	again, err := openapi.Document("test", routes(t))
	require.NoError(t, err)
	assert.JSONEq(t, string(data), string(again))
	d := struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Summary     string
			Security    []any
			Parameters  []struct{ Name, In string }
			RequestBody *struct{ Content map[string]any }
		}
		Components struct{ Schemas map[string]any }
	}{}
	require.NoError(t, json.Unmarshal(data, &d))
	assert.Equal(t, "3.1.0", d.OpenAPI)
	ids := map[string]bool{}
	for path, of := range d.Paths {
		for method, o := range of {
			assert.False(t, ids[o.OperationID], "%s twice", o.OperationID)
			ids[o.OperationID] = true
			assert.NotEmpty(t, o.Summary, "%s %s", method, path)
			for _, p := range o.Parameters {
				assert.Equal(t, p.In == "path", strings.Contains(path, "{"+p.Name+"}"), "%s %s", path, p.Name)
			}
		}
	}
	submit := d.Paths["/api/v3/jobs"]["post"]
	require.NotNil(t, submit.RequestBody)
	assert.Contains(t, submit.RequestBody.Content, "application/json")
	assert.NotEmpty(t, submit.Security)
	assert.Empty(t, d.Paths["/api/v3/version"]["get"].Security)
	assert.Contains(t, d.Paths["/api/v2/jobs"]["post"].RequestBody.Content, "text/yaml")

	// Each schema is valid, and each reference refers to an existing schema.
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("openapi.json", doc))
	for name := range d.Components.Schemas {
		_, err := c.Compile("openapi.json#/components/schemas/" + name)
		assert.NoError(t, err, name)
	}
}
