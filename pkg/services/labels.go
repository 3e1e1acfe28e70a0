package services

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/cluster/nodelabels"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/release"
	"github.com/openpai/paictl/pkg/ui/plural"
)

const patchesAtOnce = 16

// nodeLabels handles the node labels that services use to select machines. If paictl installed Kubernetes, "cluster up" writes these labels from the
// operator's folder, and a start only reports differences from the cluster's copy. Otherwise "cluster up" and a start could undo each other's
// changes. On other clusters, a start writes the labels.
func (r *run) nodeLabels(ctx context.Context, chosen []*catalogue.Service) error {
	list, err := r.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	nodes := map[string]*corev1.Node{}
	for i := range list.Items {
		nodes[list.Items[i].Name] = &list.Items[i]
	}
	r.tellAbsent(nodes)
	if r.desired.Config.IsManaged() {
		r.tellDifferent(nodes, r.tellUnlabelled(nodes, chosen))
		return nil
	}
	todo := r.toLabel(nodes)
	if r.o.DryRun {
		r.planLabels(todo)
		return nil
	}
	return each(todo, patchesAtOnce, func(x relabel) error { return r.relabel(ctx, x) })
}

// tellAbsent warns about machines of the layout that aren't nodes.
func (r *run) tellAbsent(nodes map[string]*corev1.Node) {
	var absent []string
	for _, m := range r.desired.Config.Layout.MachineList {
		if nodes[m.Hostname] == nil {
			absent = append(absent, m.Hostname)
		}
	}
	if len(absent) == 0 {
		return
	}
	remedy := "add them with: paictl cluster up -p DIR; or remove them from the layout and push it"
	if !r.desired.Config.IsManaged() {
		remedy = "let them join the cluster, or remove them from the layout and push it"
	}
	r.warn(plural.Of(len(absent), "machine")+" of the layout not in the cluster: "+strings.Join(absent, ", "), remedy)
}

const remedyLabels = "make the nodes match the layout with: paictl cluster up -p DIR"

// tellUnlabelled warns about nodes without the labels that services use to select machines. Without these labels, pods would remain pending.
// tellUnlabelled returns the reported labels by node.
func (r *run) tellUnlabelled(nodes map[string]*corev1.Node, chosen []*catalogue.Service) map[string]map[string]bool {
	without := map[string][]string{} // the nodes, by missing label and service
	told := map[string]map[string]bool{}
	for _, m := range r.desired.Config.Layout.MachineList {
		node := nodes[m.Hostname]
		if node == nil {
			continue
		}
		missing, unplaced := map[string]bool{}, []string(nil)
		for _, s := range chosen {
			if lost := r.lost(s, m, node); len(lost) > 0 {
				unplaced = append(unplaced, s.Name)
				for _, l := range lost {
					missing[l] = true
				}
			}
		}
		if len(unplaced) > 0 {
			what := fmt.Sprintf("%s, so no pod of %s is placed there", strings.Join(sorted(missing), ", "), strings.Join(unplaced, ", "))
			without[what] = append(without[what], m.Hostname)
			told[m.Hostname] = missing
		}
	}
	for _, what := range slices.Sorted(maps.Keys(without)) {
		r.warn(someNodes(without[what])+" without the label "+what, remedyLabels)
	}
	return told
}

