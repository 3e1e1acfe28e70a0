// Package machines compares the GPUs that machines report with the scheduler's cells. In: a configuration of the scheduler, and the nodes of a
// cluster. Out: the differences, with remedies.
package machines

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// Finding is a difference between a machine and its cells.
type Finding struct {
	Node    string `json:"node"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
	// Failed means that broken GPUs are the only difference. Slower means that jobs on the machine run more slowly.
	Failed, Slower bool `json:"-"`
}

// Reports holds the reports of machines that the cluster stores.
type Reports struct {
	nodes map[string]*corev1.Node
	// numa contains the NUMA node of each GPU, by machine.
	numa map[string]map[int32]int64
}

// Read reads the reports from the cluster. Clusters before Kubernetes 1.34 don't support this version of ResourceSlices. In
// such clusters, the NUMA nodes of GPUs are unknown.
func Read(ctx context.Context, client kubernetes.Interface) (*Reports, error) {
	out := &Reports{nodes: map[string]*corev1.Node{}, numa: map[string]map[int32]int64{}}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	for i := range nodes.Items {
		out.nodes[nodes.Items[i].Name] = &nodes.Items[i]
	}
	list, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: resourceapi.ResourceSliceSelectorDriver + "=" + claim.Driver})
	if apierrors.IsNotFound(err) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the GPUs that agents publish: %w", err)
	}
	for i := range list.Items {
		s := &list.Items[i].Spec
		if s.NodeName == nil || s.Driver != claim.Driver {
			continue
		}
		for _, d := range s.Devices {
			index, numa := d.Attributes["index"].IntValue, d.Attributes["numaNode"].IntValue
			if index == nil || numa == nil {
				continue
			}
			if out.numa[*s.NodeName] == nil {
				out.numa[*s.NodeName] = map[int32]int64{}
			}
			out.numa[*s.NodeName][int32(*index)] = *numa
		}
	}
	return out, nil
}

// Compare returns the differences between the machines and the cells of a valid configuration, sorted by machine. silent lists
// the machines whose agents haven't reported.
func Compare(c cell.Config, t *Reports) (findings []Finding, silent []string, err error) {
	s, err := cell.New(c)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range s.Nodes() {
		devices := s.Devices(name)
		if len(devices) == 0 {
			continue
		}
		n := t.nodes[name]
		if n == nil {
			findings = append(findings, Finding{Node: name, Message: "the cluster has no such node", Remedy: "paictl cluster up adds it; or remove it from the configuration"})
			continue
		}
		if n.Annotations[api.DevicesAnnotation] == "" {
			silent = append(silent, name)
			continue
		}
		r := api.CompareNode(name, s.LeafType(name), devices, n.Annotations[api.DevicesAnnotation])
		if text := r.Difference(); text != "" {
			findings = append(findings, Finding{
				Node: name, Message: text, Failed: r.OnlyFailed(),
				Remedy: "repair the machine, or change its SKU in layout.yaml (or its cells, if you write them) to match its hardware",
			})
		}
		cells := s.Cells(name)
		for _, level := range slices.Sorted(maps.Keys(cells)) {
			findings = append(findings, spread(name, level, cells[level], t.numa[name])...)
		}
	}
	for name, n := range t.nodes {
		if n.Annotations[api.DevicesAnnotation] == "" || s.Devices(name) != nil {
			continue
		}
		if r := api.CompareNode(name, "", nil, n.Annotations[api.DevicesAnnotation]); len(r.Unexpected) > 0 {
			findings = append(findings, Finding{
				Node: name, Message: fmt.Sprintf("its GPUs %v are in no cell: no job gets them", r.Unexpected),
				Remedy: "add the machine to the cells; paictl makes them from layout.yaml if services-configuration.yaml doesn't define any",
			})
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Node, b.Node) })
	return findings, silent, nil
}

// spread finds cells with GPUs on several NUMA nodes although one NUMA node has enough GPUs for the cell. Users expect the GPUs
// of such a cell to be close to each other.
func spread(node, level string, cells [][]int32, numa map[int32]int64) (out []Finding) {
	sockets := map[int64]int{}
	for _, at := range numa {
		sockets[at]++
	}
	for _, devices := range cells {
		on := map[int64]bool{}
		for _, d := range devices {
			at, known := numa[d]
			if !known {
				return nil
			}
			on[at] = true
		}
		most := 0
		for _, n := range sockets {
			most = max(most, n)
		}
		if len(on) > 1 && len(devices) <= most {
			names := make([]string, 0, len(on))
			for _, at := range slices.Sorted(maps.Keys(on)) {
				names = append(names, fmt.Sprint(at))
			}
			out = append(out, Finding{
				Node: node, Message: fmt.Sprintf("a cell %s has GPUs %v, which are on the NUMA nodes %s", level, devices, strings.Join(names, " and ")), Slower: true,
				Remedy: "order cellChildren of the machine by the NUMA nodes of its GPUs (nvidia-smi topo -m)",
			})
		}
	}
	return out
}

// Node returns the Kubernetes node of a machine, or nil if the node doesn't exist.
func (t *Reports) Node(name string) *corev1.Node { return t.nodes[name] }
