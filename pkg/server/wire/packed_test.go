package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAListWrittenOneByOneIsTheSame(t *testing.T) {
	for _, values := range [][]any{{}, {"<a>"}, {1, map[string]string{"a": "é"}, nil}, {strings.Repeat("x", packFrom), "y"}} {
		whole, err := json.Marshal(values)
		require.NoError(t, err)
		want, err := Pack(values)
		require.NoError(t, err)
		got, err := PackList("", "", slices.Values(values))
		require.NoError(t, err)
		var out bytes.Buffer
		_, err = got.WriteTo(&out)
		require.NoError(t, err)
		assert.Equal(t, string(whole), out.String())
		assert.Equal(t, want.tag, got.tag)
		assert.Equal(t, want.length, got.length)
		assert.Equal(t, want.zipped, got.zipped)
	}
	_, err := PackList("", "", slices.Values([]any{func() {}}))
	require.Error(t, err)
}
