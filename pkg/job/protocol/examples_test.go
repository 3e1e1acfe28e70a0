package protocol

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheExamplesAreValidAndNamedAfterTheirFiles(t *testing.T) {
	files, err := filepath.Glob("../../../examples/jobs/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			j, findings := Parse(file, data)
			require.Empty(t, findings, "%v", findings)
			assert.Equal(t, strings.TrimSuffix(filepath.Base(file), ".yaml"), j.Name)
			assert.True(t, strings.HasPrefix(string(data), "# "), "it begins with what it shows")
			assert.Contains(t, string(data), "paictl job submit", "it says how to submit it")
		})
	}
}
