package cell

import (
	"cmp"
	"slices"
)

// maxCombined is the maximum number of unequal pods for which combine tries combinations.
const maxCombined = 64

// combine tries to place the first pod on each kind of suitable node, and then places the other pods.
func (s *search) combine(sc scope, pods []int) bool {
	if len(pods) == 0 {
		return true
	}
	set := pods[0]
	for _, node := range s.kinds(sc, s.sets[set]) {
		if s.budget--; s.budget < 0 {
			return false
		}
		mark := len(s.undo)
		if s.pod(area{scope{node, node + 1}, int(s.nodes[node].top), 0}, set) {
			if s.combine(sc, pods[1:]) {
				return true
			}
			s.rollback(mark)
			s.filled[set]--
		}
	}
	return false
}

// kinds returns one node of each shape that can hold a pod, fullest node first.
func (s *search) kinds(sc scope, pod setShape) []int32 {
	var out []int32
	for _, b := range s.buckets {
		if b.fit(s.view, pod.n, pod.unit).ok {
			if i := b.nodes.first(int(sc.lo), int(sc.hi)); i >= 0 {
				out = append(out, i)
			}
		}
	}
	slices.SortFunc(out, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.nodes[a].have, s.nodes[b].have), cmp.Compare(a, b))
	})
	return out
}
