package agent

import (
	"encoding/json"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/openpai/paictl/pkg/node/agent/amdgpu"
	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/test/amdgputest"
)

// amdMachine returns the files of a machine with AMD GPUs, and a function that returns the machine's report.
func amdMachine(t *testing.T, cards ...amdgputest.Card) (*amdgputest.Tree, func() *gpu.Report) {
	t.Helper()
	tr := amdgputest.New(t)
	for _, c := range cards {
		tr.Add(c)
	}
	return tr, func() *gpu.Report {
		r, err := (&amdgpu.Collector{Root: tr.Root, Now: time.Now}).Report()
		require.NoError(t, err)
		return r
	}
}

func TestContainersWithAMDsGPUsGetTheirDeviceFilesAndNoOthers(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	tr, look := amdMachine(t, amdgputest.MI300X(0), amdgputest.MI300X(1), amdgputest.MI300X(2))
	tr.Write(filepath.Join(amdgputest.Folder("0000:25:00.0"), "current_compute_partition"), "CPX\n")
	watched := newMonitor(t)
	watched.wanted = 3
	watched.see(look())
	d, err := newDriver(t.Context(), "n1", watched, amd{}, m.folders, slog.New(slog.DiscardHandler), func(err error) { t.Error(err) })
	require.NoError(t, err)
	m.Driver = d
	_, err = m.prepare(claimOf("a", "gpu-1", "gpu-0"))
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(m.folders.cdi, specName("a")))
	require.NoError(t, err)
	assert.NotContains(t, string(data), "nvidia")
	var spec specs.Spec
	require.NoError(t, json.Unmarshal(data, &spec))
	paths := func(nodes []*specs.DeviceNode) (out []string) {
		for _, n := range nodes {
			assert.Equal(t, n.Path, n.HostPath)
			assert.Equal(t, "rw", n.Permissions)
			require.NotNil(t, n.FileMode)
			assert.Equal(t, fs.FileMode(0o666), *n.FileMode, "a container's user isn't in the machine's group render")
			out = append(out, n.Path)
		}
		return out
	}
	assert.Equal(t, []string{"/dev/kfd"}, paths(spec.ContainerEdits.DeviceNodes))
	require.Len(t, spec.Devices, 2)
	assert.Equal(t, []string{"/dev/dri/renderD136", "/dev/dri/card9"}, paths(spec.Devices[0].ContainerEdits.DeviceNodes))
	assert.Equal(t, []string{"/dev/dri/renderD128", "/dev/dri/card1"}, paths(spec.Devices[1].ContainerEdits.DeviceNodes))
	assert.Empty(t, spec.ContainerEdits.Hooks)

	_, err = m.prepare(claimOf("b", "gpu-2"))
	require.ErrorContains(t, err, "it is split into partitions (CPX)")
	assert.Contains(t, watched.sick()[2], "it is split into partitions (CPX)")
}

func TestWhatMakesAnAMDGPUSick(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*amdgputest.Tree, string)
		want   string // "" for one that works
	}{
		"works":              {func(*amdgputest.Tree, string) {}, ""},
		"corrected errors":   {func(tr *amdgputest.Tree, gpu string) { tr.Write(gpu+"/ras/umc_err_count", "ue: 0\nce: 99\nde: 3\n") }, ""},
		"errors of memory":   {func(tr *amdgputest.Tree, gpu string) { tr.Write(gpu+"/ras/umc_err_count", "ue: 1\nce: 0\n") }, "its memory has uncorrectable errors; reset it, or restart the machine"},
		"errors elsewhere":   {func(tr *amdgputest.Tree, gpu string) { tr.Write(gpu+"/ras/gfx_err_count", "ue: 1\nce: 0\n") }, "it had uncorrectable errors (RAS); reset it, or restart the machine"},
		"gone from sysfs":    {func(tr *amdgputest.Tree, _ string) { tr.Remove("0000:29:00.0") }, "it is lost: it doesn't answer; restart the machine"},
		"fallen off the bus": {func(tr *amdgputest.Tree, gpu string) { tr.Write(gpu+"/config", "\xff\xff\xff\xff") }, "it is lost: it doesn't answer; restart the machine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, look := amdMachine(t, amdgputest.MI250(0), amdgputest.MI250(1))
			m := newMonitor(t)
			m.wanted = 2
			m.see(look())
			require.Empty(t, m.sick())
			c.change(tr, amdgputest.Folder("0000:29:00.0"))
			m.see(look())
			if c.want == "" {
				assert.Empty(t, m.sick())
			} else {
				assert.Equal(t, map[int32]string{0: c.want}, m.sick())
			}
		})
	}
}

// A machine may have cards of NVIDIA and AMD.
func TestTheSKUSaysWhoseGPUsAreTold(t *testing.T) {
	t.Parallel()
	o := &options{node: "n1", machines: "/machines", root: "/host", probe: "/pai-nvml", toolkit: "/nvidia-ctk"}
	self, err := os.Executable()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		machine gpu.Machine
		probe   func(vendor) *gpu.Probe
		program string
		args    string
	}{
		"NVIDIA's":         {gpu.Machine{Model: "A100", Count: 8}, func(v vendor) *gpu.Probe { return v.(nvidia).probe }, "/pai-nvml", "--root /host"},
		"AMD's":            {gpu.Machine{Vendor: gpu.AMD, Model: "AMD-Instinct-MI300X", Count: 8}, func(v vendor) *gpu.Probe { return v.(amd).probe }, self, "amdgpu --root /host"},
		"simulated":        {gpu.Machine{Model: "A100", Count: 8, Simulated: true}, func(v vendor) *gpu.Probe { return v.(simulated).probe }, "/pai-nvml", "--simulated /machines --node n1 --faults /faults --splits /splits"},
		"simulated AMD's":  {gpu.Machine{Vendor: gpu.AMD, Model: "x", Count: 8, Simulated: true}, func(v vendor) *gpu.Probe { return v.(simulated).probe }, "/pai-nvml", "--simulated /machines --node n1 --faults /faults --splits /splits"},
		"of whom isn't in": {gpu.Machine{}, func(v vendor) *gpu.Probe { return v.(nvidia).probe }, "/pai-nvml", "--root /host"},
	} {
		v, err := o.vendor(c.machine, "/faults", "/splits", "/hook")
		require.NoError(t, err)
		p := c.probe(v)
		assert.Equal(t, []string{c.program, c.args}, []string{p.Path, strings.Join(p.Args, " ")}, name)
	}
	file := filepath.Join(t.TempDir(), "machines.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"n1":{"model":"x","count":1,"vendor":"amd"},"n2":{"model":"x","count":1,"vendor":"other"}}`), 0o600))
	m, err := gpu.ReadMachine(file, "n1")
	require.NoError(t, err)
	assert.Equal(t, gpu.Machine{Vendor: gpu.AMD, Model: "x", Count: 1}, m)
	_, err = gpu.ReadMachine(file, "n2")
	require.ErrorContains(t, err, `the GPUs of n2 are of "other"`)
}
