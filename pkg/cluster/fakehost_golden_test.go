package cluster

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// golden compares got with a file in testdata/golden, or writes the file if -update is set.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "make it with: go test ./pkg/cluster -run %s -update", t.Name())
	assert.Empty(t, engine.Unified(name, []byte(got), want), "what is there (-) against what is expected (+); -update accepts it")
}
