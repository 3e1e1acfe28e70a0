package phases

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/nodelabels"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// labels applies the labels and taints of the layout's roles to the cluster's nodes. The leader sets the labels and taints of all nodes.
type labels struct{ want *engine.Desired }

// PhaseLabels is the name of the phase that sets labels and taints.
const PhaseLabels = "labels"

func (*labels) Name() string { return PhaseLabels }
func (*labels) Traits() engine.Traits {
	return engine.Traits{Upgrade: engine.UpgradeAfter, ForOthers: true}
}
func (*labels) Applies(n *engine.Node) bool         { return n.ControlPlane }
func (*labels) Detect(*engine.Node) (string, error) { return ":\n", nil }

// Verify returns shell code that waits for the kubelet's certificate on the machine that created the cluster. On other machines, the phase join
// waits for the certificate.
func (p *labels) Verify(n *engine.Node) string { return serving(p.want, n) }

func (p *labels) Waits(n *engine.Node, _ *engine.Plan) []engine.Step {
	out := []engine.Step{{Host: n.Hostname, Phase: engine.PhaseInit, Must: true}}
	for _, o := range p.want.Nodes {
		out = append(out, engine.Step{Host: o.Hostname, Phase: engine.PhaseJoin})
	}
	return out
}

type relabel struct {
	nodelabels.Difference
	untouched bool
}

func (p *labels) compare(want *engine.Node, have corev1.Node) relabel {
	d := nodelabels.Compare(want.Labels, want.Taints, nodelabels.Of(&have))
	return relabel{Difference: d, untouched: d.Empty()}
}

func (p *labels) Diff(n *engine.Node, w *engine.World) ([]engine.Change, error) {
	if n != w.Leader {
		return nil, nil
	}
	nodes, err := w.Nodes()
	if err != nil {
		return nil, err
	}
	silent := !w.Founding() && !w.Healthy(w.Leader) // without an answer of the API the present nodes are unknown
	var out []engine.Change
	for _, o := range p.want.Nodes {
		if _, known := nodes[o.Hostname]; !w.Concerns(o) || !known && w.Facts[o.Hostname] == nil {
			continue // not selected, or neither in the cluster nor about to join in this run
		}
		have := nodes[o.Hostname]
		again, err := (&join{want: p.want}).Diff(o, w)
		if err != nil {
			return nil, err
		}
		joins := w.Facts[o.Hostname] != nil && len(again) > 0 && !isMove(again)
		if silent && !joins {
			continue
		}
		if joins {
			have = corev1.Node{} // it joins as a new node
		}
		if x := p.compare(o, have); !x.untouched {
			out = append(out, engine.Change{Action: "set", Target: "node " + o.Hostname, Detail: x.String()})
		}
	}
	return out, nil
}

func (p *labels) Apply(ctx context.Context, r *engine.Run, n *engine.Node, cs []engine.Change) error {
	todo := map[string]bool{}
	for _, c := range cs {
		todo[c.Target] = true
	}
	// Read the nodes again, because more nodes may have joined during this run.
	a, err := engine.Answer(r.Read(ctx, n, PhaseLabels, "read", p.want.SelfAPI(n)+engine.DetectScript+"d_nodes\n"))
	if err != nil {
		return err
	}
	nodes, err := engine.ReadNodes(a)
	if err != nil {
		return err
	}
	groups := map[string][]string{} // the nodes that need a command, by command
	for _, o := range p.want.Nodes {
		have, ok := nodes[o.Hostname]
		if !ok || !todo["node "+o.Hostname] {
			continue
		}
		for _, c := range p.compare(o, have).commands() {
			groups[c] = append(groups[c], o.Hostname)
		}
	}
	_, err = r.Script(ctx, n, PhaseLabels, "apply", p.want.SelfAPI(n)+relabelScript(groups))
	return err
}

// relabelScript returns shell code that runs each command for all its nodes. It sets the annotations last. After an interruption, the old annotations
// show that the work is unfinished.
func relabelScript(groups map[string][]string) string {
	var b strings.Builder
	for _, wanted := range []string{"label", "taint", "annotate"} {
		for _, c := range slices.Sorted(maps.Keys(groups)) {
			if verb, rest, _ := strings.Cut(c, " "); verb == wanted {
				fmt.Fprintf(&b, "self %s node %s %s >&2\n", verb, shell.QuoteAll(groups[c]), rest)
			}
		}
	}
	return b.String()
}

// commands returns kubectl commands without the names of nodes: a verb and its arguments.
func (x relabel) commands() []string {
	var out []string
	words := func(add, drop []string) string {
		all := slices.Clone(add)
		for _, d := range drop {
			all = append(all, d+"-")
		}
		return shell.QuoteAll(all)
	}
	if len(x.Set)+len(x.Drop) > 0 {
		out = append(out, "label --overwrite "+words(x.Set, x.Drop))
	}
	if len(x.Taint)+len(x.Untaint) > 0 {
		out = append(out, "taint --overwrite "+words(x.Taint, x.Untaint))
	}
	return append(out, "annotate --overwrite "+shell.Quote(nodelabels.Annotation+"="+x.Owned))
}
