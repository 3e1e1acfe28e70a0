package config

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// checkGPUsForPods reports handwritten cells with GPUs that the layout reserves for ordinary pods. Otherwise gangs and ordinary
// pods could use the same GPUs.
func (r *reader) checkGPUsForPods(l layout.Layout, c cell.Config) {
	w := givenWalk{reader: r, node: map[string]bool{}, given: map[string][]int{}}
	for _, m := range l.MachineList {
		if len(m.GPUsForPods) > 0 {
			w.given[m.Hostname] = m.GPUsForPods
		}
	}
	cells, err := c.Expand()
	if err != nil || len(w.given) == 0 {
		return
	}
	for _, t := range c.Types {
		w.node[t.Name] = t.Node
		if t.Node && slices.Contains(c.Processors, t.Child) {
			w.node[t.Name] = false // CPU cells have no GPUs
		}
	}
	for i := range cells {
		w.cell(&cells[i], &c.Physical[i], strictyaml.Path{"physicalCluster", "physicalCells", i})
	}
}

// givenWalk walks the cells to find GPUs that the layout reserves for ordinary pods. given contains these GPUs by node.
type givenWalk struct {
	*reader
	node  map[string]bool
	given map[string][]int
}

// cell walks a cell. written is the definition of the cell at path, or nil if the file doesn't define this cell.
func (w *givenWalk) cell(e *cell.Expanded, written *cell.Physical, path strictyaml.Path) {
	if w.node[e.Type] {
		w.leaves(e, e.Address, path)
		return
	}
	for i := range e.Children {
		child, at := (*cell.Physical)(nil), path
		if written != nil && i < len(written.Children) {
			child, at = &written.Children[i], path.With("cellChildren", i)
		}
		w.cell(&e.Children[i], child, at)
	}
}

// leaves reports the reserved GPUs below a cell of a node. The findings have the node's position in the file.
func (w *givenWalk) leaves(e *cell.Expanded, node string, path strictyaml.Path) {
	var both []int
	var walk func(e *cell.Expanded)
	walk = func(e *cell.Expanded) {
		for i := range e.Children {
			walk(&e.Children[i])
		}
		if index, err := strconv.Atoi(e.Address); len(e.Children) == 0 && err == nil && slices.Contains(w.given[node], index) {
			both = append(both, index)
		}
	}
	walk(e)
	if len(both) > 0 {
		w.add(strictyaml.Error, path, "scheduler/gpus-for-pods", fmt.Sprintf("the cell %s has the GPUs %v, which layout.yaml gives to ordinary pods (gpus-for-pods)", e.Full, both),
			"use a cell type with fewer children, and list the remaining GPUs in cellChildren by their cellAddress; or remove these from gpus-for-pods")
	}
}
