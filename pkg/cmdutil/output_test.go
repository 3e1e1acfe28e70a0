package cmdutil

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
)

// evil is a name that moves the cursor and adds a row.
const evil = "raw\x1b[2J\u009b5m\u202e\x7f\nforged\trow"

func TestNamesForgeNoRowsAndCommandNoTerminal(t *testing.T) {
	table := Table{Header: []string{"NAME", "X"}, Rows: [][]string{{evil, "1"}, {"b", evil}}}
	for format, want := range map[string]string{
		"table": "NAME                  X\nraw[2J5m forged row   1\nb                     raw[2J5m forged row\n",
		"name":  "raw[2J5m_forged_row\nb\n",
	} {
		var b bytes.Buffer
		require.NoError(t, (&Output{format: format}).Write(&b, nil, table))
		assert.Equal(t, want, b.String(), format)
	}
}

func TestJSONKeepsWhatItEscapes(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, (&Output{format: "json"}).Write(&b, map[string]string{"name": evil}, Table{}))
	assert.Contains(t, b.String(), `"raw\u001b[2J\u009b5m\u202e\u007f\nforged\trow"`)
	var got map[string]string
	require.NoError(t, json.Unmarshal(b.Bytes(), &got))
	assert.Equal(t, evil, got["name"])
	b.Reset()
	require.NoError(t, (&Output{format: "yaml"}).Write(&b, map[string]string{"name": evil}, Table{}))
	assert.NotContains(t, b.String(), "\x1b")
	assert.NotContains(t, b.String(), "\u009b")
}

func TestErrorsCommandNoTerminal(t *testing.T) {
	var b bytes.Buffer
	PrintError(&b, hint.Wrap(errors.New("there is no \x1b]0;x\arole"), "there are: \x1b[2Ja"))
	assert.Equal(t, "paictl: there is no ]0;xrole\n  -> there are: [2Ja\n", b.String())
}
