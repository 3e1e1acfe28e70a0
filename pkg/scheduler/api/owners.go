package api

import (
	"cmp"
	"maps"
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Owners returns the virtual clusters of a configuration with their cells, sorted by name.
func Owners(c cell.Config) []VirtualCluster {
	out := []VirtualCluster{}
	for i := range c.VirtualClusters {
		v := &c.VirtualClusters[i]
		vc := VirtualCluster{Name: v.Name, PinnedCells: v.Pinned, Policy: cell.PolicyName(v.Policy)}
		for _, cells := range v.Cells {
			vc.Cells = append(vc.Cells, Cells{CellType: cells.Type, CellNumber: cells.Count})
		}
		if q := v.Quota; q.PerUser != 0 || q.PerGroup != 0 || len(q.Users) > 0 || len(q.Groups) > 0 {
			vc.Quota = &Quota{PerUser: q.PerUser, PerGroup: q.PerGroup, Users: q.Users, Groups: q.Groups}
		}
		out = append(out, vc)
	}
	slices.SortFunc(out, func(a, b VirtualCluster) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// SameOwner reports whether two virtual clusters have the same cells, quota and policy. The order of the cells doesn't matter.
func (v *VirtualCluster) SameOwner(o *VirtualCluster) bool {
	return maps.Equal(cellsOf(v.Cells), cellsOf(o.Cells)) && slices.Equal(v.PinnedCells, o.PinnedCells) && v.Quota.same(o.Quota) &&
		cell.PolicyName(v.Policy) == cell.PolicyName(o.Policy)
}

func cellsOf(list []Cells) map[string]int {
	out := map[string]int{}
	for _, c := range list {
		if c.CellNumber != 0 {
			out[c.CellType] += c.CellNumber
		}
	}
	return out
}

func (q *Quota) same(o *Quota) bool {
	if q == nil || o == nil {
		return q == o
	}
	return q.PerUser == o.PerUser && q.PerGroup == o.PerGroup && maps.Equal(q.Users, o.Users) && maps.Equal(q.Groups, o.Groups)
}
