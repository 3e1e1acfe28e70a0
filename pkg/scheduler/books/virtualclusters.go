package books

import (
	"cmp"
	"maps"
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// virtualClusters lists what teams own and use.
func (s *state) virtualClusters(config *configuration, problem string) api.VirtualClusters {
	out := api.VirtualClusters{Generation: s.generation, Items: owners(config.cells), Problem: problem}
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
	out.Deleted = s.deleted(config.cells)
	return out
}

// deleted are the virtual clusters that gangs name and the configuration hasn't got, with what those gangs
// hold and how many wait.
func (s *state) deleted(config cell.Config) []api.VirtualCluster {
	gangs, pods := s.waitingByVC()
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

// waitingByVC counts gangs and pods that wait.
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

// owners are the virtual clusters of a configuration, in order of name, without what is used.
func owners(c cell.Config) []api.VirtualCluster {
	out := []api.VirtualCluster{}
	for i := range c.VirtualClusters {
		v := &c.VirtualClusters[i]
		vc := api.VirtualCluster{Name: v.Name, PinnedCells: v.Pinned, Policy: cell.PolicyName(v.Policy)}
		for _, cells := range v.Cells {
			vc.Cells = append(vc.Cells, api.Cells{CellType: cells.Type, CellNumber: cells.Count})
		}
		if q := v.Quota; q.PerUser != 0 || q.PerGroup != 0 || len(q.Users) > 0 || len(q.Groups) > 0 {
			vc.Quota = &api.Quota{PerUser: q.PerUser, PerGroup: q.PerGroup, Users: q.Users, Groups: q.Groups}
		}
		out = append(out, vc)
	}
	slices.SortFunc(out, func(a, b api.VirtualCluster) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// fill sets the numbers of a virtual cluster.
func fill(vc *api.VirtualCluster, stats *cell.VCStats) {
	vc.Guaranteed, vc.Used, vc.Opportunistic, vc.Bad = stats.Guaranteed, stats.UsedGuaranteed, stats.Opportunistic, stats.Bad
	vc.Fragmentation, vc.FreeByLevel = stats.Fragmentation, stats.FreeByLevel
	vc.CPU = nil
	if stats.CPU != (cell.CPUStats{}) {
		vc.CPU = &stats.CPU
	}
	for _, level := range stats.FreeByLevel {
		vc.Free += level.GPUs * level.Count
	}
}
