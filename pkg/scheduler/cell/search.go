package cell

import "slices"

// spot is the place of one pod in a view.
type spot struct {
	node    int32
	offsets []int32 // the leaves, counted from the start of the node
}

// search is one attempt to place a gang in a view. It removes the leaves of placed pods from the view, and restores them at the
// end.
type search struct {
	*view
	*shape
	spots  []spot
	filled []int // number of filled slots, by set
	budget int   // candidates that may still be tried, so that no request can block the scheduler
	buf    []int32
}

// maxCandidates is the maximum number of candidates that a search tries. A candidate takes microseconds.
const maxCandidates = 2000

// area is a part of a view for a part of a gang: some nodes, or one cell inside a node.
type area struct {
	scope
	level int // the level of the cell; above the top level for the whole view
	cell  int // the cell within the node, if level is below the node level
}

// place finds the best place for a gang among the free leaves: the lowest cell that can hold the gang, and among such cells the
// best fit. It doesn't change the view.
func (v *view) place(sh *shape) ([]spot, bool) {
	if sh.total > v.free {
		return nil, false
	}
	s := &search{view: v, shape: sh, budget: maxCandidates}
	s.spots = make([]spot, sh.pods)
	s.buf = make([]int32, 0, sh.total)
	if len(sh.sets) > 1 {
		s.filled = make([]int, len(sh.sets))
	} else {
		s.filled = []int{0}
	}
	ok := s.part(area{scope: v.all(), level: v.top() + 1}, sh.root)
	if !ok && sh.loose != nil {
		v.rollback(0)
		s.restart()
		ok = s.flat(area{scope: v.all(), level: v.top() + 1}, sh.loose)
	}
	v.rollback(0)
	return s.spots, ok
}

// restart removes the placed pods of an attempt.
func (s *search) restart() {
	clear(s.filled)
	s.buf, s.budget = s.buf[:0], maxCandidates
}

func (s *search) part(a area, p *part) bool {
	if p.flat() && a.level > s.node {
		return s.flat(a, p)
	}
	if p.within < 0 {
		for level := 0; level < min(a.level, s.top()+1); level++ {
			if s.leaves[level] >= p.leaves && s.inside(a, level, p) {
				return true
			}
		}
		return s.fill(a, p)
	}
	if p.within >= a.level {
		return s.fill(a, p)
	}
	return s.inside(a, p.within, p)
}

type candidate struct {
	area
	free  int
	class uint8
}

// inside tries to place a part in each cell of one level, fullest cell first.
func (s *search) inside(a area, level int, p *part) bool {
	for _, c := range s.candidates(a, level, p.leaves) {
		if s.budget--; s.budget < 0 {
			return false
		}
		mark, filled := len(s.undo), slices.Clone(s.filled)
		if s.fill(c.area, p) {
			return true
		}
		s.rollback(mark)
		copy(s.filled, filled)
	}
	return false
}

