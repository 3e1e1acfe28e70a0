package toolkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/test/nvml"
)

// splitMachine returns a machine whose first GPU is split into three instances. The machine contains the driver's files that describe the
// capabilities, for nvidia-ctk.
func splitMachine(t *testing.T) (*Toolkit, []Instance) {
	t.Helper()
	tk := machine(t)
	tk.Proc = nvml.Proc(t)
	tk.Program = nvml.ToolkitSeeing(t, tk.Proc)
	out, err := exec.CommandContext(t.Context(), nvml.Probe(t), "--root", tk.Root, "--split", "0000:07:00.0", "--profile", "2g.10gb", "--instances", "3").CombinedOutput()
	require.NoError(t, err, "%s", out)
	var list []Instance
	for _, gi := range []int{3, 4, 5} {
		list = append(list, Instance{UUID: fmt.Sprintf("MIG-11111111-5555-5666-8777-%08x0000", gi), File: "nvidia1", GI: gi})
	}
	return tk, list
}

func uuids(list []Instance) (out []string) {
	for _, i := range list {
		out = append(out, i.UUID)
	}
	return out
}

// The test runs NVIDIA's real program.
func TestContainersGetTheDevicesOfTheirInstance(t *testing.T) {
	t.Parallel()
	tk, list := splitMachine(t)
	e, err := tk.Edits(t.Context(), nvml.Driver, append(uuids(list), nvml.UUIDs()[1]), list...)
	require.NoError(t, err)
	require.Len(t, e.Devices, 4)
	for i, one := range list {
		gi := 3 + 135 + 9*one.GI // of the second device file, as drivers count
		assert.ElementsMatch(t, []string{
			"/dev/nvidia1 from /dev/nvidia1",
			fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d from /dev/nvidia-caps/nvidia-cap%[1]d", gi),
			fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d from /dev/nvidia-caps/nvidia-cap%[1]d", gi+1),
		}, nodes(e.Devices[one.UUID]), "%d", i)
		var is unix.Stat_t
		require.NoError(t, unix.Stat(filepath.Join(tk.Root, fmt.Sprintf("dev/nvidia-caps/nvidia-cap%d", gi)), &is))
		assert.Equal(t, unix.Mkdev(nvml.CapsMajor, uint32(gi)), is.Rdev)
		assert.Equal(t, uint32(0o444), is.Mode&0o777, "for users that aren't root")
	}
	assert.Equal(t, []string{"/dev/nvidia0 from /dev/nvidia0"}, nodes(e.Devices[nvml.UUIDs()[1]]))
	assert.NotContains(t, strings.Join(nodes(e.Common), " "), "caps")

	// A device file of another driver isn't replaced.
	file := filepath.Join(tk.Root, "dev/nvidia-caps/nvidia-cap165")
	require.NoError(t, os.Remove(file))
	require.NoError(t, syscall.Mknod(file, syscall.S_IFCHR|0o666, 1<<8|3))
	_, err = tk.Edits(t.Context(), "another", uuids(list), list...)
	require.NoError(t, err)
	var is unix.Stat_t
	require.NoError(t, unix.Stat(file, &is))
	assert.Equal(t, unix.Mkdev(nvml.CapsMajor, 165), is.Rdev)

	tk.ConfigDevices()
	require.NoError(t, unix.Stat(filepath.Join(tk.Root, "dev/nvidia-caps/nvidia-cap1"), &is))
	assert.Equal(t, uint32(0o400), is.Mode&0o777, "who may split GPUs is root")
}

func TestWithoutItsCapabilitiesNoInstanceIsHandedOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*Toolkit, []Instance)
		want  string
	}{
		"another number": {func(tk *Toolkit, _ []Instance) {
			write(t, tk, "driver/nvidia/capabilities/gpu1/mig/gi4/access", "DeviceFileMinor: 999\nDeviceFileMode: 292\n")
		}, "would get the device files"},
		"no number": {func(tk *Toolkit, _ []Instance) {
			write(t, tk, "driver/nvidia/capabilities/gpu1/mig/gi4/ci0/access", "DeviceFileMode: 292\n")
		}, "ci0/access reports no device file"},
		"none at all": {func(tk *Toolkit, _ []Instance) { tk.Proc = t.TempDir() }, "no such file or directory"},
		"no driver of capabilities": {func(tk *Toolkit, _ []Instance) {
			write(t, tk, "devices", "Character devices:\n195 nvidia\n")
		}, "the driver offers no capabilities"},
		"another GPU": {func(_ *Toolkit, list []Instance) { list[1].File = "nvidia0" }, "would get the device files"},
		"no GPU":      {func(_ *Toolkit, list []Instance) { list[1].File = "" }, "its GPU has no device file of NVIDIA"},
	} {
		t.Run(name, func(t *testing.T) {
			tk, list := splitMachine(t)
			c.spoil(tk, list)
			e, err := tk.Edits(t.Context(), nvml.Driver, uuids(list), list...)
			if err == nil { // the others are allocated
				require.Len(t, e.Refused, 1)
				for uuid, why := range e.Refused {
					assert.NotContains(t, e.Devices, uuid)
					err = why
				}
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func write(t *testing.T, tk *Toolkit, name, content string) {
	t.Helper()
	file := filepath.Join(tk.Proc, name)
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o444))
}
