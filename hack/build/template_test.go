package main

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// original returns the text of exec.go in the installed text/template.
func original(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("skipped: this machine has no go")
	}
	root, err := ask(t.Context(), "env", "GOROOT")
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "src/text/template/exec.go"))
	require.NoError(t, err)
	return string(text)
}

func TestNoMethodIsLookedUpByANameOfATemplate(t *testing.T) {
	t.Parallel()
	out, err := edit(original(t))
	require.NoError(t, err)
	_, err = parser.ParseFile(token.NewFileSet(), "exec.go", out, 0)
	require.NoError(t, err)
	for _, part := range strings.Split(out, ".MethodByName(")[1:] {
		assert.True(t, strings.HasPrefix(part, `"`), "the linker keeps all methods for: MethodByName(%.40s", part)
	}
	names := methods()
	assert.Len(t, slices.Compact(slices.Clone(names)), len(names), "a switch has no case twice")
}

func TestAnotherReleaseOfGoIsNotEditedBlindly(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "package template", call + call} {
		_, err := edit(text)
		require.ErrorContains(t, err, "this release of Go needs another edit in hack/build/template.go")
	}
}
