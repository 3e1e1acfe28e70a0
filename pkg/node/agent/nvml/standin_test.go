//go:build cgo

package nvml

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	standin "github.com/openpai/paictl/test/nvml"
)

// standIn returns a collector that uses the stand-in for NVIDIA's library. machine is the description of the stand-in's machine.
func standIn(t *testing.T, machine string) *Collector {
	t.Helper()
	root := t.TempDir()
	standin.Install(t, root, standin.Driver)
	t.Setenv("NVML_STANDIN", machine)
	path, err := FindLibrary(root)
	require.NoError(t, err)
	lib := nvml.New(nvml.WithLibraryPath(path))
	c, err := New(lib)
	require.NoError(t, err)
	t.Cleanup(func() { _ = lib.Shutdown() })
	c.seesProcesses = true
	return c
}

func (c *Collector) reportOf(t *testing.T) []gpu.GPU {
	t.Helper()
	r, err := c.report()
	require.NoError(t, err)
	require.Len(t, r.GPUs, 2)
	return r.GPUs
}

func TestActivityOfCardsThatCountIt(t *testing.T) {
	c := standIn(t, "hopper")
	for _, g := range c.reportOf(t) {
		assert.NotContains(t, g.Values, gpu.TensorActive, "one sample says nothing")
	}
	for range 2 {
		for _, g := range c.reportOf(t) {
			for name, want := range map[string]float64{
				gpu.EngineActive: 0.01, gpu.SMActive: 0.02, gpu.SMOccupancy: 0.03, gpu.TensorActive: 0.05, gpu.DRAMActive: 0.10, gpu.FP64Active: 0.11, gpu.FP32Active: 0.12,
				gpu.PCIeSent: 20 << 20, gpu.PCIeReceived: 21 << 20, gpu.NVLinkSent: 61 << 20, gpu.NVLinkReceived: 60 << 20,
			} {
				assert.InDelta(t, want, g.Values[name], 1e-9, name)
			}
			assert.NotContains(t, g.Values, gpu.FP16Active, "what a card doesn't count is left out")
		}
	}
	t.Setenv("NVML_STANDIN", "") // its samples fail now
	assert.NotContains(t, c.reportOf(t)[0].Values, gpu.TensorActive)
	t.Setenv("NVML_STANDIN", "hopper")
	c.reportOf(t)
	c.reportOf(t)
	assert.NotEmpty(t, c.activity.samples)
	for bus := range c.activity.samples {
		c.activity.forget(bus)
	}
	assert.Empty(t, c.activity.samples)
}

func TestCardsThatDontCountTellNoActivity(t *testing.T) {
	c := standIn(t, "")
	for range 2 {
		for _, g := range c.reportOf(t) {
			assert.NotContains(t, g.Values, gpu.SMActive)
			assert.Contains(t, g.Values, gpu.Utilization)
		}
	}
}

func TestHowManyProcessesUseAGPUIsToldWhereItIsKnown(t *testing.T) {
	none, one := 0, 1
	for machine, want := range map[string]*int{"": &none, "process": &one, "screen": nil, "leaks": &none} {
		t.Run(machine, func(t *testing.T) {
			c := standIn(t, machine)
			assert.Equal(t, want, c.reportOf(t)[0].Processes)
			c.seesProcesses = false
			assert.Nil(t, c.reportOf(t)[0].Processes, "a container sees its own alone")
		})
	}
}

func TestAGPUWaitsForItsFabric(t *testing.T) {
	c := standIn(t, "")
	for machine, says := range map[string]string{
		"":                     "",
		"hopper fabric-on":     "",
		"hopper fabric-off":    "isn't initialised: start nvidia-fabricmanager",
		"hopper fabric-busy":   "is being initialised",
		"hopper fabric-failed": "failed: Insufficient Resources",

		"hopper fabric-unhealthy":     "routes through the NVLink fabric are unhealthy",
		"hopper fabric-misconfigured": "isn't configured correctly (too few NVLinks)",
	} {
		t.Setenv("NVML_STANDIN", machine)
		for _, g := range c.reportOf(t) {
			assert.Equal(t, says == "", g.Unusable == "", "%s: %s", machine, g.Unusable)
			assert.Contains(t, g.Unusable, says, machine)
		}
	}
}
