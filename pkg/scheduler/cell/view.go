package cell

import "math"

// view indexes the free leaves of a forest of cells. A search can find the best place without checking every node. Each virtual
// cluster has a view per chain for its virtual cells, and each chain has a view for its physical cells.
//
// A node of a view is a cell at the node level, or a root below this level. Nodes whose free leaves have the same shape share a
// bucket. A search compares buckets and then takes a node from the best bucket.
type view struct {
	*tree
	nodes   []viewNode
	upper   [][]upperCell // the cells above the node, by level − node − 1
	buckets []*bucket     // only buckets that contain nodes
	byShape map[shapeKey]*bucket
	byBits  map[shapeKey]*bucket // for nodes with up to 16 leaves, directly by their bits
	free    int                  // number of free leaves on nodes that aren't blocked
	scratch bitset
	undo    []taken
	// classFirst prefers nodes of a lower class, even if a larger piece has to be split.
	classFirst bool
}

type viewNode struct {
	lo      int32 // its first leaf in the numbering of the view
	top     int8  // its level
	class   uint8 // among equal nodes, nodes of a lower class are used first
	blocked bool
	up      int32 // index of the cell above it in upper[0], or -1
	have    int32 // number of free leaves; 0 while it is blocked
	free    bitset
	bucket  *bucket
}

type upperCell struct {
	lo, hi int32 // the range of its nodes
	class  uint8 // cells of a lower class are used first
	up     int32 // index of the cell above it in the next level of upper; -1 at the top
	free   int32
	hist   []int32 // number of nodes, by number of free leaves
}

type shapeKey struct {
	shape uint64
	top   int8
	class uint8
}

// bucket is the set of nodes whose free leaves have the same shape.
type bucket struct {
	key   shapeKey
	have  int
	free  bitset // the free leaves of one of its nodes, to evaluate the shape
	nodes bitset
	size  int
	at    int // index of the bucket in view.buckets
	fits  map[fitKey]fit
	small []fitMemo // fits for n single leaves, by n
}

type fitKey struct{ n, unit int }

type fitMemo struct {
	known bool
	fit
}

type taken struct {
	node    int32
	offsets []int32
}

const manyBits = 16

// newView returns a view without free leaves. roots contains the levels of the roots, sorted by their first leaf.
func newView(t *tree, roots []int) *view {
	v := &view{tree: t, byShape: map[shapeKey]*bucket{}, byBits: map[shapeKey]*bucket{}}
	v.upper = make([][]upperCell, max(0, t.top()-t.node))
	lo := int32(0)
	for _, level := range roots {
		v.addRoot(level, &lo)
	}
	v.scratch = newBitset(t.leaves[t.node])
	for i := range v.nodes {
		v.index(int32(i))
	}
	return v
}

func (v *view) addRoot(level int, lo *int32) {
	if level <= v.node {
		n := viewNode{lo: *lo, top: int8(level), up: -1, free: newBitset(v.leaves[level])}
		*lo += int32(v.leaves[level])
		v.nodes = append(v.nodes, n)
		return
	}
	at := level - v.node - 1
	c := upperCell{lo: int32(len(v.nodes)), up: -1, hist: make([]int32, v.leaves[v.node]+1)}
	v.upper[at] = append(v.upper[at], c)
	self := int32(len(v.upper[at]) - 1)
	for range v.fanout[level] {
		below := len(v.nodes)
		v.addRoot(level-1, lo)
		if at == 0 {
			v.nodes[below].up = self
		} else {
			v.upper[at-1][len(v.upper[at-1])-1].up = self
		}
	}
	v.upper[at][self].hi = int32(len(v.nodes))
	v.upper[at][self].hist[0] = int32(len(v.nodes)) - c.lo
}

// mark sets whether a leaf is free. The caller must call index afterwards.
func (v *view) mark(node int32, offset int32, free bool) {
	if free {
		v.nodes[node].free.set(offset)
	} else {
		v.nodes[node].free.clear(offset)
	}
}

