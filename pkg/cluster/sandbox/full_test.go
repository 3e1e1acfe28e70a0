package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// full runs full.sh with a fake systemd-nspawn, whose runs end with the exit codes in codes. It returns the number of runs and the exit code of
// full.sh.
// code of full.sh.
func full(t *testing.T, codes string) (runs, code int) {
	t.Helper()
	dir := t.TempDir()
	text, err := script("full.sh")
	require.NoError(t, err)
	for name, content := range map[string]string{
		"full.sh":        string(text),
		"mount":          "#!/bin/sh\n",
		"mkdir":          "#!/bin/sh\n",
		"sleep":          "#!/bin/sh\n",
		"systemd-nspawn": "#!/bin/sh\necho >>" + dir + "/runs\nset -- " + codes + "\nshift $(($(wc -l <" + dir + "/runs) - 1))\nexit ${1:-77}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700))
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", filepath.Join(dir, "full.sh"))
	cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "HOST_DIR=" + dir, "BASE=" + dir, "CGROUPS="}
	out, _ := cmd.CombinedOutput()
	t.Logf("%s", out)
	b, err := os.ReadFile(filepath.Join(dir, "runs"))
	require.NoError(t, err)
	return len(b), cmd.ProcessState.ExitCode()
}

func TestAHostWhoseRestartFailsIsStartedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		codes      string
		runs, code int
	}{
		"it is turned off":              {"0", 1, 0},
		"the first start fails":         {"1", 1, 1},
		"a restart":                     {"133 0", 2, 0},
		"a restart that fails at first": {"133 1 1 133 1 0", 6, 0},
		"a restart that always fails":   {"133 1 1 1 1 1 1 1 1 1 1 1 1", 12, 1},
		"it is killed":                  {"133 137", 2, 137},
	} {
		t.Run(name, func(t *testing.T) {
			runs, code := full(t, tt.codes)
			assert.Equal(t, tt.runs, runs)
			assert.Equal(t, tt.code, code)
		})
	}
}