// lost returns the missing labels that prevent a node from running pods of a service, if the machine has a role in the service's placement. If the
// machine has several such roles, the labels of one role are sufficient.
func (r *run) lost(s *catalogue.Service, m layout.Machine, node *corev1.Node) []string {
	var out []string
	for _, role := range s.Placement {
		if !m.HasRole(role) {
			continue
		}
		var missing []string
		for k, v := range r.desired.Config.Roles.Roles[role].Labels {
			if have, ok := node.Labels[k]; !ok || have != v {
				missing = append(missing, k+"="+v)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		out = append(out, missing...)
	}
	return out
}

// tellDifferent warns about nodes whose labels or taints differ from the cluster's copy. tellDifferent leaves out labels that were already reported.
// Either the copy or the labels may be newer.
func (r *run) tellDifferent(nodes map[string]*corev1.Node, told map[string]map[string]bool) {
	cfg := r.desired.Config
	by := map[string][]string{} // nodes by difference
	for _, m := range cfg.Layout.MachineList {
		if node := nodes[m.Hostname]; node != nil {
			d := nodelabels.Compare(cfg.LabelsOf(m), cfg.TaintsOf(m), nodelabels.Of(node))
			d.Set = slices.DeleteFunc(d.Set, func(label string) bool { return told[m.Hostname][label] })
			if !d.Same() {
				by[missingAndExtra(d)] = append(by[missingAndExtra(d)], m.Hostname)
			}
		}
	}
	if len(by) == 0 {
		return
	}
	differences := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(len(by[b])-len(by[a]), strings.Compare(a, b))
	})
	var parts []string
	for i, d := range differences {
		if i == maxTold {
			parts = append(parts, "and "+plural.Of(len(differences)-i, "more difference"))
			break
		}
		parts = append(parts, someNodes(by[d])+" "+d)
	}
	r.warn("labels or taints differ from the cluster's copy of the layout, and are not changed: "+strings.Join(parts, "; "),
		"if layout.yaml was edited, but not pushed: paictl config push -p DIR; if it was pushed, but the nodes don't match it: paictl cluster up -p DIR")
}

// missingAndExtra describes how a node differs from the layout. An example is "is missing label a=1 and has label b of an earlier or newer layout".
func missingAndExtra(d nodelabels.Difference) string {
	missing := nodelabels.Difference{Set: d.Set, Taint: d.Taint}
	var parts []string
	if !missing.Same() {
		parts = append(parts, "is missing "+missing.String())
	}
	var has []string
	for _, l := range d.Drop {
		has = append(has, "label "+l)
	}
	for _, t := range d.Untaint {
		has = append(has, "taint "+t)
	}
	if len(has) > 0 {
		parts = append(parts, "has "+strings.Join(has, ", ")+" of an earlier or newer layout")
	}
	return strings.Join(parts, " and ")
}

// maxTold is the maximum number of nodes in a warning, because a cluster may have thousands of nodes.
const maxTold = 5

// someNodes returns the first names, and the number of the remaining names.
func someNodes(names []string) string {
	if len(names) <= maxTold {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxTold], ", "), len(names)-maxTold)
}

type relabel struct {
	nodelabels.Difference
	node string
}

func (x relabel) String() string {
	if x.Same() {
		return "note the labels of the layout"
	}
	return x.Difference.String()
}

// toLabel returns the changes of all nodes whose labels differ from the layout. toLabel doesn't manage taints, because paictl didn't install this
// cluster.
func (r *run) toLabel(nodes map[string]*corev1.Node) []relabel {
	var todo []relabel
	for _, m := range r.desired.Config.Layout.MachineList {
		if node := nodes[m.Hostname]; node != nil {
			if d := nodelabels.CompareLabels(r.desired.Config.LabelsOf(m), nodelabels.Of(node)); !d.Empty() {
				todo = append(todo, relabel{d, m.Hostname})
			}
		}
	}
	return todo
}

// patch returns a merge patch for the node. In the patch, null removes a label.
func (x relabel) patch() ([]byte, error) {
	labels := map[string]*string{}
	for _, kv := range x.Set {
		k, v, _ := strings.Cut(kv, "=")
		labels[k] = &v
	}
	for _, k := range x.Drop {
		labels[k] = nil
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"labels": labels, "annotations": map[string]string{nodelabels.Annotation: x.Owned},
	}})
}

func (r *run) planLabels(todo []relabel) {
	if len(todo) == 0 {
		return
	}
	p := release.Plan{Action: "label"}
	for _, x := range todo {
		p.Changes = append(p.Changes, release.Change{Action: "update", Object: "Node " + x.node, Diff: "+ " + x.String() + "\n"})
	}
	r.plan("", p)
}

func (r *run) relabel(ctx context.Context, x relabel) error {
	body, err := x.patch()
	if err == nil {
		_, err = r.Client.CoreV1().Nodes().Patch(ctx, x.node, types.MergePatchType, body, metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("label the node %s: %w", x.node, err)
	}
	r.tell("", x.String(), "on node "+x.node)
	return nil
}

func ptr[T any](v T) *T { return &v }
