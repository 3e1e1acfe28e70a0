package cell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// New returns a scheduler for a valid configuration. All nodes are bad until SetNode sets them to healthy.
func New(c Config) (*Scheduler, error) {
	if problems := c.Validate(); len(problems) > 0 {
		return nil, problems[0]
	}
	tops, err := c.Expand()
	if err != nil {
		return nil, err
	}
	s := &Scheduler{
		config: c, byVC: map[string]*vc{}, machines: map[string]*machine{},
		gangs: map[gangKey]*gang{}, pods: map[PodID]seat{}, possible: map[string]bool{},
	}
	byName, types := map[string]*chain{}, c.Hierarchy()
	for i := range tops {
		ch := byName[tops[i].Type]
		if ch == nil {
			levels, err := types.Levels(tops[i].Type)
			if err != nil {
				return nil, err
			}
			ch = &chain{tree: treeOf(levels), id: len(s.chains)}
			ch.cells = make([][]*pcell, len(ch.names))
			ch.cpu = slices.Contains(c.Processors, ch.names[0])
			byName[tops[i].Type] = ch
			s.chains = append(s.chains, ch)
		}
		s.physical(ch, &tops[i], ch.top(), nil)
	}
	for rank, name := range slices.Sorted(slices.Values(s.names)) {
		s.machines[name].rank = int32(rank)
	}
	for _, ch := range s.chains {
		ch.finish()
	}
	for _, v := range c.VirtualClusters {
		if err := s.addVC(v, byName); err != nil {
			return nil, err
		}
	}
	for _, ch := range s.chains {
		for _, m := range ch.cells[ch.node] {
			ch.touch(m)
		}
		ch.flush()
		if !ch.feasible(-1, -1, nil) {
			return nil, fmt.Errorf("the virtual clusters own more cells of chain %s than exist", ch.names[ch.top()])
		}
	}
	s.unsettled = true
	return s, nil
}

// treeOf reverses the levels, so that level 0 is the leaf.
func treeOf(levels []Level) *tree {
	n := len(levels)
	t := &tree{names: make([]string, n), fanout: make([]int, n), leaves: make([]int, n)}
	leaves := 1
	for i, l := range slices.Backward(levels) {
		at := n - 1 - i
		leaves *= max(l.Children, 1)
		t.names[at], t.fanout[at], t.leaves[at] = l.Type, l.Children, leaves
		if l.Node {
			t.node = at
		}
	}
	return t
}

func (s *Scheduler) physical(ch *chain, e *Expanded, level int, parent *pcell) *pcell {
	p := &pcell{chain: ch, level: level, index: int32(len(ch.cells[level])), parent: parent, address: e.Full, pinned: e.Pinned}
	ch.cells[level] = append(ch.cells[level], p)
	if level == ch.node {
		p.machine = s.machine(e.Address)
		p.machine.cells = append(p.machine.cells, p)
	} else if parent != nil {
		p.machine = parent.machine
	}
	if level == 0 {
		p.lo = p.index
		p.hi = p.lo + 1
		p.bad = true
		if n, err := strconv.ParseInt(e.Address, 10, 32); err == nil {
			p.device = int32(n)
		}
		for up := p; up != nil; up = up.parent {
			up.badCount++
			if up.level == ch.node {
				p.node = up
			}
		}
		ch.bad++
		return p
	}
	p.lo = int32(len(ch.cells[0]))
	for i := range e.Children {
		p.children = append(p.children, s.physical(ch, &e.Children[i], level-1, p))
	}
	p.hi = int32(len(ch.cells[0]))
	return p
}

func (s *Scheduler) machine(name string) *machine {
	m := s.machines[name]
	if m == nil {
		m = &machine{name: name, broken: map[int32]bool{}}
		s.machines[name] = m
		s.names = append(s.names, name)
	}
	return m
}

func (ch *chain) finish() {
	roots := make([]int, len(ch.cells[ch.top()]))
	for i := range roots {
		roots[i] = ch.top()
	}
	ch.view = newView(ch.tree, roots)
	ch.pressure = make(pressure, len(Policies))
	ch.memos = make([]memo, len(ch.cells[ch.node]))
	ch.badNodes = newBitset(len(ch.cells[ch.node]))
	ch.badNodes.setRange(0, len(ch.cells[ch.node]))
	ch.free = make([]int, len(ch.names))
	ch.owed = make([]int, len(ch.names))
	ch.largest = make([]bitset, len(ch.names))
	for l := range ch.largest {
		ch.largest[l] = newBitset(len(ch.cells[l]))
	}
	ch.free[ch.top()] = len(roots)
	for l := ch.node + 1; l <= ch.top(); l++ {
		ch.counts = append(ch.counts, make([]nodeCount, len(ch.cells[l])))
	}
	ch.largest[ch.top()].setRange(0, len(roots))
}

