package history

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
)

// put writes a small script to a file, and returns the file's path.
func put(t *testing.T, dir, name string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"), mode))
	return file
}

func TestTheProgramIsBesidePaictlOrInPath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	elsewhere := t.TempDir()
	self := put(t, dir, "paictl", 0o755)
	link := filepath.Join(t.TempDir(), "paictl")
	require.NoError(t, os.Symlink(self, link))
	t.Setenv("PATH", elsewhere)

	_, err = find(link)
	require.ErrorContains(t, err, "the program paictl-history, which reads OpenPAI's database, is neither in "+dir+" nor in PATH")
	assert.Contains(t, hint.Of(err), "make build")

	unusable := put(t, elsewhere, Name, 0o644)
	_, err = find(link)
	require.ErrorContains(t, err, "neither in")
	require.NoError(t, os.Chmod(unusable, 0o755))
	got, err := find(link)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(elsewhere, Name), got)

	beside := put(t, dir, Name, 0o644)
	_, err = find(link)
	require.ErrorContains(t, err, beside+" is not an executable file")
	require.NoError(t, os.Chmod(beside, 0o755))
	got, err = find(link)
	require.NoError(t, err)
	assert.Equal(t, beside, got, "that of the same installation comes first")

	require.NoError(t, os.Remove(beside))
	require.NoError(t, os.Mkdir(beside, 0o755))
	_, err = find(link)
	require.ErrorContains(t, err, "is not an executable file")
}

func TestPasswordsAreTakenOutOfTheEnvironment(t *testing.T) {
	others, withheld := split([]string{"HOME=/root", "PGPASSWORD=hunter2", "PGUSER=a", "PGSSLPASSWORD=x=y"})
	assert.Equal(t, []string{"HOME=/root", "PGUSER=a"}, others)
	assert.Equal(t, map[string]string{"PGPASSWORD": "hunter2", "PGSSLPASSWORD": "x=y"}, withheld)
	require.ErrorContains(t, SetSecrets(map[string]string{"LD_PRELOAD": "x"}), "isn't a password of PostgreSQL")
}
