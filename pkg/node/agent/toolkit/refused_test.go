package toolkit

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/nvml"
	"github.com/openpai/paictl/test/runnable"
	"github.com/openpai/paictl/test/tier"
)

func TestOneGPUThatTheToolkitRefusesKeepsNothingFromTheOthers(t *testing.T) {
	t.Parallel()
	tk := machine(t)
	bad := "GPU-99999999-2222-3333-4444-000000000000"
	gpus := append(nvml.UUIDs(), bad)
	e, err := tk.Edits(t.Context(), nvml.Driver, gpus)
	require.NoError(t, err)
	for _, uuid := range nvml.UUIDs() {
		assert.NotEmpty(t, e.Devices[uuid].DeviceNodes, uuid)
		assert.NoError(t, e.Refused[uuid])
	}
	require.Error(t, e.Refused[bad])
	again, err := tk.Edits(t.Context(), nvml.Driver, gpus)
	require.NoError(t, err)
	assert.Same(t, e, again, "it isn't asked for each claim")
	tk.mu.Lock()
	tk.again = time.Now().Add(-time.Second)
	tk.mu.Unlock()
	again, err = tk.Edits(t.Context(), nvml.Driver, gpus)
	require.NoError(t, err)
	assert.NotSame(t, e, again, "it may have been reset")
}

func TestAHookThatMayNotRunIsSaid(t *testing.T) {
	tier.More(t, "root")
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_NOEXEC, ""); err != nil {
		t.Skip("it needs to mount: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	tk := &Toolkit{Program: "/bin/false", Root: t.TempDir(), Hook: filepath.Join(dir, "nvidia-cdi-hook")}
	runnable.Write(t, tk.Hook, "#!/bin/sh\n")
	_, err := tk.Edits(t.Context(), nvml.Driver, nvml.UUIDs())
	require.ErrorContains(t, err, "mounted noexec")
	require.NoError(t, executable(filepath.Join(t.TempDir(), "hook")))
}
