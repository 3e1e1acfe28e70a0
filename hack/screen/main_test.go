package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAScreenIsDrawnWithItsColours(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, draw(strings.NewReader("a\x1b[1mb\x1b[38;2;255;138;76m✗ <x>\x1b[0m\n\x1b[48;5;16m  \x1b[7mr\x1b[m日\x1b]0;title\x07\n"), &out))
	svg := out.String()
	for _, want := range []string{
		`fill="#d8d8d8">a</text>`, `font-weight="bold">b</text>`, `fill="#ff8a4c" font-weight="bold">✗ &lt;x&gt;</text>`,
		`fill="#000000"`, `>日</text>`,
	} {
		assert.Contains(t, svg, want)
	}
	assert.NotContains(t, svg, "title")
	assert.NotContains(t, svg, "\x1b")
}
