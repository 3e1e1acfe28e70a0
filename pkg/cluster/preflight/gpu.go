package preflight

import (
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/diagnose/checks"
)

func checkGPU(s *Host) []Finding {
	managed := s.Cluster.Kubernetes.GPUDriver.WithDefaults().Policy != config.GPUDriverNone
	return checks.GPUs(&s.Facts, s.SKU, s.Cluster.SKUs[s.SKU].GPU, managed)
}

func checkDriver(s *Host) []Finding {
	if s.Driver == nil || s.Driver.Installs && len(s.Driver.Findings) == 0 {
		return nil
	}
	return checks.Driver(&s.Facts, s.Driver.Findings)
}
