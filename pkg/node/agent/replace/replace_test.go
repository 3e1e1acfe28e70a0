package replace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFileIsReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(string, []byte, os.FileMode) error{"file": File, "durably": Durably} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			file := filepath.Join(folder, "f")
			require.NoError(t, write(file, []byte("first"), 0o600))
			before, err := os.Open(file)
			require.NoError(t, err)
			defer func() { assert.NoError(t, before.Close()) }()
			require.NoError(t, write(file, []byte("2"), 0o644))
			text := make([]byte, 9)
			n, err := before.Read(text)
			require.NoError(t, err)
			assert.Equal(t, "first", string(text[:n]), "whoever has opened it reads on")
			now, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, "2", string(now))
			info, err := os.Stat(file)
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o644), info.Mode())

			require.Error(t, write(folder, []byte("x"), 0o600), "a folder is there")
			left, err := os.ReadDir(folder)
			require.NoError(t, err)
			assert.Len(t, left, 1, "nothing is left behind")
			assert.ErrorIs(t, write("/nowhere/f", nil, 0o600), os.ErrNotExist)
		})
	}
}
