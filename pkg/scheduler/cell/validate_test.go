package cell_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// racksOfTwo returns a configuration of two racks of two nodes with two pairs of GPUs each.
func racksOfTwo() cell.Config {
	node := func(name string) cell.Physical { return cell.Physical{Address: name} }
	return cell.Config{
		Types: []cell.Type{
			{Name: "PAIR", Child: "GPU", Children: 2},
			{Name: "NODE", Child: "PAIR", Children: 2, Node: true},
			{Name: "RACK", Child: "NODE", Children: 2},
		},
		Physical: []cell.Physical{
			{Type: "RACK", Children: []cell.Physical{node("n0"), node("n1")}},
			{Type: "RACK", Children: []cell.Physical{node("n2"), node("n3")}},
		},
	}
}

func addresses(cells []cell.Expanded) (out []string) {
	for _, e := range cells {
		if out = append(out, e.Full); len(e.Children) > 0 {
			out = append(out, addresses(e.Children)...)
		}
	}
	return out
}

func TestExpandFillsIn(t *testing.T) {
	t.Run("children and their addresses", func(t *testing.T) {
		c := racksOfTwo()
		c.Physical[1] = cell.Physical{Type: "RACK"}
		cells, err := c.Expand()
		require.NoError(t, err)
		assert.Equal(t, strings.Fields("0 0/n0 0/n0/0 0/n0/0/0 0/n0/0/1 0/n0/1 0/n0/1/2 0/n0/1/3 0/n1 0/n1/0 0/n1/0/0 0/n1/0/1 0/n1/1 0/n1/1/2 0/n1/1/3"), addresses(cells[:1]))
		assert.Equal(t, strings.Fields("1 1/2 1/2/0 1/2/0/0 1/2/0/1 1/2/1 1/2/1/2 1/2/1/3 1/3 1/3/0 1/3/0/0 1/3/0/1 1/3/1 1/3/1/2 1/3/1/3"), addresses(cells[1:]),
			"the second rack's nodes are 2 and 3, and GPUs begin with 0 in each node")
	})
	t.Run("what is written stays", func(t *testing.T) {
		c := racksOfTwo()
		c.Physical = c.Physical[:1]
		c.Physical[0].Address = "r"
		c.Physical[0].Children[1].Children = []cell.Physical{{Address: "7", Pinned: "p", Children: []cell.Physical{{Address: "5"}, {Type: "GPU"}}}, {}}
		cells, err := c.Expand()
		require.NoError(t, err)
		assert.Equal(t, strings.Fields("r/n1 r/n1/7 r/n1/7/5 r/n1/7/1 r/n1/1 r/n1/1/2 r/n1/1/3"), addresses(cells[0].Children[1:]))
		assert.Equal(t, "p", cells[0].Children[1].Children[0].Pinned)
		assert.Equal(t, "GPU", cells[0].Children[1].Children[0].Children[1].Type)
	})
	t.Run("an error names the first mistake", func(t *testing.T) {
		c := racksOfTwo()
		c.Physical[1].Type = "RAK"
		_, err := c.Expand()
		assert.EqualError(t, err, `physicalCluster.physicalCells[1].cellType: there is no cell type "RAK"; the cell types are PAIR, NODE, RACK`)
	})
}

