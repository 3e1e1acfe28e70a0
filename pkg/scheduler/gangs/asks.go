package gangs

import (
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

func (s *state) asks(g *gang) api.Request {
	p := g.first()
	if p.request == nil {
		return api.Request{}
	}
	out := api.Request{}
	total, share := s.leavesOf(p), 0
	for _, member := range g.pods {
		for i := range member.object.Spec.Containers {
			limits := member.object.Spec.Containers[i].Resources.Limits
			out.MilliCPU += limits.Cpu().MilliValue()
			out.MemoryMB += (limits.Memory().Value() + 1<<20 - 1) >> 20
		}
		if sets := member.request.Sets(); annotation.SeesNoGPU(member.object) && member.request.Set < len(sets) {
			set := sets[member.request.Set]
			share += set.Cells * s.core.Leaves(set.CellType)
		}
	}
	if s.core.WantsCPU(p.request) {
		out.CPUCells = total
		if or := alternative(s.core, p); or != nil {
			out.OrShareOfGPUs = s.leaves(or)
		}
		return out
	}
	out.ShareOfGPUs = min(share, total)
	out.GPUs = total - out.ShareOfGPUs
	if share > 0 {
		out.ShareReason = s.shareReason(g)
	}
	return out
}

// shareReason explains why pods that see no GPUs occupy GPUs.
func (s *state) shareReason(g *gang) string {
	r, beside := g.first().request, slices.ContainsFunc(g.pods, func(p *pod) bool { return !annotation.SeesNoGPU(p.object) })
	owns := slices.ContainsFunc(s.core.Stats().VirtualClusters, func(v cell.VCStats) bool { return v.Name == g.vc && v.CPU.Guaranteed > 0 })
	switch {
	case r != g.first().preferred:
		return "no CPU cells were free where it may run"
	case r.PinnedCell != "":
		return "the pinned cell " + r.PinnedCell + " has GPUs"
	case r.LeafType != "" && !beside:
		return "it requires machines with " + r.LeafType
	case !owns:
		return g.vc + " owns no machine without GPUs"
	case beside:
		return "other tasks of its group use GPUs"
	}
	return g.vc + " owned no machine without GPUs when it was submitted"
}
