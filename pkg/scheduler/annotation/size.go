package annotation

import (
	"strconv"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// MaxSize bounds the annotations of one pod, in bytes. Kubernetes takes 256 KiB, but counts only when a pod is
// written after it was bound: then nothing can be written any more. What is left is for others' annotations.
const MaxSize = 240 << 10

// Size is what the annotations of a pod of a gang with this place have at most, in bytes.
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

// LeastSize is what the annotations of a pod of a gang have at least, in bytes, wherever the gang lies: the
// frame of each pod, and for each cell its index and, if it is guaranteed, the address of the virtual one.
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