func TestValidate(t *testing.T) {
	pinned := func(c *cell.Config) { c.Physical[0].Children[0].Pinned = "p" }
	vc := func(name string, cells ...cell.Virtual) cell.VirtualCluster {
		return cell.VirtualCluster{Name: name, Cells: cells}
	}
	tests := map[string]struct {
		change func(*cell.Config)
		want   []string // the beginning of each problem; empty if the configuration is valid
	}{
		"a valid one": {func(c *cell.Config) {
			pinned(c)
			c.VirtualClusters = []cell.VirtualCluster{{Name: "a", Cells: []cell.Virtual{{Type: "RACK", Count: 1}, {Type: "RACK.NODE.PAIR", Count: 1}}, Pinned: []string{"p"}}, vc("b", cell.Virtual{Type: "RACK.GPU", Count: 2})}
		}, nil},
		"an empty one":              {func(c *cell.Config) { *c = cell.Config{} }, nil},
		"a type without a name":     {func(c *cell.Config) { c.Types[0].Name = "" }, []string{"physicalCluster.cellTypes.: a cell type has no name"}},
		"a type twice":              {func(c *cell.Config) { c.Types = append(c.Types, c.Types[0]) }, []string{`physicalCluster.cellTypes.PAIR: there are two cell types "PAIR"`}},
		"no children":               {func(c *cell.Config) { c.Types[0].Children = 0 }, []string{"physicalCluster.cellTypes.PAIR.childCellNumber: the number of children is 0", `physicalCluster.physicalCells[0].cellType: the type "RACK" can't be used`}},
		"no child type":             {func(c *cell.Config) { c.Types[0].Child = "" }, []string{"physicalCluster.cellTypes.PAIR.childCellType: the type of its children is missing", "physicalCluster.physicalCells[0]"}},
		"a type in itself":          {func(c *cell.Config) { c.Types[0].Child = "RACK" }, []string{"physicalCluster.cellTypes.PAIR.childCellType: the type contains itself: PAIR, RACK, NODE, PAIR", "physicalCluster.physicalCells[0]"}},
		"a type that is its child":  {func(c *cell.Config) { c.Types = append(c.Types, cell.Type{Name: "X", Child: "X", Children: 1}) }, []string{"physicalCluster.cellTypes.X.childCellType: the type contains itself: X, X"}},
		"an unknown type":           {func(c *cell.Config) { c.Physical[0].Type = "X" }, []string{`physicalCluster.physicalCells[0].cellType: there is no cell type "X"`}},
		"a top cell without a type": {func(c *cell.Config) { c.Physical[0].Type = "" }, []string{"physicalCluster.physicalCells[0].cellType: a top-level cell has no type"}},
		"no node level":             {func(c *cell.Config) { c.Types[1].Node = false }, []string{`physicalCluster.physicalCells[0].cellType: no level of "RACK" is a node`}},
		"several node levels":       {func(c *cell.Config) { c.Types[2].Node = true }, []string{`physicalCluster.physicalCells[0].cellType: several levels of "RACK" are marked`}},
		"a top cell below the node": {func(c *cell.Config) { c.Physical[0] = cell.Physical{Type: "PAIR"} }, []string{"physicalCluster.physicalCells[0].cellType: a top-level cell is a node or above it"}},
		"a GPU at the top":          {func(c *cell.Config) { c.Physical[0] = cell.Physical{Type: "GPU"} }, []string{"physicalCluster.physicalCells[0].cellType: a top-level cell is a node or above it"}},
		"too few children":          {func(c *cell.Config) { c.Physical[0].Children = c.Physical[0].Children[:1] }, []string{`physicalCluster.physicalCells[0].cellChildren: 1 children are listed, but a cell of type "RACK" has 2`}},
		"children of a GPU": {func(c *cell.Config) {
			c.Physical[0].Children[0].Children = []cell.Physical{{Children: []cell.Physical{{Children: make([]cell.Physical, 1)}, {}}}, {}}
		}, []string{`physicalCluster.physicalCells[0].cellChildren[0].cellChildren[0].cellChildren[0].cellChildren: 1 children are listed, but a cell of type "GPU" has 0`}},
		"a child of another type": {func(c *cell.Config) { c.Physical[0].Children[0].Type = "PAIR" }, []string{`physicalCluster.physicalCells[0].cellChildren[0].cellType: the cell is of type "PAIR", and its parent holds cells of type "NODE"`}},
		"a slash in an address":   {func(c *cell.Config) { c.Physical[0].Children[0].Address = "a/b" }, []string{`physicalCluster.physicalCells[0].cellChildren[0].cellAddress: the address "a/b" has a slash`}},
		"a node twice":            {func(c *cell.Config) { c.Physical[1].Children[1].Address = "n0" }, []string{`physicalCluster.physicalCells[1].cellChildren[1].cellAddress: the node "n0" occurs twice in the chain "RACK"`}},
		"a rack's address twice": {func(c *cell.Config) { c.Physical[0].Address, c.Physical[1].Address = "r", "r" },
			[]string{`physicalCluster.physicalCells[1].cellAddress: another cell has the address "r"`}},
		"a pair's address twice": {func(c *cell.Config) {
			c.Physical[0].Children[0].Children = []cell.Physical{{Address: "0"}, {Address: "0"}}
		},
			[]string{`physicalCluster.physicalCells[0].cellChildren[0].cellChildren[1].cellAddress: another cell has the address "0/n0/0"`}},
		"a device twice": {func(c *cell.Config) {
			c.Physical[0].Children[0].Children = []cell.Physical{{Children: []cell.Physical{{Address: "3"}, {}}}, {}}
		}, []string{`physicalCluster.physicalCells[0].cellChildren[0].cellChildren[1].cellChildren[1].cellAddress: device 3 of the node "n0" occurs twice in the configuration, the first time as 0/n0/0/3`}},
		"a device twice in two chains": {func(c *cell.Config) { c.Physical = append(c.Physical, cell.Physical{Type: "NODE", Address: "n0"}) },
			[]string{"physicalCluster.physicalCells[2]", "physicalCluster.physicalCells[2]", "physicalCluster.physicalCells[2]", "physicalCluster.physicalCells[2]"}},
		"a device that is no number": {func(c *cell.Config) {
			c.Physical[0].Children[0].Children = []cell.Physical{{Children: []cell.Physical{{Address: "gpu0"}, {Address: "-1"}}}, {Children: []cell.Physical{{Address: "2147483648"}, {Address: "+7"}}}}
		}, []string{"physicalCluster.physicalCells[0].cellChildren[0].cellChildren[0].cellChildren[0].cellAddress: \"gpu0\" is not the index", "physicalCluster.physicalCells[0]", "physicalCluster.physicalCells[0]", "physicalCluster.physicalCells[0]"}},
		"a pinned id twice":        {func(c *cell.Config) { pinned(c); c.Physical[1].Pinned = "p" }, []string{`physicalCluster.physicalCells[1].pinnedCellId: there are two pinned cells "p"`}},
		"a pinned cell in another": {func(c *cell.Config) { pinned(c); c.Physical[0].Pinned = "q" }, []string{`physicalCluster.physicalCells[0].cellChildren[0].pinnedCellId: the pinned cell "p" is inside the pinned cell "q"`}},
		"an unknown pinned cell":   {func(c *cell.Config) { c.VirtualClusters = []cell.VirtualCluster{{Name: "a", Pinned: []string{"p"}}} }, []string{`virtualClusters.a.pinnedCells[0].pinnedCellId: there is no pinned cell "p"`}},
		"a pinned cell of two owners": {func(c *cell.Config) {
			pinned(c)
			c.VirtualClusters = []cell.VirtualCluster{{Name: "a", Pinned: []string{"p"}}, {Name: "b", Pinned: []string{"p"}}}
		}, []string{`virtualClusters.b.pinnedCells[0].pinnedCellId: the pinned cell "p" already belongs to the virtual cluster "a"`}},
		"no name":             {func(c *cell.Config) { c.VirtualClusters = []cell.VirtualCluster{vc("")} }, []string{`virtualClusters.: "" is not a name`}},
		"a name with a slash": {func(c *cell.Config) { c.VirtualClusters = []cell.VirtualCluster{vc("a/b")} }, []string{`virtualClusters.a/b: "a/b" is not a name`}},
		"a name twice":        {func(c *cell.Config) { c.VirtualClusters = []cell.VirtualCluster{vc("a"), vc("a")} }, []string{`virtualClusters.a: there are two virtual clusters "a"`}},
		"cells of no type":    {func(c *cell.Config) { c.VirtualClusters = []cell.VirtualCluster{vc("a", cell.Virtual{Count: 1})} }, []string{"virtualClusters.a.virtualCells[0].cellType: the type of the cells is missing"}},
		"cells of an unknown chain": {func(c *cell.Config) {
			c.VirtualClusters = []cell.VirtualCluster{vc("a", cell.Virtual{Type: "NODE", Count: 1})}
		}, []string{`virtualClusters.a.virtualCells[0].cellType: there is no top-level cell of type "NODE"`}},
		"cells of an unknown type": {func(c *cell.Config) {
			c.VirtualClusters = []cell.VirtualCluster{vc("a", cell.Virtual{Type: "RACK.X", Count: 1})}
		}, []string{`virtualClusters.a.virtualCells[0].cellType: "RACK" has no type "X" in it`}},
		"a path that goes up": {func(c *cell.Config) {
			c.VirtualClusters = []cell.VirtualCluster{vc("a", cell.Virtual{Type: "RACK.PAIR.NODE", Count: 1})}
		}, []string{`virtualClusters.a.virtualCells[0].cellType: "PAIR" has no type "NODE" in it`}},
		"a path with a hole": {func(c *cell.Config) {
			c.VirtualClusters = []cell.VirtualCluster{vc("a", cell.Virtual{Type: "RACK.", Count: 1})}
		}, []string{`virtualClusters.a.virtualCells[0].cellType: "RACK" has no type "" in it`}},
		"fewer than no cells": {func(c *cell.Config) {
			c.VirtualClusters = []cell.VirtualCluster{vc("a", cell.Virtual{Type: "RACK", Count: -1})}
		}, []string{"virtualClusters.a.virtualCells[0].cellNumber: the number of cells is -1"}},
		"negative quotas": {func(c *cell.Config) {
			c.VirtualClusters = []cell.VirtualCluster{{Name: "a", Quota: cell.Quota{PerUser: -1, PerGroup: -2, Users: map[string]int{"u": -3}, Groups: map[string]int{"": 1}}}}
		}, []string{"virtualClusters.a.quota.perUser: the limit is -1", "virtualClusters.a.quota.perGroup: the limit is -2", "virtualClusters.a.quota.users.u: the limit is -3", "virtualClusters.a.quota.groups: a limit has no name"}},
		"more than there is": {func(c *cell.Config) {
			c.VirtualClusters = []cell.VirtualCluster{vc("a", cell.Virtual{Type: "RACK", Count: 2}), vc("b", cell.Virtual{Type: "RACK", Count: 1})}
		}, []string{"virtualClusters.b.virtualCells[0].cellNumber: the virtual clusters own 3 cells of type RACK (a 2, b 1), and there are 2"}},
		"more than is left": {func(c *cell.Config) {
			c.VirtualClusters = []cell.VirtualCluster{vc("a", cell.Virtual{Type: "RACK", Count: 1}, cell.Virtual{Type: "RACK.PAIR", Count: 5})}
		}, []string{"virtualClusters.a.virtualCells[1].cellNumber: the virtual clusters own 5 cells of type PAIR in the chain RACK (a 5), but of the 8 existing 4 are left beside larger cells of type RACK (a 1)"}},
		"racks that pinned cells split": {func(c *cell.Config) {
			pinned(c)
			c.Physical[1].Children[0].Pinned = "q"
			c.VirtualClusters = []cell.VirtualCluster{{Name: "a", Cells: []cell.Virtual{{Type: "RACK", Count: 1}}, Pinned: []string{"p", "q"}}}
		}, []string{"virtualClusters.a.virtualCells[0].cellNumber: the virtual clusters own 1 cell of type RACK (a 1), but of the 2 existing 0 are left beside pinned cells (p of a, q of a)"}},
		"a pinned cell of nobody splits nothing": {func(c *cell.Config) {
			pinned(c)
			c.VirtualClusters = []cell.VirtualCluster{vc("a", cell.Virtual{Type: "RACK", Count: 2})}
		}, nil},
		"a huge number of children": {func(c *cell.Config) { c.Types[0].Children = 1 << 40 }, []string{"physicalCluster.physicalCells[0]: the cluster has more than"}},
		"a huge number of cells": {func(c *cell.Config) {
			c.VirtualClusters = []cell.VirtualCluster{vc("a", cell.Virtual{Type: "RACK", Count: 1 << 62}, cell.Virtual{Type: "RACK", Count: 1 << 62})}
		}, []string{"virtualClusters.a.virtualCells[0].cellNumber: "}},
		"too many levels": {func(c *cell.Config) {
			for i := range 70 {
				c.Types = append(c.Types, cell.Type{Name: fmt.Sprint("L", i), Child: fmt.Sprint("L", i+1), Children: 1})
			}
		}, []string{"physicalCluster.cellTypes.L0: the type has more than 64 levels"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := racksOfTwo()
			tt.change(&c)
			problems := c.Validate()
			require.Len(t, problems, len(tt.want), "%v", problems)
			for i, p := range problems {
				assert.True(t, strings.HasPrefix(p.Error(), tt.want[i]), "%s", p.Error())
				assert.NotEmpty(t, p.Remedy)
			}
		})
	}
}

