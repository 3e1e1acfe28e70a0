package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// labels brings the labels and taints of the layout's roles to the cluster's nodes. The leader
// sets them, for all nodes, once they have joined.
type labels struct{ spec *Spec }

const (
	phaseLabels = "labels"
	// ownedAnnotation lists, on a node, the labels and taints that paictl has set, so that
	// those which the layout no longer names are removed, and nobody else's.
	ownedAnnotation = "paictl.openpai.org/owned"
)

func (*labels) name() string                 { return phaseLabels }
func (*labels) applies(n *Node) bool         { return n.ControlPlane }
func (*labels) detect(*Node) (string, error) { return ":\n", nil }
func (*labels) verify(*Node) string          { return "" }

func (p *labels) waits(n *Node, _ *plan) []step {
	out := []step{{host: n.Hostname, phase: phaseInit, must: true}}
	for _, o := range p.spec.Nodes {
		out = append(out, step{host: o.Hostname, phase: phaseJoin})
	}
	return out
}

// relabel is what one node's labels and taints lack, and have too much.
type relabel struct {
	set, drop           []string // key=value; key
	taint, untaint      []string // key[=value]:Effect; key:Effect
	owned               string   // the annotation's new value
	setOwned, untouched bool
}

func (x relabel) String() string {
	var out []string
	for _, s := range x.set {
		out = append(out, "label "+s)
	}
	for _, s := range x.drop {
		out = append(out, "label "+s+"-")
	}
	for _, s := range x.taint {
		out = append(out, "taint "+s)
	}
	for _, s := range x.untaint {
		out = append(out, "taint "+s+"-")
	}
	return strings.Join(out, ", ")
}

// compare tells what has to be done on a node. An unknown node has nothing yet.
func (p *labels) compare(want *Node, have corev1.Node) relabel {
	var x relabel
	owned := map[string]bool{}
	for _, s := range strings.Fields(strings.ReplaceAll(have.Annotations[ownedAnnotation], ",", " ")) {
		owned[s] = true
	}
	var keep []string
	for _, k := range slices.Sorted(maps.Keys(want.Labels)) {
		keep = append(keep, k)
		if v, ok := have.Labels[k]; !ok || v != want.Labels[k] {
			x.set = append(x.set, k+"="+want.Labels[k])
		}
		delete(owned, k)
	}
	// kubectl refuses to remove a taint that is not there, or that it sets as well: key
	// and effect name it, a new value replaces the old one.
	has, stays := map[string]bool{}, map[string]bool{}
	for _, t := range have.Spec.Taints {
		has[taintString(t)], has[t.Key+":"+string(t.Effect)] = true, true
	}
	for _, t := range want.Taints {
		keep = append(keep, t)
		stays[taintKeyEffect(t)] = true
		if !has[canonicalTaint(t)] {
			x.taint = append(x.taint, t)
		}
		delete(owned, t)
	}
	for _, o := range slices.Sorted(maps.Keys(owned)) {
		if !strings.Contains(o, ":") {
			x.drop = append(x.drop, o)
		} else if t := taintKeyEffect(o); has[t] && !stays[t] {
			x.untaint = append(x.untaint, t)
		}
	}
	x.owned = strings.Join(keep, ",")
	x.setOwned = have.Annotations[ownedAnnotation] != x.owned
	x.untouched = len(x.set)+len(x.drop)+len(x.taint)+len(x.untaint) == 0 && !x.setOwned
	return x
}

func (p *labels) diff(n *Node, w *world) ([]Change, error) {
	if n != w.leader {
		return nil, nil
	}
	nodes, err := w.nodes()
	if err != nil {
		return nil, err
	}
	var out []Change
	for _, o := range p.spec.Nodes {
		if _, known := nodes[o.Hostname]; !w.concerns(o) || !known && w.facts[o.Hostname] == nil {
			continue // not meant, or neither in the cluster nor about to join in this run
		}
		have := nodes[o.Hostname]
		if again, err := (&join{spec: p.spec}).diff(o, w); err != nil {
			return nil, err
		} else if w.facts[o.Hostname] != nil && len(again) > 0 {
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
	// The nodes as they are now: those that joined in this run were not there before.
	res, err := r.read(ctx, n, phaseLabels, "read", selfAPI(p.spec, n)+detectScript+"d_nodes\n")
	if err != nil {
		return err
	}
	a, err := parseAnswer(res.Stdout)
	if err != nil {
		return err
	}
	nodes, err := readNodes(a)
	if err != nil {
		return err
	}
	groups := map[string][]string{} // by command, the nodes that need it
	for _, o := range p.spec.Nodes {
		have, ok := nodes[o.Hostname]
		if !ok || !todo["node "+o.Hostname] {
			continue
		}
		for _, c := range p.compare(o, have).commands() {
			groups[c] = append(groups[c], o.Hostname)
		}
	}
	_, err = r.script(ctx, n, phaseLabels, "apply", selfAPI(p.spec, n)+relabelScript(groups))
	return err
}

// relabelScript runs the commands, each for all nodes that need it. The annotations come
// last: while they are old, a run that follows one that was cut off finds the work undone.
func relabelScript(groups map[string][]string) string {
	var b strings.Builder
	for _, wanted := range []string{"label", "taint", "annotate"} {
		for _, c := range slices.Sorted(maps.Keys(groups)) {
			if verb, rest, _ := strings.Cut(c, " "); verb == wanted {
				fmt.Fprintf(&b, "self %s node %s %s >&2\n", verb, quoteAll(groups[c]), rest)
			}
		}
	}
	return b.String()
}

// commands returns kubectl's verb and what follows the names of the nodes.
func (x relabel) commands() []string {
	var out []string
	words := func(add, drop []string) string {
		all := slices.Clone(add)
		for _, d := range drop {
			all = append(all, d+"-")
		}
		return quoteAll(all)
	}
	if len(x.set)+len(x.drop) > 0 {
		out = append(out, "label --overwrite "+words(x.set, x.drop))
	}
	if len(x.taint)+len(x.untaint) > 0 {
		out = append(out, "taint --overwrite "+words(x.taint, x.untaint))
	}
	return append(out, "annotate --overwrite "+quote(ownedAnnotation+"="+x.owned))
}

// canonicalTaint writes key=:Effect as key:Effect.
func canonicalTaint(t string) string { return strings.Replace(t, "=:", ":", 1) }

func taintString(t corev1.Taint) string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}

// taintKeyEffect is how kubectl wants a taint named that shall go.
func taintKeyEffect(t string) string {
	key, effect, _ := strings.Cut(t, ":")
	key, _, _ = strings.Cut(key, "=")
	return key + ":" + effect
}
