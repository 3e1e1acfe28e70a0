package phases

import (
	"slices"

	"github.com/openpai/paictl/pkg/cluster/engine"
)

// A new setting, unit or program may keep the kubelet or containerd from running. On machines that are already members, and so have pods to lose,
// it therefore rolls out in waves: to one worker; if that works, to two, four and so on, up to a tenth of the workers at once; then to the
// masters, one by one. If no API server responds, the masters come first. If a wave fails, the machines of later waves are left unchanged.
// Machines that are yet to join have no pods to lose and don't wait.

// Stays reports whether the machine is a member of the cluster and nothing in this run makes
// it join again.
func Stays(w *engine.World, n *engine.Node) bool {
	if !w.Member(n) {
		return false
	}
	again, err := (&join{want: w.Want}).Diff(n, w)
	return err == nil && (len(again) == 0 || isMove(again))
}

// rollout returns the steps of a phase for which a machine waits: the steps of the machines in the wave before its own. unit is the unit whose
// restart the waves protect.
func rollout(p *engine.Plan, n *engine.Node, phase, unit string) []engine.Step {
	var before []*engine.Node
	for _, wave := range Waves(p, phase, unit) {
		if !slices.Contains(wave, n) {
			before = wave
			continue
		}
		var out []engine.Step
		for _, o := range before {
			out = append(out, engine.Step{Host: o.Hostname, Phase: phase, Rolls: true})
		}
		return out
	}
	return nil
}

// Waves returns the waves of a phase's rollout, which are the same for all machines.
func Waves(p *engine.Plan, phase, unit string) [][]*engine.Node {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if _, known := p.Rolls[phase]; !known {
		if p.Rolls == nil {
			p.Rolls = map[string][][]*engine.Node{}
		}
		p.Rolls[phase] = split(p, phase, unit)
	}
	return p.Rolls[phase]
}

// split divides the members whose unit starts with changed files into waves, and returns the waves in order. A member whose unit only has to be
// started again tries no new files. If another member does, it still belongs to a wave, since the last run may have failed on it.
func split(p *engine.Plan, phase, unit string) [][]*engine.Node {
	var workers, masters []*engine.Node
	fresh := false
	for _, n := range p.World.Want.Nodes {
		cs := p.Of(n, phase)
		i := slices.IndexFunc(cs, func(c engine.Change) bool {
			return c.Target == unit && c.Action != "enable" || c.Target == servingCertificate
		})
		if i < 0 || !Stays(p.World, n) {
			continue
		}
		fresh = fresh || len(cs) > 1 || cs[i].Action == "restart"
		if n.ControlPlane {
			masters = append(masters, n)
		} else {
			workers = append(workers, n)
		}
	}
	if !fresh {
		return nil
	}
	slices.SortFunc(workers, engine.ByAddress)
	slices.SortFunc(masters, engine.ByAddress)
	var out [][]*engine.Node
	most := max(2, (len(workers)+9)/10)
	for size := 1; len(workers) > 0; size = min(2*size, most) {
		k := min(size, len(workers))
		out, workers = append(out, workers[:k]), workers[k:]
	}
	var last [][]*engine.Node
	for _, m := range masters {
		last = append(last, []*engine.Node{m})
	}
	if !p.World.Healthy(p.World.Leader) {
		// Workers don't become Ready before the control plane is back, and the control plane may need this very change.
		return append(last, out...)
	}
	return append(out, last...)
}
