package phases

import (
	"slices"

	"github.com/openpai/paictl/pkg/cluster/engine"
)

// A new setting, unit or program may prevent the kubelet or containerd from running. On members, such a change therefore rolls out in waves. The
// first wave is one worker. The next waves are two workers, four workers and so on, up to a tenth of all workers. Then the masters follow one by
// one. If no API server responds, the masters come first. If a wave fails, the machines of later waves stay unchanged. Machines that haven't joined
// yet run no pods, so they don't wait.

// StaysMember reports whether the machine is a member of the cluster and doesn't join again in this run.
func StaysMember(w *engine.World, n *engine.Node) bool {
	if !w.Member(n) {
		return false
	}
	again, err := (&join{want: w.Want}).Diff(n, w)
	return err == nil && (len(again) == 0 || isMove(again))
}

// rollout returns the steps of the machines in the previous wave. The machine n must wait for these steps. unit is the target of the change that
// rolls out in waves.
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

// Waves returns the waves of a phase's rollout. It computes them only once, so that they are the same for all machines.
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

// split divides the members whose unit starts with changed files into waves. It returns nil if no unit has changed files. A member whose unit only
// has to be started also belongs to a wave if another member has changed files. The last run may have failed on such a member.
func split(p *engine.Plan, phase, unit string) [][]*engine.Node {
	var workers, masters []*engine.Node
	fresh := false
	for _, n := range p.World.Want.Nodes {
		cs := p.Of(n, phase)
		i := slices.IndexFunc(cs, func(c engine.Change) bool {
			return c.Target == unit && c.Action != "enable" || c.Target == servingCertificate
		})
		if i < 0 || !StaysMember(p.World, n) {
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
		// Workers become Ready only when the control plane works again, and this change may repair the control plane.
		return append(last, out...)
	}
	return append(out, last...)
}