func (s *Scheduler) addVC(c VirtualCluster, chains map[string]*chain) error {
	v := &vc{name: c.Name, pinned: map[string]*space{}, quota: c.Quota, policy: policyIndex(c.Policy), userUse: map[string]int{}, groupUse: map[string]int{}}
	s.vcs = append(s.vcs, v)
	s.byVC[c.Name] = v
	spaces := map[*chain]*space{}
	n := 0
	for _, cell := range c.Cells {
		path := strings.Split(cell.Type, ".")
		ch := chains[path[0]]
		if ch == nil {
			return fmt.Errorf("virtual cluster %s: no physical cell has type %s", c.Name, path[0])
		}
		level := ch.level(path[len(path)-1])
		sp := spaces[ch]
		if sp == nil {
			sp = &space{vc: v, chain: ch, unbound: make([]int, len(ch.names)), used: make([]int, MaxGuaranteed+1)}
			spaces[ch] = sp
		}
		for range cell.Count {
			sp.roots = append(sp.roots, sp.cell(level, nil, fmt.Sprintf("%s/%d", c.Name, n), map[int]int{}))
			sp.unbound[level]++
			ch.owed[level]++
			n++
		}
	}
	for _, ch := range s.chains {
		if sp := spaces[ch]; sp != nil {
			sp.finish()
			v.spaces = append(v.spaces, sp)
		}
	}
	for _, id := range c.Pinned {
		p := s.pinnedCell(id)
		if p == nil {
			return fmt.Errorf("virtual cluster %s: no physical cell has the pinned id %s", c.Name, id)
		}
		sp := &space{vc: v, chain: p.chain, pinned: id, unbound: make([]int, len(p.chain.names)), used: make([]int, MaxGuaranteed+1)}
		root := sp.cell(p.level, nil, fmt.Sprintf("%s/%d", c.Name, n), map[int]int{})
		sp.roots = append(sp.roots, root)
		n++
		sp.unbound[p.level]++
		p.chain.owed[p.level]++
		sp.finish()
		s.bind(root, p)
		v.pinned[id] = sp
	}
	return nil
}

func (s *Scheduler) pinnedCell(id string) *pcell {
	for _, ch := range s.chains {
		for _, cells := range ch.cells {
			for _, p := range cells {
				if p.pinned == id {
					return p
				}
			}
		}
	}
	return nil
}

// cell returns a new virtual cell with its descendants. numbers counts the cells of each level in the root.
func (sp *space) cell(level int, parent *vcell, address string, numbers map[int]int) *vcell {
	v := &vcell{space: sp, level: level, parent: parent, address: address, node: -1}
	v.root = v
	if parent != nil {
		v.root = parent.root
	}
	for range sp.chain.fanout[level] {
		k := numbers[level-1]
		numbers[level-1]++
		v.children = append(v.children, sp.cell(level-1, v, address+"/"+strconv.Itoa(k), numbers))
	}
	return v
}

// finish numbers the leaves, starting with the largest roots. Then it creates a view in which all leaves are free.
func (sp *space) finish() {
	slices.SortStableFunc(sp.roots, func(a, b *vcell) int { return b.level - a.level })
	var levels []int
	for _, r := range sp.roots {
		levels = append(levels, r.level)
		sp.number(r)
	}
	sp.view = newView(sp.chain.tree, levels)
	for i := range sp.view.nodes {
		n := &sp.view.nodes[i]
		n.class = uint8(sp.leaves[n.lo].root.level)
		for o := range int32(sp.chain.leaves[n.top]) {
			leaf := sp.leaves[n.lo+o]
			leaf.node, leaf.base = int32(i), n.lo
			n.free.set(o)
		}
		sp.view.index(int32(i))
	}
}

func (sp *space) number(v *vcell) {
	v.lo = int32(len(sp.leaves))
	if v.level == 0 {
		sp.leaves = append(sp.leaves, v)
	}
	for _, k := range v.children {
		sp.number(k)
	}
	v.hi = int32(len(sp.leaves))
}
