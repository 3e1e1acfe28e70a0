package checks

import (
	"github.com/openpai/paictl/pkg/cluster/gpudriver"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// GPUs compares the GPUs of a machine with the GPUs of its SKU in layout.yaml. The argument gpu is nil if the SKU has no GPUs. The argument managed
// means that paictl manages the machines' drivers.
func GPUs(f *layout.Facts, sku string, gpu *layout.GPU, managed bool) []Finding {
	listed := 0
	if gpu != nil {
		if gpu.Simulated {
			return nil
		}
		listed = gpu.Count
	}
	bus, driver := len(f.PCIGPUs), len(f.NVIDIA)
	// A display adapter of a server counts as a GPU on the bus. Only NVIDIA's driver can distinguish a display adapter from a GPU. Without the driver,
	// count NVIDIA's devices on the bus.
	unlisted := driver
	if managed && driver == 0 && f.Driver == "" && f.DriverError == "" {
		unlisted = len(f.NVIDIADevices())
	}
	switch {
	case listed == 0 && unlisted > 0:
		remedy := "add gpu to the SKU " + sku + " in layout.yaml (paictl config generate finds it), then paictl config push"
		if driver == 0 {
			remedy += "; or set gpu-driver: {policy: none} in kubernetes-configuration.yaml"
		}
		return []Finding{warning("gpu-unlisted", remedy, "has %s, but its SKU %s lists none: no job gets them", plural.Of(unlisted, "GPU"), sku)}
	case max(bus, driver) < listed:
		return []Finding{advice(problem("gpu-count", "look at dmesg, lspci and the management controller: a GPU may have fallen off the bus, which a cold start may repair; otherwise correct gpu.count of "+sku+" in layout.yaml",
			"has %d of the %s that layout.yaml says (%s)", max(bus, driver), plural.Of(listed, "GPU"), sku))}
	case driver > 0 && driver < listed:
		return []Finding{advice(problem("gpu-count", "look at dmesg for XID errors; nvidia-smi -q there; a GPU that doesn't come back after a reboot is broken",
			"the driver sees %d of the %s on the bus", driver, plural.Of(listed, "GPU")))}
	}
	return nil
}

// Driver converts gpudriver's findings about a machine's NVIDIA driver. If gpudriver has no findings but the driver fails, it returns a finding
// with the driver's error.
func Driver(f *layout.Facts, findings []gpudriver.Finding) (out []Finding) {
	if len(findings) == 0 && f.DriverError != "" {
		one := problem("gpu-driver", "on the machine: nvidia-smi, dmesg | grep -i nvrm; a reboot loads a replaced driver; paictl node driver upgrade installs another", "NVIDIA's driver doesn't answer")
		one.Evidence = f.DriverError
		return []Finding{advice(one)}
	}
	for _, d := range findings {
		one := problem("gpu-driver-"+d.ID, d.Remedy, "%s", d.Message)
		if d.Warning {
			one = advice(one)
		}
		if d.Works {
			one.Severity = Warning
		} else if d.Warning { // other findings are obstacles to the driver that a run would install
			one.Evidence = f.DriverError
		}
		out = append(out, one)
	}
	return out
}