// candidates returns the cells of a level that may hold the leaves. It also returns preassigned cells below this level, because
// they are always inside a cell of this level.
func (s *search) candidates(a area, level, need int) []candidate {
	var out []candidate
	for l := level; l > s.node; l-- {
		for i := range s.upper[l-s.node-1] {
			c := &s.upper[l-s.node-1][i]
			if c.lo >= a.lo && c.hi <= a.hi && int(c.free) >= need && (l == level || c.up < 0) {
				out = append(out, candidate{area{scope{c.lo, c.hi}, l, 0}, int(c.free), c.class})
			}
		}
	}
	lo := a.lo
	if level > s.node && len(s.upper[0]) > 0 {
		lo = max(lo, s.upper[0][len(s.upper[0])-1].hi) // nodes without a cell above them come last
	}
	for i := lo; i < a.hi; i++ {
		n := &s.nodes[i]
		if int(n.have) < need {
			continue
		}
		switch {
		case int(n.top) < level && n.up < 0: // a preassigned cell below the level is always inside a cell of that level
			out = append(out, candidate{area{scope{i, i + 1}, int(n.top), 0}, int(n.have), n.class})
		case int(n.top) >= level:
			size := s.leaves[level]
			for c := range s.leaves[n.top] / size {
				if a.level < int(n.top) && c*size/s.leaves[a.level] != a.cell {
					continue
				}
				if free := n.free.count(c*size, (c+1)*size); free >= need {
					out = append(out, candidate{area{scope{i, i + 1}, level, c}, free, n.class})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(x, y candidate) int {
		if x.free != y.free {
			return x.free - y.free
		}
		return int(x.class) - int(y.class)
	})
	return out
}

// fill places a part in an area. It first places the children and then the part's own pods. If that fails, it tries the other
// order.
func (s *search) fill(a area, p *part) bool {
	if len(p.kids) == 0 {
		return s.own(a, p)
	}
	mark, filled := len(s.undo), slices.Clone(s.filled)
	if s.children(a, p) && s.own(a, p) {
		return true
	}
	s.rollback(mark)
	copy(s.filled, filled)
	if s.budget--; s.budget < 0 || len(p.sets) == 0 {
		return false
	}
	return s.own(a, p) && s.children(a, p)
}

func (s *search) children(a area, p *part) bool {
	for _, kid := range p.kids {
		if !s.part(a, kid) {
			return false
		}
	}
	return true
}

// own places the pods of a part that don't belong to its children.
func (s *search) own(a area, p *part) bool {
	if a.level > s.node {
		return s.many(a.scope, p)
	}
	for _, set := range p.sets {
		for range s.sets[set].count {
			if !s.pod(a, set) {
				return false
			}
		}
	}
	return true
}

func (s *search) pod(a area, set int) bool {
	n := &s.nodes[a.lo]
	size := s.leaves[n.top]
	free := s.scratch[:len(n.free)]
	copy(free, n.free)
	if a.level < int(n.top) {
		free.clearRange(0, a.cell*s.leaves[a.level])
		free.clearRange((a.cell+1)*s.leaves[a.level], size)
	}
	shape := s.sets[set]
	if shape.unit > int(n.top) {
		return false
	}
	s.whole(free, int(n.top), shape.unit)
	start := len(s.buf)
	var ok bool
	if s.buf, ok = s.pick(free, int(n.top), shape.n, s.buf); !ok {
		return false
	}
	s.seat(set, a.lo, s.buf[start:])
	return true
}

// seat assigns leaves to the next pod of a set.
func (s *search) seat(set int, node int32, offsets []int32) {
	s.take(node, offsets)
	s.spots[s.starts[set]+s.filled[set]] = spot{node, offsets}
	s.filled[set]++
}

// flat places the pods of a part without groups. It tries one node, then the lowest suitable cell above the node, and then any
// nodes of the area.
func (s *search) flat(a area, p *part) bool {
	if p.unit >= 0 && p.leaves <= s.leaves[s.node] {
		if node := s.bestNode(a.scope, p.leaves, p.unit); node >= 0 && s.together(node, p) {
			return true
		}
	}
	for level := s.node + 1; level < min(a.level, s.top()+1); level++ {
		if s.leaves[level] >= p.leaves && s.above(a, level, p) {
			return true
		}
	}
	return s.many(a.scope, p)
}

// together places all pods of a part on one node. It chooses leaves as for a single pod.
func (s *search) together(node int32, p *part) bool {
	n := &s.nodes[node]
	free := s.scratch[:len(n.free)]
	copy(free, n.free)
	s.whole(free, int(n.top), p.unit)
	start := len(s.buf)
	var ok bool
	if s.buf, ok = s.pick(free, int(n.top), p.leaves, s.buf); !ok {
		return false
	}
	all := s.buf[start:]
	if len(p.sets) == 1 && s.sets[p.sets[0]].count == 1 {
		s.seat(p.sets[0], node, all)
		return true
	}
	free.clearRange(0, s.leaves[n.top])
	for _, o := range all {
		free.set(o)
	}
	for _, set := range p.sets {
		for range s.sets[set].count {
			var own []int32
			if own, ok = s.pick(free, int(n.top), s.sets[set].n, nil); !ok {
				return false
			}
			s.seat(set, node, own)
		}
	}
	return true
}

// above tries the cells of a level above the node that have enough room, fullest cell first. If all pods are equal, the first
// cell fits.
func (s *search) above(a area, level int, p *part) bool {
	last := int64(-1)
	for range 16 {
		best := int64(-1)
		cells := s.upper[level-s.node-1]
		for i := range cells {
			c := &cells[i]
			if c.lo < a.lo || c.hi > a.hi || int(c.free) < p.leaves {
				continue
			}
			rank := int64(c.class)<<60 | int64(c.free)<<32 | int64(i)
			if rank <= last || best >= 0 && rank >= best || s.room(c.hist, p) < 0 {
				continue
			}
			best = rank
		}
		if best < 0 {
			return false
		}
		c := &cells[best&(1<<32-1)]
		mark, filled := len(s.undo), slices.Clone(s.filled)
		if s.many(scope{c.lo, c.hi}, p) {
			return true
		}
		s.rollback(mark)
		copy(s.filled, filled)
		last = best
	}
	return false
}

// room returns how many of a part's largest pods fit on the nodes of a histogram, minus the number of such pods. The result is
// exact for equal pods of leaves. Otherwise it is an upper bound.
func (s *search) room(hist []int32, p *part) int {
	if len(p.sets) == 0 {
		return 0
	}
	set := s.sets[p.sets[0]]
	pods := -set.count
	for have := set.n; have < len(hist); have++ {
		pods += int(hist[have]) * (have / set.n)
	}
	return pods
}

// many places pods on as few nodes of a scope as possible. If pods of different sizes don't fit, it tries other combinations.
func (s *search) many(sc scope, p *part) bool {
	mark, filled := len(s.undo), slices.Clone(s.filled)
	if s.greedy(sc, p) {
		return true
	}
	s.rollback(mark)
	copy(s.filled, filled)
	if len(p.sets) < 2 {
		return false
	}
	var pods []int
	for _, set := range p.sets {
		for range min(s.sets[set].count, maxCombined+1) {
			pods = append(pods, set)
		}
	}
	return len(pods) <= maxCombined && s.combine(sc, pods)
}

// greedy fills one node after the other, largest pods first.
func (s *search) greedy(sc scope, p *part) bool {
	for _, set := range p.sets {
		shape := s.sets[set]
		for left := shape.count; left > 0; {
			node, pods := s.nodeForMost(sc, shape, left)
			if node < 0 {
				return false
			}
			for range pods {
				if !s.pod(area{scope{node, node + 1}, int(s.nodes[node].top), 0}, set) {
					return false
				}
			}
			left -= pods
		}
	}
	return true
}

// nodeForMost returns the node that can hold the most pods, up to left, and the number of these pods. Among equal nodes, it
// chooses the node with the fewest remaining leaves.
func (s *search) nodeForMost(sc scope, shape setShape, left int) (int32, int) {
	for pods := min(left, s.leaves[s.node]/max(shape.n, 1)); pods > 0; pods-- {
		if node := s.bestNode(sc, pods*shape.n, shape.unit); node >= 0 {
			return node, pods
		}
	}
	return -1, 0
}
