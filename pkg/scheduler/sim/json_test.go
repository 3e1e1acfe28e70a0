package sim

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// JSON from PHP (escaped slashes), Python (surrogates) and other languages must keep its meaning.
func TestJSONIsReadAsYAML(t *testing.T) {
	for _, text := range []string{
		`["default\/p", "p\ud83d\ude00q", "\\/", "\\ud83d\\ude00", "a\\\\\/b", "\u00e4\n\"x\"", "\ud83d\ude00\ud83d\ude00"]`,
		"[\"p\x7f\"]", "[]", " [\n\"a\",\n\"b\"]\n",
	} {
		var want, got []string
		require.NoError(t, json.Unmarshal([]byte(text), &want))
		require.NoError(t, yaml.Unmarshal(yamlOfJSON([]byte(text)), &got), text)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"", "[", `- "a\/b"`, "[a, 'b\\/c']", `["\ud83d"`} {
		assert.Equal(t, text, string(yamlOfJSON([]byte(text))), "it isn't JSON")
	}
}
