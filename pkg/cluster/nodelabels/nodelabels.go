// Package nodelabels compares a node's labels and taints in the layout with those that the node has.
// In: the labels and taints of a machine's roles; a node of the API. Out: those that are missing on the node, and
// those to remove. It sends no requests and writes nothing: pkg/cluster writes by kubectl, pkg/services
// by the API.
package nodelabels

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Annotation lists, on a node, the keys of the labels and the taints that paictl has set. Keys that are in it
// and no longer in the layout are removed; other labels and taints stay.
const Annotation = "paictl.openpai.org/owned"

// State is the labels and taints of a node.
type State struct {
	Labels map[string]string
	Taints []string // key[=value]:Effect
	Owned  string   // Annotation
}

// Of returns the State of a node of the API.
func Of(n *corev1.Node) State {
	s := State{Labels: n.Labels, Owned: n.Annotations[Annotation]}
	for _, t := range n.Spec.Taints {
		s.Taints = append(s.Taints, canonical(t.Key+"="+t.Value+":"+string(t.Effect)))
	}
	return s
}

// Difference lists the labels and taints to set on a node, and to remove from it.
type Difference struct {
	Set     []string // labels, key=value
	Drop    []string // labels, key
	Taint   []string // key[=value]:Effect
	Untaint []string // key:Effect
	// Owned is Annotation as it should be; Record has another value.
	Owned  string
	Record bool
}

// Compare returns the changes that give a node the labels and taints.
func Compare(labels map[string]string, taints []string, have State) Difference {
	var d Difference
	gone := map[string]bool{} // owned, and not wanted
	for _, o := range have.owned() {
		gone[o] = true
	}
	var keep []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		keep = append(keep, k)
		if v, ok := have.Labels[k]; !ok || v != labels[k] {
			d.Set = append(d.Set, k+"="+labels[k])
		}
		delete(gone, k)
	}
	// A taint is removed only if the node has it and none of that key and effect is set: kubectl
	// refuses the rest, and a new value replaces the old one.
	has, stays := map[string]bool{}, map[string]bool{}
	for _, t := range have.Taints {
		has[canonical(t)], has[keyAndEffect(t)] = true, true
	}
	for _, t := range taints {
		keep = append(keep, t)
		stays[keyAndEffect(t)] = true
		if !has[canonical(t)] {
			d.Taint = append(d.Taint, t)
		}
		delete(gone, t)
	}
	for _, o := range slices.Sorted(maps.Keys(gone)) {
		_, there := have.Labels[o]
		switch t := keyAndEffect(o); {
		case isTaint(o) && has[t] && !stays[t]:
			d.Untaint = append(d.Untaint, t)
		case !isTaint(o) && there:
			d.Drop = append(d.Drop, o)
		}
	}
	d.Owned = strings.Join(keep, ",")
	d.Record = have.Owned != d.Owned
	return d
}

// CompareLabels is like Compare, but taints are not paictl's to change: those that it owns stay owned.
func CompareLabels(labels map[string]string, have State) Difference {
	taints := slices.DeleteFunc(have.owned(), func(o string) bool { return !isTaint(o) })
	d := Compare(labels, taints, have)
	d.Taint = nil
	return d
}

// Same reports whether the node has the labels and taints. The record may differ.
func (d Difference) Same() bool { return len(d.Set)+len(d.Drop)+len(d.Taint)+len(d.Untaint) == 0 }

// Empty reports whether nothing is to be done.
func (d Difference) Empty() bool { return d.Same() && !d.Record }

// String lists what is to be done, as kubectl writes it: "label a=1, label b-, taint k:NoSchedule-".
func (d Difference) String() string {
	var out []string
	add := func(verb, end string, words []string) {
		for _, w := range words {
			out = append(out, verb+w+end)
		}
	}
	add("label ", "", d.Set)
	add("label ", "-", d.Drop)
	add("taint ", "", d.Taint)
	add("taint ", "-", d.Untaint)
	return strings.Join(out, ", ")
}

func (s State) owned() []string {
	return strings.FieldsFunc(s.Owned, func(c rune) bool { return c == ',' || c == ' ' })
}

// isTaint distinguishes an owned taint from an owned label, whose key has no colon.
func isTaint(owned string) bool { return strings.Contains(owned, ":") }

// canonical writes key=:Effect as key:Effect.
func canonical(t string) string { return strings.Replace(t, "=:", ":", 1) }

// keyAndEffect returns kubectl's form for a taint to remove.
func keyAndEffect(t string) string {
	key, effect, _ := strings.Cut(t, ":")
	key, _, _ = strings.Cut(key, "=")
	return key + ":" + effect
}
