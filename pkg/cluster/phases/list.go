package phases

import (
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/hint"
)

// In returns the phases of "cluster up" that run in the given part of an upgrade.
func In(d *engine.Desired, part engine.UpgradePart) []engine.Phase {
	return slices.DeleteFunc(All(d), func(p engine.Phase) bool { return p.Traits().Upgrade != part })
}

// NamesIn returns the names of the phases that run in the given part of an upgrade.
func NamesIn(part engine.UpgradePart) []string {
	var out []string
	for _, p := range In((&engine.Spec{}).Fresh(), part) {
		out = append(out, p.Name())
	}
	return out
}

// All returns the phases of "cluster up" in the order in which they run.
func All(d *engine.Desired) []engine.Phase {
	return []engine.Phase{
		&base{want: d}, &NvidiaDriver{want: d}, &containerd{want: d}, &tools{want: d}, &images{want: d}, &approver{want: d}, &kubelet{want: d},
		&apiProxy{want: d}, &initialise{want: d}, &network{want: d}, &join{want: d}, &labels{want: d}, &apiVIP{want: d},
	}
}

// Named returns the phase with this name.
func Named(d *engine.Desired, name string) engine.Phase {
	all := All(d)
	return all[slices.IndexFunc(all, func(p engine.Phase) bool { return p.Name() == name })]
}

// Names returns the names of the phases of "cluster up" in order, beginning with preflight.
func Names() []string {
	out := []string{"preflight"}
	for _, p := range All((&engine.Spec{}).Fresh()) {
		out = append(out, p.Name())
	}
	return out
}

// CheckNames returns an error if one of the names isn't the name of a phase.
func CheckNames(names []string) error {
	all := Names()
	for _, name := range names {
		if !slices.Contains(all, name) {
			return hint.Errorf("the phases are: "+strings.Join(all, ", "), "there is no phase %q", name)
		}
	}
	return nil
}
