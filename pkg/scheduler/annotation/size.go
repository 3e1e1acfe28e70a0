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
	if p.Text == "" {
		p.Text = shared(r, p)
	}
	own := 0
	for i := range p.Pods {
		own = max(own, len(p.Pods[i].Node)+len(appendIndices(nil, p.Pods[i].Indices)))
	}
	const frame = len(IsolationKey) + len(BindInfoKey) + len(PlacementKey) + 128
	return len(p.Text) + 2*own + len(p.Chain) + frame
}

// LeastSize is what the annotations of a pod of a gang have at least, in bytes, wherever the gang lies: two
// lines for each pod, and for each cell its index and, if it is guaranteed, the address of the virtual one.
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
		n += set.Count * (len("- physicalNode: n\n  physicalLeafCellIndices: []\n") + cells)
	}
	return n
}