// randomDivision returns a small chain with pinned and virtual cells. The configuration may be invalid.
func randomDivision(rnd *rand.Rand) cell.Config {
	c := cell.Config{VirtualClusters: []cell.VirtualCluster{{Name: "a"}, {Name: "b"}}}
	levels := 2 + rnd.IntN(2)
	node := 1 + rnd.IntN(levels-1)
	for i := 1; i < levels; i++ {
		c.Types = append(c.Types, cell.Type{Name: fmt.Sprint("L", i), Child: fmt.Sprint("L", i-1), Children: 1 + rnd.IntN(3), Node: i == node})
	}
	pins := 0
	var build func(level int, inside bool) cell.Physical
	build = func(level int, inside bool) cell.Physical {
		var p cell.Physical
		if !inside && rnd.IntN(8) == 0 {
			p.Pinned = fmt.Sprint("p", pins)
			pins++
			if rnd.IntN(4) > 0 {
				owner := &c.VirtualClusters[rnd.IntN(2)]
				owner.Pinned = append(owner.Pinned, p.Pinned)
			}
		}
		if level > 0 {
			for range c.Types[level-1].Children {
				p.Children = append(p.Children, build(level-1, inside || p.Pinned != ""))
			}
		}
		return p
	}
	top := fmt.Sprint("L", levels-1)
	for range 1 + rnd.IntN(3) {
		p := build(levels-1, false)
		p.Type = top
		c.Physical = append(c.Physical, p)
	}
	for range rnd.IntN(4) {
		vc := &c.VirtualClusters[rnd.IntN(2)]
		vc.Cells = append(vc.Cells, cell.Virtual{Type: strings.TrimSuffix(top+"."+fmt.Sprint("L", rnd.IntN(levels)), "."+top), Count: 1 + rnd.IntN(2)})
	}
	return c
}

