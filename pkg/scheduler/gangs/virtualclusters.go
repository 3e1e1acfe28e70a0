package gangs

import (
	"maps"
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// virtualClusters returns all virtual clusters with the cells that they own and use.
func (s *state) virtualClusters(config *configuration, problem string) api.VirtualClusters {
	out := api.VirtualClusters{Generation: s.generation, Items: api.Owners(config.cells), Problem: problem}
	stats := s.core.Stats()
	gangs, pods := s.waitingByVC()
	for i := range out.Items {
		vc := &out.Items[i]
		vc.WaitingGangs, vc.WaitingPods = gangs[vc.Name], pods[vc.Name]
		j := slices.IndexFunc(stats.VirtualClusters, func(v cell.VCStats) bool { return v.Name == vc.Name })
		if j >= 0 {
			fill(vc, &stats.VirtualClusters[j])
		}
	}
	out.Deleted = s.deleted(config.cells, gangs, pods)
	return out
}

// deleted returns the virtual clusters of gangs that the configuration doesn't contain. It counts the cells and the waiting
// gangs.
func (s *state) deleted(config cell.Config, gangs, pods map[string]int) []api.VirtualCluster {
	found := map[string]*api.VirtualCluster{}
	for key := range s.gangs {
		if hasVC(config, key.vc) {
			continue
		}
		v := found[key.vc]
		if v == nil {
			v = &api.VirtualCluster{Name: key.vc, WaitingGangs: gangs[key.vc], WaitingPods: pods[key.vc]}
			found[key.vc] = v
		}
		status, ok := s.core.Gang(key.vc, key.name)
		if !ok {
			continue
		}
		v.Opportunistic += status.GPUs
		if status.CPUCells > 0 {
			if v.CPU == nil {
				v.CPU = &cell.CPUStats{}
			}
			v.CPU.Opportunistic += status.CPUCells
		}
	}
	var out []api.VirtualCluster
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[name])
	}
	return out
}

func hasVC(c cell.Config, name string) bool {
	return slices.ContainsFunc(c.VirtualClusters, func(v cell.VirtualCluster) bool { return v.Name == name })
}

func (s *state) waitingByVC() (gangs, pods map[string]int) {
	gangs, pods = map[string]int{}, map[string]int{}
	for _, g := range s.gangs {
		if n := g.waiting(); n > 0 {
			gangs[g.vc]++
			pods[g.vc] += n
		}
	}
	return gangs, pods
}

func fill(vc *api.VirtualCluster, stats *cell.VCStats) {
	vc.Guaranteed, vc.Used, vc.Opportunistic, vc.Bad = stats.Guaranteed, stats.UsedGuaranteed, stats.Opportunistic, stats.Bad
	vc.Fragmentation, vc.FreeByLevel, vc.Leaves = stats.Fragmentation, stats.FreeByLevel, stats.Leaves
	vc.CPU = nil
	if stats.CPU != (cell.CPUStats{}) {
		vc.CPU = &stats.CPU
	}
	for _, level := range stats.FreeByLevel {
		vc.Free += level.GPUs * level.Count
	}
}
