package catalogue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/layout"
)

// badPlacement describes the mistake in a placement. badPlacement returns "" for a valid placement.
func badPlacement(placement []string) string {
	if len(placement) == 0 {
		return "it names no role"
	}
	for i, role := range placement {
		if (role == PlacementAll || role == PlacementNone) && len(placement) > 1 {
			return fmt.Sprintf("%q can't be combined with other roles", role)
		}
		if slices.Index(placement, role) < i {
			return fmt.Sprintf("%q is listed twice", role)
		}
	}
	return ""
}

func placementRemedy(cfg *config.Cluster) string {
	return fmt.Sprintf("write %s, or some of the roles: %s", PlacementAll, strings.Join(sorted(maps.Keys(cfg.Roles.Roles)), ", "))
}

// onRoles reports whether a placement consists of roles.
func onRoles(placement []string) bool {
	return !slices.Contains(placement, PlacementAll) && !slices.Contains(placement, PlacementNone)
}

// machinesOf returns the machines that a placement allows, in the layout's order.
func machinesOf(cfg *config.Cluster, placement []string) []layout.Machine {
	if slices.Contains(placement, PlacementNone) {
		return nil
	}
	var out []layout.Machine
	for _, m := range cfg.Layout.MachineList {
		if slices.Contains(placement, PlacementAll) || slices.ContainsFunc(placement, m.HasRole) {
			out = append(out, m)
		}
	}
	return out
}

// checkPlacement reports enabled services that no machine can run.
func (b *builder) checkPlacement() {
	for _, name := range sorted(maps.Keys(b.services)) {
		s := b.services[name]
		if !s.Enabled || !onRoles(s.Placement) {
			continue
		}
		ok := true
		for _, role := range s.Placement {
			ok = b.checkRole(s.Name, role) && ok
		}
		if ok && len(machinesOf(b.cfg, s.Placement)) == 0 {
			b.fail(at(s.Name, keyPlacement), "services/placement", fmt.Sprintf("no machine has the role %s, so %s could not run anywhere", strings.Join(s.Placement, " or "), s.Name),
				fmt.Sprintf("give a machine of layout.yaml the role, or set placement of %s to roles that machines have, or enabled: false", s.Name))
		}
	}
}

func (b *builder) checkRole(service, name string) bool {
	role, ok := b.cfg.Roles.Roles[name]
	switch {
	case !ok:
		b.fail(at(service, keyPlacement), "services/placement", fmt.Sprintf("there is no role %q", name), placementRemedy(b.cfg))
	case len(role.Labels) == 0:
		b.fail(at(service, keyPlacement), "services/placement", fmt.Sprintf("the role %s has no labels, so Kubernetes can't distinguish its machines from others", name),
			"give the role labels in "+config.RolesFile)
	default:
		return true
	}
	return false
}

// placementValues returns the chart values for the machines of a placement.
func placementValues(cfg *config.Cluster, placement []string) map[string]any {
	switch {
	case slices.Contains(placement, PlacementNone):
		return nil
	case slices.Contains(placement, PlacementAll):
		return map[string]any{keyTolerations: []any{map[string]any{"operator": "Exists"}}}
	}
	terms := []any{}
	for _, name := range placement {
		if labels := cfg.Roles.Roles[name].Labels; len(labels) > 0 {
			terms = append(terms, nodeSelectorTerm(labels))
		}
	}
	if len(terms) == 0 {
		return nil
	}
	return map[string]any{
		keyAffinity: map[string]any{"nodeAffinity": map[string]any{
			"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": terms},
		}},
		keyTolerations: tolerations(cfg, placement),
	}
}

func nodeSelectorTerm(labels map[string]string) map[string]any {
	match := []any{}
	for _, key := range sorted(maps.Keys(labels)) {
		match = append(match, map[string]any{"key": key, "operator": "In", "values": []any{labels[key]}})
	}
	return map[string]any{"matchExpressions": match}
}

// tolerations returns tolerations for the taints of all roles of the placement's machines. This includes roles that aren't in the placement. Pods
// don't tolerate taints of a single machine in the layout.
func tolerations(cfg *config.Cluster, placement []string) []any {
	taints := map[string]bool{}
	for _, name := range placement {
		for _, taint := range cfg.Roles.Roles[name].Taints {
			taints[taint] = true
		}
	}
	for _, m := range machinesOf(cfg, placement) {
		m.Taints = nil
		for _, taint := range cfg.TaintsOf(m) {
			taints[taint] = true
		}
	}
	out := []any{}
	for _, taint := range sorted(maps.Keys(taints)) {
		out = append(out, toleration(taint))
	}
	return out
}

func toleration(taint string) map[string]any {
	rest, effect, _ := strings.Cut(taint, ":")
	key, value, _ := strings.Cut(rest, "=")
	out := map[string]any{"key": key, "operator": "Exists"}
	if value != "" {
		out["operator"], out["value"] = "Equal", value
	}
	if effect != "" {
		out["effect"] = effect
	}
	return out
}
