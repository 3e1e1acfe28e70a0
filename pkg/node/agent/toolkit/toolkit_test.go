package toolkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/openpai/paictl/test/nvml"
	"github.com/openpai/paictl/test/runnable"
	"github.com/openpai/paictl/test/tier"
)

// machine returns a Toolkit for a machine with a driver and the device files of two GPUs.
func machine(t *testing.T) *Toolkit {
	t.Helper()
	tier.More(t, "it compiles NVIDIA's container toolkit")
	root := t.TempDir()
	nvml.Install(t, root, nvml.Driver)
	require.NoError(t, os.Mkdir(filepath.Join(root, "dev"), 0o755))
	for name, device := range map[string]int{"nvidia0": 195 << 8, "nvidia1": 195<<8 | 1, "nvidiactl": 195<<8 | 255, "nvidia-uvm": 511 << 8} {
		if err := syscall.Mknod(filepath.Join(root, "dev", name), syscall.S_IFCHR|0o666, device); err != nil {
			t.Skipf("device files can't be made: %v", err)
		}
	}
	return &Toolkit{Program: filepath.Join(nvml.Toolkit(t), "nvidia-ctk"), Root: root, Hook: "/var/lib/kubelet/plugins/x/nvidia-cdi-hook"}
}

func nodes(e specs.ContainerEdits) (out []string) {
	for _, d := range e.DeviceNodes {
		out = append(out, d.Path+" from "+d.HostPath)
	}
	return out
}

func libraries(e specs.ContainerEdits) string {
	var b strings.Builder
	for _, m := range e.Mounts {
		b.WriteString(m.HostPath + "\n")
	}
	return b.String()
}

// The test runs NVIDIA's real program.
func TestContainersGetTheDeviceOfTheirGPUAndTheLibrariesOfTheDriver(t *testing.T) {
	t.Parallel()
	tk, ids := machine(t), nvml.UUIDs()
	e, err := tk.Edits(t.Context(), nvml.Driver, ids)
	require.NoError(t, err)
	require.Len(t, e.Devices, 2)
	// The number of a GPU differs from the number of the GPU's device file.
	assert.Equal(t, []string{"/dev/nvidia1 from /dev/nvidia1"}, nodes(e.Devices[ids[0]]))
	assert.Equal(t, []string{"/dev/nvidia0 from /dev/nvidia0"}, nodes(e.Devices[ids[1]]))
	assert.ElementsMatch(t, []string{"/dev/nvidiactl from /dev/nvidiactl", "/dev/nvidia-uvm from /dev/nvidia-uvm"}, nodes(e.Common))
	assert.Contains(t, libraries(e.Common), "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so."+nvml.Driver+"\n", "where the machine has it")
	assert.NotContains(t, libraries(e.Common), tk.Root)
	assert.Contains(t, e.Common.Env, "NVIDIA_VISIBLE_DEVICES=void")
	require.NotEmpty(t, e.Common.Hooks)
	for _, d := range append([]specs.ContainerEdits{e.Common}, e.Devices[ids[0]], e.Devices[ids[1]]) {
		for _, h := range d.Hooks {
			assert.Equal(t, tk.Hook, h.Path)
			assert.NotContains(t, strings.Join(h.Args, " "), tk.Root)
		}
	}

	again, err := tk.Edits(t.Context(), nvml.Driver, ids[:1])
	require.NoError(t, err)
	assert.Same(t, e, again, "it isn't asked twice")
}

func TestAnotherDriverIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	tk, ids := machine(t), nvml.UUIDs()
	_, err := tk.Edits(t.Context(), nvml.Driver, ids)
	require.NoError(t, err)
	nvml.Uninstall(t, tk.Root, nvml.Driver)
	nvml.Install(t, tk.Root, "550.54.15")
	e, err := tk.Edits(t.Context(), "550.54.15", ids)
	require.NoError(t, err)
	assert.Contains(t, libraries(e.Common), "libcuda.so.550.54.15\n")
	assert.NotContains(t, libraries(e.Common), nvml.Driver)
}

