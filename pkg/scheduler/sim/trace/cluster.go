package trace

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

const gpusPerNode = 8

// cluster is a cluster of racks with equal nodes. Every cell belongs to a virtual cluster.
type cluster struct {
	gpus, racks, rackNodes int
	vcs                    []share
}

// share lists the cells of a virtual cluster: whole racks, whole nodes, and quads. A quad is half of a node.
type share struct {
	name                string
	racks, nodes, quads int
}

func (s share) gpus(rackNodes int) int { return (s.racks*rackNodes+s.nodes)*gpusPerNode + s.quads*4 }

// newCluster divides the racks among the virtual clusters. It assigns half of the racks as whole racks in turn. It assigns the
// nodes of the other racks in turn, starting with the last virtual cluster. For every two virtual clusters, it splits one node
// into two quads.
func newCluster(s size) cluster {
	nodes := s.gpus / gpusPerNode
	c := cluster{gpus: s.gpus, rackNodes: min(16, nodes), vcs: make([]share, s.vcs)}
	c.racks = nodes / c.rackNodes
	whole := c.racks / 2
	for i := range c.vcs {
		c.vcs[i].name, c.vcs[i].quads = fmt.Sprintf("vc%d", i), 1
	}
	for i := range whole {
		c.vcs[i%s.vcs].racks++
	}
	for i := range (c.racks-whole)*c.rackNodes - s.vcs/2 {
		c.vcs[s.vcs-1-i%s.vcs].nodes++
	}
	return c
}

// draw returns the virtual cluster that owns GPU n.
func (c cluster) draw(n int) share {
	for _, v := range c.vcs {
		own := v.gpus(c.rackNodes)
		if n < own {
			return v
		}
		n -= own
	}
	return c.vcs[0]
}

func (s share) cells() []cell.Virtual {
	var out []cell.Virtual
	for _, v := range []cell.Virtual{{Type: "RACK", Count: s.racks}, {Type: "RACK.NODE", Count: s.nodes}, {Type: "RACK.NODE.QUAD", Count: s.quads}} {
		if v.Count > 0 {
			out = append(out, v)
		}
	}
	return out
}

func (c cluster) types() []cell.Type {
	return []cell.Type{
		{Name: "PAIR", Child: "GPU", Children: 2},
		{Name: "QUAD", Child: "PAIR", Children: 2},
		{Name: "NODE", Child: "QUAD", Children: 2, Node: true},
		{Name: "RACK", Child: "NODE", Children: c.rackNodes},
	}
}

func (c cluster) config() cell.Config {
	out := cell.Config{Types: c.types()}
	for r := range c.racks {
		rack := cell.Physical{Type: "RACK", Address: strconv.Itoa(r)}
		for k := range c.rackNodes {
			rack.Children = append(rack.Children, cell.Physical{Address: fmt.Sprintf("n%04d", r*c.rackNodes+k)})
		}
		out.Physical = append(out.Physical, rack)
	}
	for _, v := range c.vcs {
		out.VirtualClusters = append(out.VirtualClusters, cell.VirtualCluster{Name: v.name, Cells: v.cells()})
	}
	return out
}

// yaml returns the cluster as a configuration file in HiveD's format.
func (c cluster) yaml() []byte {
	var b bytes.Buffer
	b.WriteString("physicalCluster:\n  cellTypes:\n")
	for _, t := range c.types() {
		fmt.Fprintf(&b, "    %s:\n      childCellType: %s\n      childCellNumber: %d\n", t.Name, t.Child, t.Children)
		if t.Node {
			b.WriteString("      isNodeLevel: true\n")
		}
	}
	b.WriteString("  physicalCells:\n")
	for r := range c.racks {
		b.WriteString("  - cellType: RACK\n    cellChildren:\n")
		for k := range c.rackNodes {
			fmt.Fprintf(&b, "    - cellAddress: n%04d\n", r*c.rackNodes+k)
		}
	}
	b.WriteString("virtualClusters:\n")
	for _, v := range c.vcs {
		fmt.Fprintf(&b, "  %s:\n    virtualCells:\n", v.name)
		for _, x := range v.cells() {
			fmt.Fprintf(&b, "    - cellType: %s\n      cellNumber: %d\n", x.Type, x.Count)
		}
	}
	return b.Bytes()
}
