package books

import (
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// leavesOf is the size of a pod's whole gang.
func (s *state) leavesOf(p *pod) int {
	n := 0
	for _, set := range p.request.Sets() {
		n += set.Count * set.Cells * s.leaves(set.CellType)
	}
	return n
}

// leaves is how many GPUs or CPU cells a cell of a type has.
func (s *state) leaves(cellType string) int {
	n := 1
	for range s.types { // a type that contains itself is refused, but this ends anyway
		i := slices.IndexFunc(s.types, func(t cell.Type) bool { return t.Name == cellType })
		if i < 0 {
			break
		}
		n, cellType = n*s.types[i].Children, s.types[i].Child
	}
	return n
}
