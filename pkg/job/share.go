package job

import (
	"maps"

	"github.com/openpai/paictl/pkg/job/protocol/render"
)

// Share is the part of a machine that belongs to one of its GPUs, or the size of a CPU cell.
type Share = render.SKU

// Shares returns the shares of all types of GPUs and CPU cells, or only of the types that a virtual cluster owns.
func (f *Facts) Shares(vc string) map[string]Share {
	out := maps.Clone(f.Cluster.SKUs)
	if vc != "" {
		owned := f.Cluster.VirtualClusters[vc].Cells
		maps.DeleteFunc(out, func(leaf string, _ Share) bool { return owned[leaf] == 0 })
	}
	return out
}
