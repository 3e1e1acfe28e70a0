package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/nodelabels"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// labels applies the labels and taints of the layout's roles to the cluster's nodes. The leader
// sets them, for all nodes, once they have joined.
type labels struct{ want *desired }

const phaseLabels = "labels"

func (*labels) name() string                 { return phaseLabels }
func (*labels) traits() traits               { return traits{upgrade: upgradeAfter, forOthers: true} }
func (*labels) applies(n *Node) bool         { return n.ControlPlane }
func (*labels) detect(*Node) (string, error) { return ":\n", nil }

// verify waits for the certificate of the machine on which the cluster was made. The others waited when they joined.
func (p *labels) verify(n *Node) string { return p.want.serving(n) }

func (p *labels) waits(n *Node, _ *plan) []step {
	out := []step{{host: n.Hostname, phase: phaseInit, must: true}}
	for _, o := range p.want.Nodes {
		out = append(out, step{host: o.Hostname, phase: phaseJoin})
	}
	return out
}

// relabel holds the difference between a node's labels and taints and the wanted ones.
type relabel struct {
	nodelabels.Difference
	untouched bool
}

// compare returns the changes to make on a node. An unknown node has no labels yet.
func (p *labels) compare(want *Node, have corev1.Node) relabel {
	d := nodelabels.Compare(want.Labels, want.Taints, nodelabels.Of(&have))
	return relabel{Difference: d, untouched: d.Empty()}
}

func (p *labels) diff(n *Node, w *world) ([]Change, error) {
	if n != w.leader {
		return nil, nil
	}
	nodes, err := w.nodes()
	if err != nil {
		return nil, err
	}
	silent := !w.founding() && !w.healthy(w.leader) // the present nodes are unknown
	var out []Change
	for _, o := range p.want.Nodes {
		if _, known := nodes[o.Hostname]; !w.concerns(o) || !known && w.facts[o.Hostname] == nil {
			continue // not selected, or neither in the cluster nor about to join in this run
		}
		have := nodes[o.Hostname]
		again, err := (&join{want: p.want}).diff(o, w)
		if err != nil {
			return nil, err
		}
		joins := w.facts[o.Hostname] != nil && len(again) > 0 && !isMove(again)
		if silent && !joins {
			continue
		}
		if joins {
			have = corev1.Node{} // it joins as a new node
		}
		if x := p.compare(o, have); !x.untouched {
			out = append(out, Change{Action: "set", Target: "node " + o.Hostname, Detail: x.String()})
		}
	}
	return out, nil
}

func (p *labels) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	todo := map[string]bool{}
	for _, c := range cs {
		todo[c.Target] = true
	}
	// It reads the nodes again, to include those that joined in this run.
	res, err := r.read(ctx, n, phaseLabels, "read", p.want.selfAPI(n)+detectScript+"d_nodes\n")
	if err != nil {
		return err
	}
	a, err := answer.Parse(res.Stdout)
	if err != nil {
		return err
	}
	nodes, err := readNodes(a)
	if err != nil {
		return err
	}
	groups := map[string][]string{} // by command, the nodes that need it
	for _, o := range p.want.Nodes {
		have, ok := nodes[o.Hostname]
		if !ok || !todo["node "+o.Hostname] {
			continue
		}
		for _, c := range p.compare(o, have).commands() {
			groups[c] = append(groups[c], o.Hostname)
		}
	}
	_, err = r.script(ctx, n, phaseLabels, "apply", p.want.selfAPI(n)+relabelScript(groups))
	return err
}

// relabelScript runs the commands, each for all nodes that need it. The annotations come last:
// while they are old, a run after an interrupted one finds the work unfinished.
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

// commands returns the kubectl commands without the names of the nodes: verb and arguments.
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
