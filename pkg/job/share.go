package job

import (
	"maps"

	"github.com/openpai/paictl/pkg/job/protocol/render"
)

// Share is the part of a machine that goes with one of its GPUs, or the size of a CPU cell.
type Share = render.SKU

// Shares returns the shares of GPUs and CPU cells by type. If vc isn't "", it returns only the types that the virtual cluster owns.
func (f *Facts) Shares(vc string) map[string]Share {
	out := maps.Clone(f.Cluster.SKUs)
	if vc != "" {
		owned := f.Cluster.VirtualClusters[vc].Cells
		maps.DeleteFunc(out, func(leaf string, _ Share) bool { return owned[leaf] == 0 })
	}
	return out
}