// The machine's own modprobe loads the module. In this test, modprobe also creates the device file, because nvidia-ctk finds no module.
func TestWithoutUnifiedMemoryNoContainerStarts(t *testing.T) {
	t.Parallel()
	tk := machine(t)
	require.NoError(t, os.Remove(filepath.Join(tk.Root, "dev/nvidia-uvm")))
	_, err := tk.Edits(t.Context(), nvml.Driver, nvml.UUIDs())
	require.ErrorContains(t, err, "the machine has no /dev/nvidia-uvm, without which CUDA doesn't work; modprobe nvidia-uvm there says why (")
	require.ErrorContains(t, err, "no such file or directory")

	if os.Geteuid() != 0 {
		t.Skip("chroot needs root")
	}
	busybox(t, tk.Root, `echo "modprobe: FATAL: Module $1 not found" >&2; exit 1`)
	_, err = tk.Edits(t.Context(), nvml.Driver, nvml.UUIDs())
	require.ErrorContains(t, err, "(modprobe: FATAL: Module nvidia-uvm not found: exit status 1)")
	busybox(t, tk.Root, "mknod -m 666 /dev/nvidia-uvm c 511 0")
	_, err = tk.Edits(t.Context(), nvml.Driver, nvml.UUIDs())
	require.NoError(t, err, "it is looked at again")
}

// busybox adds a shell, mknod, and a modprobe script to the root folder.
func busybox(t *testing.T, root, modprobe string) {
	t.Helper()
	for _, name := range []string{"sh", "mknod"} {
		program, err := exec.LookPath(name)
		require.NoError(t, err)
		program, err = filepath.EvalSymlinks(program)
		require.NoError(t, err)
		needs, err := exec.CommandContext(t.Context(), "ldd", program).Output()
		if err != nil {
			t.Skip("it needs programs with shared libraries, and ldd")
		}
		files := []string{program}
		for _, word := range strings.Fields(string(needs)) {
			if strings.HasPrefix(word, "/") {
				files = append(files, word)
			}
		}
		for i, file := range files {
			to := filepath.Join(root, file)
			if i == 0 {
				to = filepath.Join(root, "bin", name)
			}
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
			runnable.Write(t, to, b)
		}
	}
	require.NoError(t, os.MkdirAll(filepath.Join(root, "sbin"), 0o755))
	runnable.Write(t, filepath.Join(root, "sbin/modprobe"), "#!/bin/sh\n"+modprobe+"\n")
}

func TestWhatTheToolkitCantDoIsSaid(t *testing.T) {
	t.Parallel()
	tk := machine(t)
	_, err := tk.Edits(t.Context(), nvml.Driver, []string{"GPU-99999999-2222-3333-4444-000000000000"})
	require.ErrorContains(t, err, "ask which files of the driver containers need")
	assert.NotContains(t, err.Error(), "level=")
	nvml.Uninstall(t, tk.Root, nvml.Driver)
	_, err = tk.Edits(t.Context(), nvml.Driver, nvml.UUIDs())
	require.ErrorContains(t, err, "ask which files of the driver containers need")
	tk.Program = filepath.Join(t.TempDir(), "ctk")
	for script, want := range map[string]string{"#!/bin/sh\necho hi\n": "ctk is not a CDI specification", "#!/bin/sh\nexit 3\n": "it printed no message: exit status 3"} {
		runnable.Write(t, tk.Program, script)
		_, err = tk.Edits(t.Context(), nvml.Driver, nvml.UUIDs())
		require.ErrorContains(t, err, want)
	}
}

func TestTheHookIsPutInItsPlaceOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	require.ErrorIs(t, InstallHook(from, to), os.ErrNotExist)
	inode := func() uint64 {
		info, err := os.Stat(to)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o755), info.Mode())
		return info.Sys().(*syscall.Stat_t).Ino
	}
	require.NoError(t, os.WriteFile(from, []byte("one"), 0o600))
	require.NoError(t, InstallHook(from, to))
	first := inode()
	require.NoError(t, InstallHook(from, to))
	assert.Equal(t, first, inode(), "it is there")
	require.NoError(t, os.WriteFile(from, []byte("two"), 0o600))
	require.NoError(t, InstallHook(from, to))
	assert.NotEqual(t, first, inode(), "one that runs goes on")
	require.NoError(t, os.Chmod(to, 0o600))
	require.NoError(t, InstallHook(from, to))
	inode()
}
