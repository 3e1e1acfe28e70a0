package checks

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/cluster/gpudriver"
	"github.com/openpai/paictl/pkg/layout"
)

func texts(fs []Finding) (out []string) {
	for _, f := range fs {
		out = append(out, f.Severity+" "+f.Check+": "+f.Text())
	}
	return out
}

func TestGPUsAreThoseOfTheLayout(t *testing.T) {
	machine := func(bus, driver int) layout.Facts {
		f := layout.Facts{PCIGPUs: make([]layout.PCIDevice, bus), NVIDIA: make([]layout.NVIDIAGPU, driver)}
		for i := range f.PCIGPUs {
			f.PCIGPUs[i].Vendor = "10de"
		}
		if driver > 0 {
			f.Driver = "535.261.03"
		}
		return f
	}
	adapter := layout.Facts{PCIGPUs: []layout.PCIDevice{{Vendor: "1a03"}}}
	failing := machine(8, 0)
	failing.DriverError = "no devices"
	eight := &layout.GPU{Type: "NVIDIA-A100", Count: 8}
	for name, tc := range map[string]struct {
		facts   layout.Facts
		gpu     *layout.GPU
		ignored bool
		want    []string
	}{
		"all":                            {machine(8, 8), eight, false, nil},
		"all, without a driver":          {machine(8, 0), eight, false, nil},
		"more than listed":               {machine(9, 9), eight, false, nil},
		"one off the bus":                {machine(7, 7), eight, false, []string{"error gpu-count: has 7 of the 8 GPUs that layout.yaml says (sku)"}},
		"none":                           {machine(0, 0), eight, false, []string{"error gpu-count: has 0 of the 8 GPUs that layout.yaml says (sku)"}},
		"one that the driver misses":     {machine(8, 7), eight, false, []string{"error gpu-count: the driver sees 7 of the 8 GPUs on the bus"}},
		"simulated ones":                 {machine(0, 0), &layout.GPU{Count: 8, Simulated: true}, false, nil},
		"unlisted ones":                  {machine(2, 2), nil, true, []string{"warning gpu-unlisted: has 2 GPUs, but its SKU sku lists none: no job gets them"}},
		"unlisted ones without a driver": {machine(2, 0), &layout.GPU{}, false, []string{"warning gpu-unlisted: has 2 GPUs, but its SKU sku lists none: no job gets them"}},
		"unlisted ones that no one uses": {machine(2, 0), nil, true, nil},
		"a display adapter":              {adapter, nil, false, nil},
		"a driver that doesn't answer":   {failing, eight, false, nil},
	} {
		assert.Equal(t, tc.want, texts(GPUs(&tc.facts, "sku", tc.gpu, !tc.ignored)), name)
	}
}

func TestADriverThatDoesNotWorkIsAProblem(t *testing.T) {
	one := []layout.PCIDevice{{Vendor: "10de"}}
	look := func(m gpudriver.Machine, said string) []string {
		m.Devices = []string{"20b2"}
		return texts(Driver(&layout.Facts{PCIGPUs: one, DriverError: said}, gpudriver.CheckKept(m, gpudriver.Want{})))
	}
	assert.Empty(t, look(gpudriver.Machine{Module: "535.1", Userland: "535.1"}, ""))
	assert.Equal(t, []string{"error gpu-driver: NVIDIA's driver doesn't answer: NVML fails"}, look(gpudriver.Machine{Module: "535.1", Userland: "535.1"}, "NVML fails"))
	assert.Equal(t, []string{"error gpu-driver-missing: 1 NVIDIA GPU but no driver: jobs can't use them"}, look(gpudriver.Machine{}, ""))
	assert.Equal(t, []string{"error gpu-driver-nouveau: the kernel's own driver nouveau uses the GPUs, and NVIDIA's isn't loaded"}, look(gpudriver.Machine{Nouveau: true}, ""))
	assert.Equal(t, []string{"error gpu-driver-mismatch: the driver's loaded kernel module is 535.1 and its libraries are 535.2: GPUs can't be used: NVML fails"}, look(gpudriver.Machine{Module: "535.1", Userland: "535.2"}, "NVML fails"))
	assert.Equal(t, []string{"warning gpu-driver-old: the driver 390.1 is older than 470"}, look(gpudriver.Machine{Module: "390.1", Userland: "390.1"}, ""))
	for _, f := range Driver(&layout.Facts{}, gpudriver.CheckKept(gpudriver.Machine{}, gpudriver.Want{})) {
		assert.True(t, f.Advice, "an installation can continue")
	}
	refused := Driver(&layout.Facts{DriverError: "NVML fails"}, []gpudriver.Finding{{ID: "headers", Message: "no headers"}})
	assert.False(t, refused[0].Advice)
	assert.Equal(t, []string{"error gpu-driver-headers: no headers"}, texts(refused), "the driver's answer isn't the reason")
}