// markAll sets whether leaves are free, and updates the index of their nodes.
func (v *view) markAll(leaves []*vcell, free bool) {
	for _, leaf := range leaves {
		v.mark(leaf.node, leaf.lo-leaf.base, free)
	}
	last := int32(-1)
	for _, leaf := range leaves {
		if leaf.node != last {
			last = leaf.node
			v.index(last)
		}
	}
}

// index updates buckets and counts after a change of a node's leaves, class or block.
func (v *view) index(i int32) {
	n := &v.nodes[i]
	b := v.bucketOf(n)
	have := int32(b.have)
	if n.blocked {
		b, have = nil, 0
	}
	if have != n.have {
		v.free += int(have - n.have)
		for level, up := 0, n.up; up >= 0; level++ {
			c := &v.upper[level][up]
			c.hist[n.have]--
			c.hist[have]++
			c.free += have - n.have
			up = c.up
		}
		n.have = have
	}
	if b == n.bucket {
		return
	}
	if old := n.bucket; old != nil {
		old.nodes.clear(i)
		if old.size--; old.size == 0 {
			v.drop(old)
		}
	}
	n.bucket = b
	if b != nil {
		if b.size == 0 {
			b.at = len(v.buckets)
			v.buckets = append(v.buckets, b)
		}
		b.nodes.set(i)
		b.size++
	}
}

func (v *view) drop(b *bucket) {
	last := v.buckets[len(v.buckets)-1]
	v.buckets[b.at], last.at = last, b.at
	v.buckets = v.buckets[:len(v.buckets)-1]
	if v.leaves[b.key.top] > manyBits {
		delete(v.byShape, b.key)
	}
}

func (v *view) bucketOf(n *viewNode) *bucket {
	size := v.leaves[n.top]
	raw := shapeKey{n.free[0], n.top, n.class}
	if size <= manyBits {
		if b := v.byBits[raw]; b != nil {
			return b
		}
	}
	key := shapeKey{v.signature(n.free, int(n.top), 0), n.top, n.class}
	b := v.byShape[key]
	if b == nil {
		b = &bucket{key: key, have: n.free.count(0, size), free: append(bitset(nil), n.free...), nodes: newBitset(len(v.nodes))}
		b.small = make([]fitMemo, size+1)
		v.byShape[key] = b
	}
	if size <= manyBits {
		v.byBits[raw] = b
	}
	return b
}

// fit evaluates how n leaves, in whole cells of level unit, fit on the nodes of a bucket.
func (b *bucket) fit(v *view, n, unit int) fit {
	if n > b.have {
		return fit{}
	}
	if unit == 0 {
		m := &b.small[n]
		if !m.known {
			m.known, m.fit = true, v.best(b.free, int(b.key.top), 0, n)
		}
		return m.fit
	}
	key := fitKey{n, unit}
	if f, ok := b.fits[key]; ok {
		return f
	}
	f := fit{}
	if unit <= int(b.key.top) {
		free := append(bitset(nil), b.free...)
		v.whole(free, int(b.key.top), unit)
		f = v.best(free, int(b.key.top), 0, n)
	}
	if b.fits == nil {
		b.fits = map[fitKey]fit{}
	}
	b.fits[key] = f
	return f
}

const noCost = uint64(math.MaxUint64)

// cost returns a number that orders the nodes for n leaves: first the lowest cell, then the smallest free piece to split, then
// the lowest class, then the fullest node.
func (v *view) cost(b *bucket, f fit) uint64 {
	if v.classFirst {
		return uint64(f.level)<<56 | uint64(b.key.class)<<48 | uint64(min(f.piece, 1<<16-1))<<32 | uint64(min(b.have, 1<<24-1))
	}
	return uint64(f.level)<<48 | uint64(min(f.piece, 1<<16-1))<<32 | uint64(b.key.class)<<24 | uint64(min(b.have, 1<<24-1))
}

// scope is the range of nodes that a search may use.
type scope struct{ lo, hi int32 }

