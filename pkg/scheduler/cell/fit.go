package cell

// tree is the shape that all cells of a chain share, by level. Level 0 is the leaf.
type tree struct {
	names  []string
	leaves []int // number of leaves in a cell
	fanout []int // number of children of a cell; 0 for the leaf
	node   int   // the level of Kubernetes nodes
}

func (t *tree) top() int { return len(t.names) - 1 }

func (t *tree) level(name string) int {
	for l, n := range t.names {
		if n == name {
			return l
		}
	}
	return -1
}

// fit describes how well n leaves fit into a node. A lower level is better. At the same level, splitting a smaller free piece
// is better.
type fit struct {
	ok    bool
	level int
	// piece is the number of leaves in the largest free cell around the chosen cell. If the chosen cell isn't completely free,
	// piece is the number of its free leaves.
	piece int
	cell  int // index of the chosen cell within the node, at level
}

// best returns the lowest cell inside the cell (top, at) that can hold n of the free leaves. Among several such cells, it
// chooses the cell in the smallest free piece. Leaf offsets count from the start of the node. The cost is linear in the number
// of leaves.
func (t *tree) best(free bitset, top, at, n int) fit {
	lo, hi := at*t.leaves[top], (at+1)*t.leaves[top]
	if free.count(lo, hi) < n {
		return fit{}
	}
	for l := 0; l <= top; l++ {
		size := t.leaves[l]
		if size < n {
			continue
		}
		found := fit{}
		for c := lo / size; c < hi/size; c++ {
			have := free.count(c*size, (c+1)*size)
			if have < n {
				continue
			}
			piece := have
			if have == size {
				piece = t.piece(free, top, l, c)
			}
			if !found.ok || piece < found.piece {
				found = fit{ok: true, level: l, piece: piece, cell: c}
			}
		}
		if found.ok {
			return found
		}
	}
	return fit{}
}

// piece returns the number of leaves in the largest free cell that contains the free cell c of level l. It considers cells up
// to level top.
func (t *tree) piece(free bitset, top, l, c int) int {
	size := t.leaves[l]
	for l < top {
		c /= t.fanout[l+1]
		l++
		up := t.leaves[l]
		if free.count(c*up, (c+1)*up) != up {
			break
		}
		size = up
	}
	return size
}

// pick moves n leaves of a node from free to out. It takes the lowest cell that can hold n leaves, and inside this cell the
// largest whole pieces first. top is the node's level. If the node has too few free leaves, pick returns false and changes
// nothing.
func (t *tree) pick(free bitset, top, n int, out []int32) ([]int32, bool) {
	f := t.best(free, top, 0, n)
	if !f.ok {
		return out, false
	}
	l, c := f.level, f.cell
	for n > 0 {
		size := t.leaves[l]
		lo, hi := c*size, (c+1)*size
		have := free.count(lo, hi)
		if have == n || l == 0 {
			out = free.members(lo, hi, out)
			free.clearRange(lo, hi)
			return out, true
		}
		if f := t.best(free, l, c, n); f.level < l {
			l, c = f.level, f.cell
			continue
		}
		child, most := 0, 0
		below := t.leaves[l-1]
		for k := c * t.fanout[l]; k < (c+1)*t.fanout[l]; k++ {
			if have := free.count(k*below, (k+1)*below); have > most {
				child, most = k, have
			}
		}
		out = free.members(child*below, (child+1)*below, out)
		free.clearRange(child*below, (child+1)*below)
		n -= most
	}
	return out, true
}

// whole removes all leaves from free whose cell at level unit isn't completely free.
func (t *tree) whole(free bitset, top, unit int) {
	size := t.leaves[unit]
	if size == 1 {
		return
	}
	for lo := 0; lo < t.leaves[top]; lo += size {
		if free.count(lo, lo+size) != size {
			free.clearRange(lo, lo+size)
		}
	}
}

// signature returns a number that is equal for cells whose free leaves have the same shape. The order of siblings doesn't
// matter.
func (t *tree) signature(free bitset, l, c int) uint64 {
	size := t.leaves[l]
	have := free.count(c*size, (c+1)*size)
	if have == 0 || have == size || l == 0 {
		return uint64(have)<<8 | uint64(l)
	}
	// The sum is the same for every order of children. Mixing makes different shapes differ.
	sum := uint64(0)
	for k := c * t.fanout[l]; k < (c+1)*t.fanout[l]; k++ {
		sum += mix(t.signature(free, l-1, k))
	}
	return mix(sum + uint64(l))
}

// mix applies the finalizer of splitmix64, which distributes the bits of x.
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB
	return x ^ (x >> 31)
}
