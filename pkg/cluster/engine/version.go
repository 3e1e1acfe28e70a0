package engine

import (
	"fmt"

	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/hint"
)

// checkVersion returns an error if the configuration requires another version of Kubernetes than the bundle contains.
func (s *Spec) checkVersion() error {
	if s.Bundle == nil {
		return nil
	}
	have, want := s.Bundle.Manifest().Kubernetes, s.Config.Kubernetes.Kubernetes.Version
	if have == want {
		return nil
	}
	remedy := fmt.Sprintf("to upgrade a cluster: paictl cluster upgrade; otherwise use a bundle of %s (--bundle), or set kubernetes.version in kubernetes-configuration.yaml to %s", want, have)
	return hint.Wrap(&PreflightError{Findings: []preflight.Finding{{
		Check: "version", Severity: preflight.SeverityError, Remedy: remedy,
		Message: fmt.Sprintf("the configuration requires Kubernetes %s, but the bundle in %s has %s", want, s.Bundle.Dir(), have),
	}}}, remedy)
}
