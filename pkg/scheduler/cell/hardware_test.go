package cell

import (
	"fmt"
	"strconv"
	"strings"
)

// hardware is the oracle's own list of the cells in a configuration and their owners. It doesn't use the scheduler's cells.
type hardware struct {
	chains []*hwChain
	leaf   map[gpu]*hwLeaf
	nodes  []string
	roots  []*hwRoot
	vleaf  map[string]*hwVirtual
	pins   map[string]hwCell
	cells  int // number of physical cells of all levels
	vcells int
}

type gpu struct {
	node  string
	index int32
}

type hwChain struct {
	names  []string // types by level
	leaves []int
	node   int
	n      int   // number of leaves
	base   []int // first id of the cells, by level
}

type hwLeaf struct {
	chain *hwChain
	i     int
}

type hwCell struct {
	chain *hwChain
	level int
	i     int
}

// hwRoot is a preassigned cell of a virtual cluster.
type hwRoot struct {
	vc, pinned string
	chain      *hwChain
	level      int
}

type hwVirtual struct {
	root *hwRoot
	ids  []int // ids of the virtual cells around it, by level
}

func (ch *hwChain) top() int { return len(ch.names) - 1 }

func (ch *hwChain) level(name string) int {
	for l, n := range ch.names {
		if n == name {
			return l
		}
	}
	return -1
}

func (c hwCell) id() int { return c.chain.base[c.level] + c.i }

func (l *hwLeaf) around(level int) hwCell {
	return hwCell{l.chain, level, l.i / l.chain.leaves[level]}
}

func newHardware(c Config) *hardware {
	h := &hardware{leaf: map[gpu]*hwLeaf{}, vleaf: map[string]*hwVirtual{}, pins: map[string]hwCell{}}
	tops, err := c.Expand()
	if err != nil {
		panic(err)
	}
	seen := map[string]bool{}
	node := map[string]bool{}
	for _, t := range c.Types {
		node[t.Name] = t.Node
	}
	for i := range tops {
		ch := h.chain(tops[i].Type)
		if ch == nil {
			ch = &hwChain{}
			h.chains = append(h.chains, ch)
			for e := &tops[i]; ; e = &e.Children[0] {
				ch.names = append([]string{e.Type}, ch.names...)
				if len(e.Children) == 0 {
					break
				}
			}
			for l, n := range ch.names {
				if node[n] {
					ch.node = l
				}
			}
			ch.leaves = make([]int, len(ch.names))
			e := &tops[i]
			for l := ch.top(); l >= 0; l-- {
				ch.leaves[l] = countLeaves(e)
				if l > 0 {
					e = &e.Children[0]
				}
			}
		}
		h.add(ch, &tops[i], ch.top(), "", seen)
	}
	for _, ch := range h.chains {
		ch.base = make([]int, len(ch.names))
		for l := range ch.names {
			ch.base[l] = h.cells
			h.cells += ch.n / ch.leaves[l]
		}
	}
	for _, v := range c.VirtualClusters {
		h.own(v)
	}
	return h
}

func (h *hardware) chain(top string) *hwChain {
	for _, ch := range h.chains {
		if ch.names[ch.top()] == top {
			return ch
		}
	}
	return nil
}

func countLeaves(e *Expanded) int {
	if len(e.Children) == 0 {
		return 1
	}
	n := 0
	for i := range e.Children {
		n += countLeaves(&e.Children[i])
	}
	return n
}

func (h *hardware) add(ch *hwChain, e *Expanded, level int, node string, seen map[string]bool) {
	if level == ch.node {
		node = e.Address
		if !seen[node] {
			seen[node] = true
			h.nodes = append(h.nodes, node)
		}
	}
	if e.Pinned != "" {
		h.pins[e.Pinned] = hwCell{ch, level, ch.n / ch.leaves[level]}
	}
	if level == 0 {
		index, err := strconv.Atoi(e.Address)
		if err != nil {
			panic(err)
		}
		h.leaf[gpu{node, int32(index)}] = &hwLeaf{ch, ch.n}
		ch.n++
		return
	}
	for i := range e.Children {
		h.add(ch, &e.Children[i], level-1, node, seen)
	}
}

// own numbers the virtual cells by HiveD's rules.
func (h *hardware) own(v VirtualCluster) {
	n := 0
	for _, c := range v.Cells {
		path := strings.Split(c.Type, ".")
		ch := h.chain(path[0])
		for range c.Count {
			h.root(&hwRoot{vc: v.Name, chain: ch, level: ch.level(path[len(path)-1])}, n)
			n++
		}
	}
	for _, id := range v.Pinned {
		p := h.pins[id]
		h.root(&hwRoot{vc: v.Name, pinned: id, chain: p.chain, level: p.level}, n)
		n++
	}
}

func (h *hardware) root(r *hwRoot, n int) {
	h.roots = append(h.roots, r)
	numbers := make([]int, r.level+1)
	var walk func(level int, address string, ids []int)
	walk = func(level int, address string, ids []int) {
		ids = append([]int{h.vcells}, ids...)
		h.vcells++
		if level == 0 {
			h.vleaf[address] = &hwVirtual{r, ids}
			return
		}
		for range r.chain.leaves[level] / r.chain.leaves[level-1] {
			k := numbers[level-1]
			numbers[level-1]++
			walk(level-1, address+"/"+strconv.Itoa(k), ids)
		}
	}
	walk(r.level, fmt.Sprintf("%s/%d", r.vc, n), nil)
}
