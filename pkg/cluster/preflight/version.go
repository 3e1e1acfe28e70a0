package preflight

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/openpai/paictl/pkg/diagnose/checks"
)

// checkVersions fails if a run that isn't an upgrade would change the version of Kubernetes on members. Only an upgrade keeps the required order:
// first the masters one by one, then drained machines. In an upgrade, checkVersions fails for steps that Kubernetes doesn't support.
func checkVersions(all []*Host) []Finding {
	var out []Finding
	for _, s := range all {
		if !s.Joined || s.Cluster.Bundle == nil {
			continue
		}
		have := s.Cluster.Bundle.Manifest().Kubernetes
		if !s.Cluster.Upgrading {
			if runs := s.otherVersion(have); runs != "" {
				out = append(out, s.fail("version",
					fmt.Sprintf("the machine runs Kubernetes %s, the bundle has %s", runs, have), otherwise(runs, have)))
			}
			continue
		}
		for _, p := range s.Programs {
			why, remedy := Skew(p, have)
			if why == "" && !s.Cluster.Back && later(p.Version, have) {
				why, remedy = "the cluster would go back to an earlier release", fmt.Sprintf("if that is intended: run the same command with --to %s; otherwise use the bundle of %s (--bundle)", have, p.Version)
			}
			if why != "" {
				out = append(out, s.fail("version", fmt.Sprintf("its %s has Kubernetes %s, the bundle %s: %s", p.Name, p.Version, have, why), remedy))
			}
		}
	}
	return out
}

// later reports whether a program's release is later than the bundle's release. It returns false if a release can't be parsed.
func later(program, bundle string) bool {
	a, err := version.ParseSemantic(program)
	if err != nil {
		return false
	}
	b, err := version.ParseSemantic(bundle)
	return err == nil && b.LessThan(a)
}

// otherVersion returns a version of the machine's programs that differs from the bundle's version, or "". It ignores versions that can't be parsed,
// because paictl repairs broken programs.
func (s *Host) otherVersion(bundle string) string {
	want, err := version.ParseSemantic(bundle)
	if err != nil {
		return ""
	}
	for _, p := range s.Programs {
		if v, err := version.ParseSemantic(p.Version); err == nil && !v.EqualTo(want) {
			return p.Version
		}
	}
	return ""
}

func otherwise(runs, bundle string) string {
	a, b := version.MustParseSemantic(runs), version.MustParseSemantic(bundle)
	if b.LessThan(a) && b.Minor() != a.Minor() {
		return fmt.Sprintf("use the bundle of %s (--bundle); Kubernetes can't go back to an earlier minor release", runs)
	}
	return fmt.Sprintf("to bring the cluster to %s: paictl cluster upgrade; otherwise use the bundle of %s (--bundle)", bundle, runs)
}

// Skew returns the reason why a single upgrade can't bring a program to the bundle's release, and the remedy. It returns "" if the upgrade is
// possible. See https://kubernetes.io/releases/version-skew-policy/
func Skew(p Program, bundle string) (why, remedy string) {
	from, err := version.ParseSemantic(p.Version)
	if err != nil {
		return "", "" // paictl repairs a broken program
	}
	to, err := version.ParseSemantic(bundle)
	if err != nil {
		return "", ""
	}
	steps := int(to.Minor()) - int(from.Minor())
	if to.Major() != from.Major() {
		steps = checks.KubeletsBehind + 1
	}
	most := 1
	if p.Name == KubeletName {
		most = checks.KubeletsBehind
	}
	switch {
	case steps < 0:
		return "Kubernetes can't go back to an earlier minor release, since etcd holds data that the earlier one can't read",
			fmt.Sprintf("to return to the earlier release, restore a backup that was made with it: paictl cluster restore; otherwise use a bundle of %d.%d", from.Major(), from.Minor())
	case steps > most:
		return "an upgrade may not skip a minor release",
			fmt.Sprintf("upgrade with a bundle of %d.%d first", from.Major(), from.Minor()+1)
	}
	return "", ""
}
