package services

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/services/release"
)

// annotationOwned lists, on a node, the labels and taints that paictl has set. "cluster up"
// keeps the same annotation (pkg/cluster/labels.go); taints are its affair and stay.
const annotationOwned = "paictl.openpai.org/owned"

// patchesAtOnce bounds the nodes that are written at a time.
const patchesAtOnce = 16

// relabel is what a node's labels lack, and have too much.
type relabel struct {
	node   string
	labels map[string]*string // nil removes
	owned  string
}

func (x relabel) String() string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(x.labels)) {
		if v := x.labels[k]; v != nil {
			out = append(out, k+"="+*v)
		} else {
			out = append(out, k+"-")
		}
	}
	if len(out) == 0 {
		return "note which labels are of the layout"
	}
	return "label " + strings.Join(out, ", ")
}

// compareLabels tells what has to be done on a node, nil where nothing. Labels that the
// layout no longer names go where paictl had set them; nobody else's are touched.
func compareLabels(node *corev1.Node, want map[string]string) *relabel {
	x := &relabel{node: node.Name, labels: map[string]*string{}}
	owned := slices.Sorted(maps.Keys(want))
	for _, k := range owned {
		if v, ok := node.Labels[k]; !ok || v != want[k] {
			x.labels[k] = ptr(want[k])
		}
	}
	for _, o := range strings.FieldsFunc(node.Annotations[annotationOwned], func(c rune) bool { return c == ',' || c == ' ' }) {
		_, wanted := want[o]
		_, there := node.Labels[o]
		switch {
		case strings.Contains(o, ":"): // a taint: key[=value]:Effect
			owned = append(owned, o)
		case !wanted && there:
			x.labels[o] = nil
		}
	}
	x.owned = strings.Join(owned, ",")
	if len(x.labels) == 0 && node.Annotations[annotationOwned] == x.owned {
		return nil
	}
	return x
}

// patch is a merge patch: null removes a label.
func (x *relabel) patch() ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"labels": x.labels, "annotations": map[string]string{annotationOwned: x.owned},
	}})
}

// nodeLabels makes the labels of the cluster's nodes those of the layout. Services find
// their machines by them.
func (r *run) nodeLabels(ctx context.Context) error {
	list, err := r.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	nodes := map[string]*corev1.Node{}
	for i := range list.Items {
		nodes[list.Items[i].Name] = &list.Items[i]
	}
	var todo []*relabel
	var missing []string
	for _, m := range r.desired.Config.Layout.MachineList {
		node, ok := nodes[m.Hostname]
		if !ok {
			missing = append(missing, m.Hostname)
		} else if x := compareLabels(node, r.desired.Config.LabelsOf(m)); x != nil {
			todo = append(todo, x)
		}
	}
	if len(missing) > 0 {
		r.warn(plural(len(missing), "machine")+" of the layout not in the cluster: "+strings.Join(missing, ", "),
			"bring them up with: paictl cluster up -p DIR; or take them out of the layout and push it")
	}
	if r.o.DryRun {
		r.planLabels(todo)
		return nil
	}
	return each(todo, patchesAtOnce, func(x *relabel) error { return r.relabel(ctx, x) })
}

func (r *run) planLabels(todo []*relabel) {
	if len(todo) == 0 {
		return
	}
	p := release.Plan{Action: "label"}
	for _, x := range todo {
		p.Changes = append(p.Changes, release.Change{Action: "update", Object: "Node " + x.node, Diff: "+ " + x.String() + "\n"})
	}
	r.plan("", p)
}

func (r *run) relabel(ctx context.Context, x *relabel) error {
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