func (v *view) all() scope { return scope{0, int32(len(v.nodes))} }

// bestNode returns the best node for n leaves, or -1.
func (v *view) bestNode(s scope, n, unit int) int32 {
	if int(s.hi-s.lo) <= 2*len(v.buckets) {
		return v.bestOf(s, n, unit)
	}
	var best *bucket
	least := noCost
	ties := false
	for _, b := range v.buckets {
		f := b.fit(v, n, unit)
		if !f.ok {
			continue
		}
		cost := v.cost(b, f)
		if cost > least || b.nodes.first(int(s.lo), int(s.hi)) < 0 {
			continue
		}
		ties = ties && cost == least || cost == least
		best, least = b, cost
	}
	if best == nil {
		return -1
	}
	if ties {
		return v.firstOf(s, least, n, unit)
	}
	return v.fullestUpper(best, s)
}

// bestOf returns the best node of a small scope, or -1, by comparing all nodes.
func (v *view) bestOf(s scope, n, unit int) int32 {
	best, least := int32(-1), noCost
	for i := s.lo; i < s.hi; i++ {
		b := v.nodes[i].bucket
		if b == nil {
			continue
		}
		f := b.fit(v, n, unit)
		if !f.ok {
			continue
		}
		if cost := v.cost(b, f); cost < least || cost == least && v.upperFree(i) < v.upperFree(best) {
			best, least = i, cost
		}
	}
	return best
}

// firstOf returns the best node among buckets with an equal cost. It prefers a node below the fullest cell, and then the first
// node.
func (v *view) firstOf(s scope, cost uint64, n, unit int) int32 {
	best := int32(-1)
	for _, b := range v.buckets {
		f := b.fit(v, n, unit)
		if !f.ok || v.cost(b, f) != cost {
			continue
		}
		i := v.fullestUpper(b, s)
		if i >= 0 && (best < 0 || v.upperFree(i) < v.upperFree(best) || v.upperFree(i) == v.upperFree(best) && i < best) {
			best = i
		}
	}
	return best
}

// upperFree returns the number of free leaves in the cell above a node, or -1 if no such cell exists.
func (v *view) upperFree(i int32) int32 {
	if i < 0 || v.nodes[i].up < 0 {
		return -1
	}
	return v.upper[0][v.nodes[i].up].free
}

// fullestUpper returns the bucket's node below the fullest cell. Other cells then remain whole.
func (v *view) fullestUpper(b *bucket, s scope) int32 {
	first := b.nodes.first(int(s.lo), int(s.hi))
	if first < 0 || len(v.upper) == 0 || b.size == 1 || v.nodes[first].up < 0 {
		return first
	}
	best, least := first, v.upperFree(first)
	for at := int(v.nodes[first].up) + 1; at < len(v.upper[0]); at++ {
		c := &v.upper[0][at]
		if c.lo >= s.hi {
			break
		}
		if c.free >= least {
			continue
		}
		if i := b.nodes.first(int(max(c.lo, s.lo)), int(min(c.hi, s.hi))); i >= 0 {
			best, least = i, c.free
		}
	}
	return best
}

// take marks leaves of a node as used until rollback.
func (v *view) take(node int32, offsets []int32) {
	for _, o := range offsets {
		v.nodes[node].free.clear(o)
	}
	v.index(node)
	v.undo = append(v.undo, taken{node, offsets})
}

// rollback releases the leaves that were taken after the mark.
func (v *view) rollback(mark int) {
	for i := len(v.undo) - 1; i >= mark; i-- {
		t := v.undo[i]
		for _, o := range t.offsets {
			v.nodes[t.node].free.set(o)
		}
		v.index(t.node)
	}
	v.undo = v.undo[:mark]
}

// block excludes a node from all searches, or includes it again.
func (v *view) block(i int32, blocked bool) {
	if v.nodes[i].blocked != blocked {
		v.nodes[i].blocked = blocked
		v.index(i)
	}
}
