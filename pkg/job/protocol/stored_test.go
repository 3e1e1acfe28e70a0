package protocol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATextOfAnotherProgramIsMaskedThoughItIsNoJobHere(t *testing.T) {
	out, err := MaskStored([]byte("type: job # SECRET\n\"secrets\": &s {a: SECRET}\nnew: field\nagain: *s\nprerequisites: [{auth: {password: SECRET, username: <% $secrets.a %>}}]\n"))
	require.NoError(t, err)
	assert.NotContains(t, string(out), "SECRET")
	assert.Contains(t, string(out), "new: field")
	assert.Contains(t, string(out), "<% $secrets.a %>")
	for name, text := range map[string]string{
		"no YAML": "{SECRET", "no map": "SECRET", "a list": "[SECRET]", "nothing": "", "two documents": "a: SECRET\n---\nb: SECRET\n",
		"too long": "a: " + strings.Repeat("SECRET", 40<<10), "aliases without end": "a: &a [SECRET, *a]\n",
	} {
		out, err := MaskStored([]byte(text))
		require.Error(t, err, name)
		assert.NotContains(t, err.Error(), "SECRET", name)
		assert.Empty(t, out, name)
	}
}
