package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/toolkit"
)

func TestAddressesAreWrittenAsLinuxDoes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"00000000:1B:00.0": "0000:1b:00.0", "0000:1b:00.0": "0000:1b:00.0", "0000:43:00": "0000:43:00.0", "00010000:43:00.0": "0000:43:00.0", "10000:43:00.0": "0000:43:00.0",
	} {
		assert.Equal(t, want, bus(text), text)
	}
}

func TestTheKernelsLogNamesXIDs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "kmsg")
	require.NoError(t, os.WriteFile(file, []byte("4,1,1,-;NVRM: Xid (PCI:0000:1B:00): 79, pid='<unknown>'\n6,2,2,-;usb 1-1: new device\n"), 0o600))
	found, err := xids(file)
	require.NoError(t, err)
	assert.Equal(t, []string{"0000:1b:00.0 79"}, found)
	_, err = xids(file + "-missing")
	require.Error(t, err)
}

// edits returns the edits for a machine with two GPUs, and the machine's GPUs. It creates the files of the edits below root.
func edits(t *testing.T, root string) (*toolkit.Edits, *gpu.Report) {
	t.Helper()
	for _, name := range []string{"usr/lib/libcuda.so.550", "var/hook"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), nil, 0o600))
	}
	one := func(name string) specs.ContainerEdits {
		return specs.ContainerEdits{DeviceNodes: []*specs.DeviceNode{{Path: name, HostPath: "/dev/null"}}}
	}
	require.NoError(t, os.Symlink("/dev", filepath.Join(root, "dev"))) // whose null is a device file
	e := &toolkit.Edits{
		Common:  specs.ContainerEdits{Mounts: []*specs.Mount{{HostPath: "/usr/lib/libcuda.so.550", ContainerPath: "/usr/lib/libcuda.so.550", Options: []string{"ro", "bind"}}}},
		Devices: map[string]specs.ContainerEdits{"GPU-a": one("/dev/nvidia0"), "GPU-b": one("/dev/nvidia1")},
	}
	files := func(name string) []gpu.File { return []gpu.File{{Host: name, Container: name}} }
	return e, &gpu.Report{GPUs: []gpu.GPU{{UUID: "GPU-a", Files: files("/dev/nvidia0")}, {Index: 1, UUID: "GPU-b", Files: files("/dev/nvidia1")}}}
}

func TestASpecificationIsCheckedAgainstTheMachine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*toolkit.Edits)
		want   []string
	}{
		"good": {func(*toolkit.Edits) {}, nil},
		"another GPU": {func(e *toolkit.Edits) { e.Devices["GPU-a"] = e.Devices["GPU-b"] },
			[]string{"a container with GPU 0 doesn't get /dev/nvidia0", "a container with GPU 0 gets /dev/nvidia1, which is another GPU's"}},
		"a GPU without a device": {func(e *toolkit.Edits) { delete(e.Devices, "GPU-b") }, []string{"GPU 1 has no device"}},
		"a refused GPU":          {func(e *toolkit.Edits) { e.Refused = map[string]error{"GPU-b": os.ErrPermission} }, []string{"the toolkit refuses GPU-b: permission denied"}},
		"no library of CUDA":     {func(e *toolkit.Edits) { e.Common.Mounts[0].HostPath = "/usr/lib" }, []string{"no libcuda.so is mounted"}},
		"a missing file":         {func(e *toolkit.Edits) { e.Common.Mounts[0].HostPath = "/usr/lib/libcuda.so.9" }, []string{"/usr/lib/libcuda.so.9 is to be mounted and doesn't exist"}},
		"a file for a device":    {func(e *toolkit.Edits) { e.Devices["GPU-a"].DeviceNodes[0].HostPath = "/var/hook" }, []string{"/var/hook isn't a device file"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			e, gpus := edits(t, root)
			c.change(e)
			assert.Equal(t, c.want, (&options{root: root}).faults(e, gpus))
		})
	}
}

func TestTheContainersOutputIsJudged(t *testing.T) {
	t.Parallel()
	mine := &gpu.GPU{UUID: "GPU-a"}
	for said, want := range map[string]bool{
		"other refused\ncount 1\nuuid GPU-a\nsum 523776\n": false,
		"other opened\ncount 1\nuuid GPU-a\nsum 523776\n":  true,
		"other refused\ncount 2\nuuid GPU-a\nsum 523776\n": true,
		"other refused\ncount 1\nuuid GPU-b\nsum 523776\n": true,
		"other refused\ncount 1\nuuid GPU-a\nsum 0\n":      true,
		"": true,
	} {
		r := &report{}
		r.judge("container", said, mine, true)
		assert.Equal(t, want, r.failed(), said)
	}
	r := &report{}
	r.judge("container", "count 1\nuuid GPU-a\nsum 523776\n", mine, false)
	assert.False(t, r.failed())
	assert.Equal(t, "equal: 3, not run: 1", r.summary())
}

func TestMeasurementsOfTheAgentAreFoundByUUID(t *testing.T) {
	t.Parallel()
	const text = `# HELP DCGM_FI_DEV_GPU_TEMP x
DCGM_FI_DEV_GPU_TEMP{UUID="GPU-a",gpu="0"} 31
DCGM_FI_DEV_FB_USED{UUID="GPU-a",gpu="0"} 4
DCGM_FI_DEV_FB_USED{UUID="GPU-b",gpu="1"} 4
go_goroutines 12
`
	assert.Equal(t, map[string][]string{"GPU-a": {"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_FB_USED"}, "GPU-b": {"DCGM_FI_DEV_FB_USED"}}, measured(text))
}

func TestInstancesAreAllocatedInsteadOfTheirGPU(t *testing.T) {
	t.Parallel()
	r := &gpu.Report{GPUs: []gpu.GPU{
		{UUID: "GPU-a", Files: []gpu.File{{Container: "/dev/nvidia3"}}, MIG: &gpu.MIG{Enabled: true, Instances: []gpu.Instance{{UUID: "MIG-a", GI: 1, CI: 2}}}}, {UUID: "GPU-b"}, {UUID: "GPU-c", Lost: true},
	}}
	uuids, instances := allocatable(r)
	assert.Equal(t, []string{"MIG-a", "GPU-b"}, uuids)
	assert.Equal(t, []toolkit.Instance{{UUID: "MIG-a", File: "nvidia3", GI: 1, CI: 2}}, instances)
}
