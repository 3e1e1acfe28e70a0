package engine

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/runnable"
)

// The stub of rm shares a file after rm has read the folder, so that rm can't remove the folder. A link that was requested before the renaming of the
// folder is created later.
func TestAFileThatIsSharedAtTheEndDoesNotKeepTheFolder(t *testing.T) {
	root, stubs := t.TempDir(), t.TempDir()
	rm, err := exec.LookPath("rm")
	require.NoError(t, err)
	folder := filepath.Join(root, StateDir, "peer-run")
	runnable.Write(t, filepath.Join(stubs, "rm"), []byte("#!/bin/sh\nif touch "+folder+"/late 2>/dev/null; then exit 1; fi\n"+
		"if [ -d "+folder+".ended ] && mkdir "+stubs+"/once 2>/dev/null; then touch "+folder+".ended/late; exit 1; fi\nexec "+rm+" \"$@\"\n"))
	program := []byte("#!/bin/sh\ncat >/dev/null\n")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(program)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	staged := filepath.Join(root, StateDir, "staging", "packed")
	require.NoError(t, os.MkdirAll(filepath.Dir(staged), 0o755))
	require.NoError(t, os.WriteFile(staged, packed.Bytes(), 0o600))
	// A run whose shell was killed while it removed its folder left this.
	killed := filepath.Join(root, StateDir, "peer-old.ended")
	require.NoError(t, os.MkdirAll(killed, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(killed, "pai-peer"), program, 0o755))

	cmd := exec.CommandContext(t.Context(), "sh", "-c", PreludeScript+peerScript+"pp_serve run packed "+Hash(program)+" 3</dev/null\n")
	cmd.Env = append(os.Environ(), "PAICTL_ROOT="+root, "PATH="+stubs+":"+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader("")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	left, err := filepath.Glob(filepath.Join(root, StateDir, "*"))
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(root, StateDir, "staging")}, left)
}
