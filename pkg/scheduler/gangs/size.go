package gangs

import "github.com/openpai/paictl/pkg/scheduler/cell"

// leavesOf returns the number of GPUs or CPU cells of a pod's gang.
func (s *state) leavesOf(p *pod) int { return s.leaves(p.request) }

// leaves returns the number of GPUs or CPU cells of the gang in a request.
func (s *state) leaves(r *cell.Request) int {
	n := 0
	for _, set := range r.Sets() {
		n += set.Count * set.Cells * s.core.Leaves(set.CellType)
	}
	return n
}
