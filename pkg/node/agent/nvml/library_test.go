//go:build cgo

package nvml

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheLibraryIsFoundThroughLinksOfTheMachine(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	_, err := FindLibrary(root)
	require.EqualError(t, err, "NVIDIA's driver isn't installed: there is no libnvidia-ml.so.1 below "+root)

	// Debian's packages of driver 535 create these links.
	lib := filepath.Join(root, "usr/lib/x86_64-linux-gnu")
	require.NoError(t, os.MkdirAll(filepath.Join(lib, "nvidia/current"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "etc/alternatives"), 0o755))
	for link, to := range map[string]string{
		filepath.Join(lib, "libnvidia-ml.so.1"):                                            "/etc/alternatives/nvidia--libnvidia-ml.so.1-x86_64-linux-gnu",
		filepath.Join(root, "etc/alternatives/nvidia--libnvidia-ml.so.1-x86_64-linux-gnu"): "/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.1",
		filepath.Join(lib, "nvidia/current/libnvidia-ml.so.1"):                             "libnvidia-ml.so.535.261.03",
	} {
		require.NoError(t, os.Symlink(to, link))
	}
	_, err = FindLibrary(root)
	require.ErrorContains(t, err, "isn't installed", "links to nothing")
	want := filepath.Join(lib, "nvidia/current/libnvidia-ml.so.535.261.03")
	require.NoError(t, os.WriteFile(want, nil, 0o600))
	got, err := FindLibrary(root)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}
