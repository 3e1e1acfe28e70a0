package api

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

func TestSameOwner(t *testing.T) {
	one := func(change func(*cell.VirtualCluster)) *VirtualCluster {
		v := cell.VirtualCluster{Name: "a", Cells: []cell.Virtual{{Type: "NODE", Count: 2}, {Type: "NODE.GPU", Count: 1}},
			Pinned: []string{"p"}, Quota: cell.Quota{Users: map[string]int{"u": 1}}}
		change(&v)
		return &Owners(cell.Config{VirtualClusters: []cell.VirtualCluster{v}})[0]
	}
	was := one(func(*cell.VirtualCluster) {})
	for name, c := range map[string]struct {
		change func(*cell.VirtualCluster)
		same   bool
	}{
		"the same in another order":   {func(v *cell.VirtualCluster) { v.Cells[0], v.Cells[1] = v.Cells[1], v.Cells[0] }, true},
		"cells of one type apart":     {func(v *cell.VirtualCluster) { v.Cells[0].Count = 1; v.Cells = append(v.Cells, v.Cells[0]) }, true},
		"an entry without cells":      {func(v *cell.VirtualCluster) { v.Cells = append(v.Cells, cell.Virtual{Type: "RACK"}) }, true},
		"the default policy, by name": {func(v *cell.VirtualCluster) { v.Policy = cell.PolicyName("") }, true},
		"more cells":                  {func(v *cell.VirtualCluster) { v.Cells[1].Count = 2 }, false},
		"another pinned cell":         {func(v *cell.VirtualCluster) { v.Pinned = []string{"q"} }, false},
		"no quota":                    {func(v *cell.VirtualCluster) { v.Quota = cell.Quota{} }, false},
		"another quota":               {func(v *cell.VirtualCluster) { v.Quota.Users = map[string]int{"u": 2} }, false},
		"another policy":              {func(v *cell.VirtualCluster) { v.Policy = "start-now" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.same, was.SameOwner(one(c.change)))
			assert.Equal(t, c.same, one(c.change).SameOwner(was))
		})
	}
}
