// Package nodelabels compares a machine's labels and taints in the layout with those of its Node object.
// In: the labels and taints of a machine's roles; a Node object. Out: labels and taints to set on the node, and labels and taints to remove from it.
// The package sends no requests and writes no files: pkg/cluster makes the changes with kubectl, and pkg/services makes them through the API.
package nodelabels

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Annotation is an annotation of nodes that lists the keys of the labels and taints that paictl has set. paictl removes a listed label or taint when
// it is no longer in the layout. paictl never removes other labels and taints.
const Annotation = "paictl.openpai.org/owned"

// State holds the labels and taints of a node.
type State struct {
	Labels map[string]string
	Taints []string // key[=value]:Effect
	Owned  string   // the value of Annotation
}

// Of returns the labels and taints of a Node object.
func Of(n *corev1.Node) State {
	s := State{Labels: n.Labels, Owned: n.Annotations[Annotation]}
	for _, t := range n.Spec.Taints {
		s.Taints = append(s.Taints, canonical(t.Key+"="+t.Value+":"+string(t.Effect)))
	}
	return s
}

// Difference lists the labels and taints to set on a node and the labels and taints to remove from the node.
type Difference struct {
	Set     []string // labels, key=value
	Drop    []string // labels, key
	Taint   []string // key[=value]:Effect
	Untaint []string // key:Effect
	// Owned is the desired value of Annotation. Record means that the node's value differs from Owned.
	Owned  string
	Record bool
}

// Compare returns the changes after which a node has the given labels and taints.
func Compare(labels map[string]string, taints []string, have State) Difference {
	var d Difference
	gone := map[string]bool{} // owned, but no longer wanted
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
	// kubectl fails when it removes a taint that doesn't exist. A taint also stays if another taint with the same key and effect is desired, because the
	// new value replaces the old value.
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

// CompareLabels is like Compare, but doesn't change taints. Annotation still lists the taints that it listed before.
func CompareLabels(labels map[string]string, have State) Difference {
	taints := slices.DeleteFunc(have.owned(), func(o string) bool { return !isTaint(o) })
	d := Compare(labels, taints, have)
	d.Taint = nil
	return d
}

// Same reports whether the node has the desired labels and taints. The value of Annotation may still differ.
func (d Difference) Same() bool { return len(d.Set)+len(d.Drop)+len(d.Taint)+len(d.Untaint) == 0 }

// Empty reports whether the node needs no changes.
func (d Difference) Empty() bool { return d.Same() && !d.Record }

// String lists the changes in kubectl's syntax: "label a=1, label b-, taint k:NoSchedule-".
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

func isTaint(owned string) bool { return strings.Contains(owned, ":") }

func canonical(t string) string { return strings.Replace(t, "=:", ":", 1) }

// keyAndEffect returns a taint as KEY:EFFECT, the form in which kubectl removes a taint.
func keyAndEffect(t string) string {
	key, effect, _ := strings.Cut(t, ":")
	key, _, _ = strings.Cut(key, "=")
	return key + ":" + effect
}
