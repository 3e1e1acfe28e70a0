package preflight

import (
	"fmt"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// checkGPU compares the GPUs with the layout.
func checkGPU(s *Host) []Finding {
	want := s.Cluster.SKUs[s.SKU].GPU
	if want != nil && want.Simulated {
		return nil
	}
	var out []Finding
	// checkDriver reports on machines whose GPUs are in the layout.
	if nvidia := len(s.Facts.NVIDIADevices()); want == nil && nvidia > 0 && s.Facts.Driver == "" && s.Facts.DriverError == "" && s.Cluster.Kubernetes.GPUDriver.WithDefaults().Policy != config.GPUDriverNone {
		out = append(out, s.warn("gpu-driver", fmt.Sprintf("%s in a machine whose SKU %s lists no GPUs, and no driver: jobs can't use them", plural.Of(nvidia, "NVIDIA GPU"), s.SKU),
			"add gpu to its SKU in layout.yaml (config generate finds it) so that paictl manages the driver, or set gpu-driver: {policy: none} in kubernetes-configuration.yaml"))
	}
	have := 0
	if g := s.Facts.GPU(); g != nil {
		have = g.Count
	}
	if want != nil && want.Count > have {
		out = append(out, s.warn("gpu-count", fmt.Sprintf("the machine shows %d GPUs, but layout.yaml says %d (%s)", have, want.Count, s.SKU),
			fmt.Sprintf("look for the missing ones with lspci and nvidia-smi, or correct gpu.count of %s in layout.yaml", s.SKU)))
	}
	return out
}

// checkDriver reports the obstacles to a machine's driver, before anything is changed on any machine.
func checkDriver(s *Host) []Finding {
	d := s.Driver
	if d == nil {
		return nil
	}
	var out []Finding
	if len(d.Findings) == 0 && s.Facts.DriverError != "" && s.Cluster.Kubernetes.GPUDriver.WithDefaults().Policy == config.GPUDriverKeep {
		out = append(out, s.warn("gpu-driver", "nvidia-smi fails: "+s.Facts.DriverError, "reboot the machine; if that does not help, install the driver again"))
	}
	for _, f := range d.Findings {
		severity := SeverityError
		if f.Warning {
			severity = SeverityWarning
		}
		out = append(out, Finding{Host: s.Hostname, Check: "gpu-driver-" + f.ID, Severity: severity, Message: f.Message, Remedy: f.Remedy})
	}
	return out
}
