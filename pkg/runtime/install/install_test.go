package install_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/install"
)

func TestTheProgramIsCopiedForEverybodyAgainAndAgain(t *testing.T) {
	self := filepath.Join(t.TempDir(), "self")
	dir := filepath.Join(t.TempDir(), "new", "folder")
	for _, text := range []string{"first", "second version"} {
		require.NoError(t, os.WriteFile(self, []byte(text), 0o700))
		require.NoError(t, install.Into(self, dir))
		got, err := os.ReadFile(filepath.Join(dir, "runtime"))
		require.NoError(t, err)
		assert.Equal(t, text, string(got))
		info, err := os.Stat(filepath.Join(dir, "runtime"))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o755), info.Mode())
	}
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, list, 1, "nothing is left over")
}

func TestTwoAtOnceLeaveOneWholeProgram(t *testing.T) {
	self := filepath.Join(t.TempDir(), "self")
	require.NoError(t, os.WriteFile(self, make([]byte, 1<<20), 0o700))
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { assert.NoError(t, install.Into(self, dir)) })
	}
	wg.Wait()
	info, err := os.Stat(filepath.Join(dir, "runtime"))
	require.NoError(t, err)
	assert.EqualValues(t, 1<<20, info.Size())
}

func TestAFolderThatCannotBeMadeIsAnError(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	require.Error(t, install.Into(name, filepath.Join(name, "below")))
}

func TestALinkLeadsToTheProgramUnlessThereIsOne(t *testing.T) {
	self, dir := filepath.Join(t.TempDir(), "self"), t.TempDir()
	require.NoError(t, os.WriteFile(self, []byte("program"), 0o600))
	for range 2 {
		require.NoError(t, install.Link(self, dir))
		got, err := os.ReadFile(filepath.Join(dir, "runtime"))
		require.NoError(t, err)
		assert.Equal(t, "program", string(got))
	}
	require.NoError(t, install.Link("other", dir))
	to, err := os.Readlink(filepath.Join(dir, "runtime"))
	require.NoError(t, err)
	assert.Equal(t, self, to)
	require.Error(t, install.Link(self, filepath.Join(dir, "missing")))
}
