package preflight

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// checkVersions refuses to bring members of a cluster to another Kubernetes than they run: that
// takes an order of its own (masters one by one, nodes drained), which paictl doesn't have yet.
func checkVersions(all []*Host) []Finding {
	var out []Finding
	for _, s := range all {
		if !s.Joined || s.Cluster.Bundle == nil {
			continue
		}
		have := s.Cluster.Bundle.Manifest().Kubernetes
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
func (s *Host) otherVersion(bundle string) string {
	want, err := version.ParseSemantic(bundle)
	if err != nil {
		return ""
	}
	for _, runs := range s.Runs {
		if v, err := version.ParseSemantic(runs); err == nil && !v.EqualTo(want) {
			return runs
		}
	}
	return ""
}

func notYet(runs, bundle string) string {
	if version.MustParseSemantic(bundle).LessThan(version.MustParseSemantic(runs)) {
		return "Kubernetes can't be downgraded"
	}
	return "upgrades are not implemented yet"
}
