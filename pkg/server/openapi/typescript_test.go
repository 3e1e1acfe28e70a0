package openapi_test

import (
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/openapi"
)

const types = "../../portal/web/src/types.ts"

func TestTheTypesOfThePortalAreMadeFromTheRoutes(t *testing.T) {
	want, err := openapi.TypeScript("test", "/api/v3/", routes(t))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(types, []byte(want), 0o644))
	}
	have, err := os.ReadFile(types)
	require.NoError(t, err)
	assert.Equal(t, want, string(have), "make them again: go test ./pkg/server/openapi -update && make portal")
}

func TestTypesSayWhatIsOptionalAndWhatMayBeNull(t *testing.T) {
	type leaf struct {
		Name string `json:"name"`
	}
	type tree struct {
		Leaves []leaf          `json:"leaves"`
		Best   *leaf           `json:"best,omitempty"`
		By     map[string]leaf `json:"by,omitempty"`
		Odd    bool            `json:"odd-name,omitempty"`
	}
	type question struct {
		Tree string   `path:"tree"`
		Kind []string `query:"kind"`
		Body leaf     `body:"json"`
	}
	r := server.Route{Method: "PUT", Path: "/api/v3/trees/{tree}", Rule: "open", Summary: "Replaces a tree", In: reflect.TypeFor[question](), Out: reflect.TypeFor[tree]()}
	other := server.Route{Method: "GET", Path: "/api/v2/trees", Rule: "open", Summary: "Lists trees"}
	have, err := openapi.TypeScript("test", "/api/v3/", []server.Route{r, other})
	require.NoError(t, err)
	assert.Contains(t, have, "  /** Replaces a tree. */\n  \"PUT /api/v3/trees/{tree}\": { path: { tree: string }; query: { kind?: string[] }; body: OpenapiTestLeaf; answer: OpenapiTestTree };\n")
	assert.Contains(t, have, "export interface OpenapiTestTree {\n  best?: OpenapiTestLeaf;\n  by?: Record<string, OpenapiTestLeaf>;\n  leaves: OpenapiTestLeaf[] | null;\n  \"odd-name\"?: boolean;\n}\n")
	assert.NotContains(t, have, "/api/v2/")
}
