package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/tier"
)

// A terminal sends its responses to queries to standard input, where a command expects its own input.
func TestTheTerminalIsAskedNothing(t *testing.T) {
	tier.More(t, "builds the program")
	program := filepath.Join(t.TempDir(), "paictl")
	build := exec.Command("go", "build", "-trimpath", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, terminal := range []string{"TERM=xterm-256color", "TERM=linux", "TERM="} {
		cmd := exec.Command(program, "version")
		cmd.Env = append(os.Environ(), terminal, "CI=")
		tty, err := pty.Start(cmd)
		require.NoError(t, err)
		shown, _ := io.ReadAll(tty) // the end of a terminal is an error
		require.NoError(t, cmd.Wait())
		assert.Contains(t, string(shown), "paictl", terminal)
		assert.NotContains(t, string(shown), "\x1b", terminal)
		assert.NoError(t, tty.Close())
	}
}
