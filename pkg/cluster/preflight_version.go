package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/openpai/paictl/pkg/hint"
)

// checkVersion refuses a configuration that asks for another Kubernetes than the bundle has,
// before any machine is asked.
func (s *Spec) checkVersion() error {
	if s.Bundle == nil {
		return nil
	}
	have, want := s.Bundle.Manifest().Kubernetes, s.Config.Kubernetes.Kubernetes.Version
	if have == want {
		return nil
	}
	remedy := fmt.Sprintf("use a bundle of %s (--bundle), or set kubernetes.version in kubernetes-configuration.yaml to %s", want, have)
	return hint.Wrap(&PreflightError{Findings: []Finding{{
		Check: "version", Severity: SeverityError, Remedy: remedy,
		Message: fmt.Sprintf("the configuration asks for Kubernetes %s, the bundle in %s has %s", want, s.Bundle.Dir(), have),
	}}}, remedy)
}

// checkVersions refuses to bring members of a cluster to another Kubernetes than they run: that
// takes an order of its own (masters one by one, nodes drained), which paictl doesn't have yet.
func checkVersions(all []*subject) []Finding {
	var out []Finding
	for _, s := range all {
		if !s.joined || s.spec.Bundle == nil {
			continue
		}
		have := s.spec.Bundle.Manifest().Kubernetes
		if runs := s.otherVersion(have); runs != "" {
			out = append(out, s.fail("version",
				fmt.Sprintf("the machine runs Kubernetes %s, the bundle has %s: %s", runs, have, notYet(runs, have)),
				fmt.Sprintf("use the bundle of %s (--bundle), or make the cluster again", runs)))
		}
	}
	return out
}

// otherVersion is a version that the machine's kubelet or API server has instead of the
// bundle's, "" where there is none. One that can't be read is none: what is broken is repaired.
func (s *subject) otherVersion(bundle string) string {
	want, err := version.ParseSemantic(bundle)
	if err != nil {
		return ""
	}
	for _, row := range s.seen.sections[phaseKubelet].All("kubernetes") {
		if len(row) < 2 {
			continue
		}
		if v, err := version.ParseSemantic(row[1]); err == nil && !v.EqualTo(want) {
			return row[1]
		}
	}
	return ""
}

func notYet(runs, bundle string) string {
	if version.MustParseSemantic(bundle).LessThan(version.MustParseSemantic(runs)) {
		return "Kubernetes can't go back to an older version"
	}
	return "upgrades are not built yet"
}
