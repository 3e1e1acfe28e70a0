package annotation

import (
	"strconv"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// MaxSize is the maximum size of a pod's annotations, in bytes. Kubernetes accepts 256 KiB. It checks the size only when a pod
// is updated after binding, and then rejects every update of a larger pod. The difference is reserved for other annotations.
const MaxSize = 240 << 10

// Size returns an upper bound for the size of each pod's annotations at this place, in bytes.
func Size(r *cell.Request, p *cell.Placement) int {
	largest, most := 0, 0
	for i := range p.Pods {
		if own := len(p.Pods[i].Node) + 2*len(Isolation(p.Pods[i].Indices)); own > most {
			largest, most = i, own
		}
	}
	at := &p.Pods[largest]
	b := Write(r, &cell.Decision{Result: cell.Bind, Node: at.Node, Indices: at.Indices, Chain: p.Chain, Placement: p, Slot: len(p.Pods)})
	return len(IsolationKey) + len(b.Isolation) + len(BindInfoKey) + len(b.BindInfo) + len(PlacementKey) + len(b.Placement)
}

// LeastSize returns a lower bound for the size of each pod's annotations on any nodes, in bytes. It counts the text of each
// pod, the index of each cell, and the virtual address of each guaranteed cell.
func LeastSize(r *cell.Request) int {
	n := 0
	for _, set := range r.Sets() {
		cells := 0
		for i := range set.Cells {
			cells += len(strconv.Itoa(i)) + len(",")
		}
		if r.Priority >= cell.MinGuaranteed {
			cells += set.Cells * len(`"0/0",`)
		}
		n += set.Count * (len(`{"physicalNode":"n","physicalLeafCellIndices":[]},`) + cells)
	}
	return n
}