// fits reports whether all virtual cells, given by type, can get unowned physical cells. It tries all assignments.
func fits(cells []cell.Expanded, wants []string, owned map[string]bool) bool {
	if len(wants) == 0 {
		return true
	}
	var holds func(e *cell.Expanded) bool // reports whether a cell inside e is already owned
	holds = func(e *cell.Expanded) bool {
		if owned[e.Full] {
			return true
		}
		for i := range e.Children {
			if holds(&e.Children[i]) {
				return true
			}
		}
		return false
	}
	var try func(e *cell.Expanded) bool
	try = func(e *cell.Expanded) bool {
		if owned[e.Full] {
			return false
		}
		if e.Type == wants[0] && !holds(e) {
			owned[e.Full] = true
			if fits(cells, wants[1:], owned) {
				return true
			}
			delete(owned, e.Full)
			return false
		}
		for i := range e.Children {
			if try(&e.Children[i]) {
				return true
			}
		}
		return false
	}
	for i := range cells {
		if try(&cells[i]) {
			return true
		}
	}
	return false
}

func TestAdmissionAgreesWithASearch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var yes, no int
	for round := range 4000 {
		c := randomDivision(rnd)
		cells, err := c.Expand()
		require.NoError(t, err)
		owned := map[string]bool{}
		var wants []string
		ids := map[string]bool{}
		for _, vc := range c.VirtualClusters {
			for _, id := range vc.Pinned {
				ids[id] = true
			}
			for _, v := range vc.Cells {
				for range v.Count {
					wants = append(wants, v.Type[strings.LastIndexByte(v.Type, '.')+1:])
				}
			}
		}
		var mark func(cells []cell.Expanded)
		mark = func(cells []cell.Expanded) {
			for i := range cells {
				if ids[cells[i].Pinned] {
					owned[cells[i].Full] = true
				}
				mark(cells[i].Children)
			}
		}
		mark(cells)
		want := fits(cells, wants, owned)
		problems := c.Validate()
		require.Equal(t, want, len(problems) == 0, "round %d: %+v\n%v", round, c, problems)
		if want {
			yes++
		} else {
			no++
		}
	}
	assert.Greater(t, yes, 500)
	assert.Greater(t, no, 500)
}
