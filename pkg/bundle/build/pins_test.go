package build

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "refresh modules.txtar from the modules in bundle/")

func TestTheEmbeddedModulesAreThoseOfTheRepository(t *testing.T) {
	var want txtar.Archive
	for _, m := range Default().Modules {
		if m.Own != nil {
			continue // it stands in paictl's own source
		}
		for _, name := range []string{"go.mod", "go.sum"} {
			data, err := os.ReadFile(filepath.Join("..", "..", "..", "bundle", m.Name, name))
			require.NoError(t, err)
			want.Files = append(want.Files, txtar.File{Name: m.Name + "/" + name, Data: data})
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("modules.txtar", txtar.Format(&want), 0o644))
		return
	}
	assert.Equal(t, string(txtar.Format(&want)), string(pinnedModules),
		"run: go test ./pkg/bundle/build -run EmbeddedModules -update")
}
