package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
)

// folder writes the configuration in the script cells.txtar into a new folder, and returns the folder.
func folder(t *testing.T) string {
	t.Helper()
	script, err := txtar.ParseFile("testdata/script/cells.txtar")
	require.NoError(t, err)
	dir := t.TempDir()
	for _, f := range script.Files {
		if name, ok := strings.CutPrefix(f.Name, "c/"); ok {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), f.Data, 0o600))
		}
	}
	return dir
}

func TestCellsAreGivenUpAndComeBackWithTheMachineInItsPlace(t *testing.T) {
	dir := folder(t)
	former, err := os.ReadFile(filepath.Join(dir, config.ServicesFile))
	require.NoError(t, err)

	gives := &cells{takeFrom: "vision"}
	e, err := config.RemoveMachines(dir, []string{"b"}, gives.rules())
	require.NoError(t, err)
	require.NoError(t, e.Write())
	now, err := os.ReadFile(filepath.Join(dir, config.ServicesFile))
	require.NoError(t, err)
	assert.Equal(t, strings.Replace(string(former), "cellNumber: 2", "cellNumber: 1", 1), string(now), "everything else stays byte for byte")
	_, _, err = config.LoadValid(dir, gives.rules().Check)
	require.NoError(t, err)

	added := layout.Machine{Hostname: "f", HostIP: "10.0.0.9", SKU: "cpu", Roles: []string{layout.RoleWorker}}
	back := &cells{former: former}
	e, err = config.AddMachines(dir, []layout.Machine{added}, nil, back.rules())
	require.NoError(t, err)
	require.NoError(t, e.Write())
	assert.Equal(t, []string{"vision: 2 x cpu-NODE, formerly 1 x cpu-NODE"}, back.changes)
	now, err = os.ReadFile(filepath.Join(dir, config.ServicesFile))
	require.NoError(t, err)
	assert.Equal(t, string(former), string(now))

	require.NoError(t, e.Undo())
	_, _, err = config.LoadValid(dir, gives.rules().Check)
	require.NoError(t, err)
	now, err = os.ReadFile(filepath.Join(dir, config.ServicesFile))
	require.NoError(t, err)
	assert.Contains(t, string(now), "cellNumber: 1}]}\n    vision: {virtualCells: [{cellType: cpu-NODE, cellNumber: 1}]}")
}

func TestACommandWithoutTheFlagNamesTheFileInstead(t *testing.T) {
	dir := folder(t)
	for asks, want := range map[bool]string{
		true:  "say which one gives them up: --take-from nlp, or --take-from vision",
		false: "write fewer cells of the type cpu-NODE for one of them into services-configuration.yaml, and run the command again",
	} {
		c := &cells{asks: asks}
		_, err := config.RemoveMachines(dir, []string{"b"}, c.rules())
		require.ErrorContains(t, err, "nlp (1 x cpu-NODE) and vision (2 x cpu-NODE) own them")
		assert.Equal(t, want, hint.Of(err))
	}
}
