package books

// leavesOf is the size of a pod's whole gang, in GPUs or CPU cells.
func (s *state) leavesOf(p *pod) int {
	n := 0
	for _, set := range p.request.Sets() {
		n += set.Count * set.Cells * s.core.Leaves(set.CellType)
	}
	return n
}
