package cluster

import (
	"fmt"
	"slices"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
)

// A new setting, unit or program may keep the kubelet or containerd from running. On machines that
// are members already, and have pods to lose, it therefore rolls out: to one machine, and when that
// works to two, four and so on, up to a tenth of the workers at once; then to the masters, one by
// one (first to them while no API answers). If it fails in one wave, the later machines are left
// unchanged. Machines that are yet to join have no pods to lose and don't wait.

// heldBack is the error of a machine that was left unchanged, since the same change failed elsewhere.
type heldBack struct{ phase, host string }

func (*heldBack) leftAlone() {}

func (e *heldBack) Error() string {
	return fmt.Sprintf("not changed: the new %s settings failed on %s", e.phase, e.host)
}

func newHeldBack(phase, host string) error {
	return hint.Wrap(&heldBack{phase: phase, host: host},
		fmt.Sprintf("repair %s, or correct the setting, and run the same command again; --limit continues without a broken machine", host))
}

// stays reports whether the machine is a member of the cluster and nothing in this run makes
// it join again.
func (w *world) stays(n *Node) bool {
	if !w.member(n) {
		return false
	}
	again, err := (&join{want: w.want}).diff(n, w)
	return err == nil && (len(again) == 0 || isMove(again))
}

// rollout returns the steps of a phase for which a machine waits: those of the wave before its own.
// unit is the one whose restart the waves protect.
func (p *plan) rollout(n *Node, phase, unit string) []step {
	var before []*Node
	for _, wave := range p.waves(phase, unit) {
		if !slices.Contains(wave, n) {
			before = wave
			continue
		}
		var out []step
		for _, o := range before {
			out = append(out, step{host: o.Hostname, phase: phase, rolls: true})
		}
		return out
	}
	return nil
}

// waves returns the waves of a phase's rollout, which are the same for all machines.
func (p *plan) waves(phase, unit string) [][]*Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.rolls[phase]; !known {
		if p.rolls == nil {
			p.rolls = map[string][][]*Node{}
		}
		p.rolls[phase] = p.split(phase, unit)
	}
	return p.rolls[phase]
}

// split returns the members whose unit starts from other files than before, in the order in which
// they are changed. A unit that only has to be started again tries no new files. Beside such a
// change it still counts, since the last run may have failed on it.
func (p *plan) split(phase, unit string) [][]*Node {
	var workers, masters []*Node
	fresh := false
	for _, n := range p.world.want.Nodes {
		cs := p.of(n, phase)
		i := slices.IndexFunc(cs, func(c Change) bool { return c.Target == unit && c.Action != "enable" || c.Target == servingCertificate })
		if i < 0 || !p.world.stays(n) {
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
	slices.SortFunc(workers, byAddress)
	slices.SortFunc(masters, byAddress)
	var out [][]*Node
	most := max(2, (len(workers)+9)/10)
	for size := 1; len(workers) > 0; size = min(2*size, most) {
		k := min(size, len(workers))
		out, workers = append(out, workers[:k]), workers[k:]
	}
	var last [][]*Node
	for _, m := range masters {
		last = append(last, []*Node{m})
	}
	if !p.world.healthy(p.world.leader) {
		// Workers don't become Ready before the control plane is back, which may need this very change.
		return append(last, out...)
	}
	return append(out, last...)
}

func byAddress(a, b *Node) int { return layout.CompareAddresses(a.HostIP, b.HostIP) }
