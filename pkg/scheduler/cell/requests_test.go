package cell

import "fmt"

// anyRequest returns a random request. The cluster can meet most of these requests.
func (w *world) anyRequest(c *choices, name string) *Request {
	v := &w.conf.VirtualClusters[c.n(len(w.conf.VirtualClusters))]
	r := &Request{
		VirtualCluster: v.Name, Gang: name, Priority: pick(c, 0, -1, 5, -1, 0, 1, -1, 1000, 0, 7),
		LazyPreemption: c.in(30), OnlySuggested: c.in(15),
	}
	if c.in(30) {
		r.User, r.UserGroup = pick(c, "u0", "u1", "u2"), pick(c, "", "g0", "g1")
	}
	if len(v.Pinned) > 0 && c.in(35) {
		r.PinnedCell = pick(c, v.Pinned...)
	}
	ch := w.chainFor(c, v, r)
	if c.in(15) {
		r.LeafType = ch.names[0]
	}
	if c.in(35) {
		r.Root = anyGroup(c, ch, 0)
	} else {
		for range 1 + pick(c, 0, 0, 0, 0, 1, 2) {
			r.Root.Pods = append(r.Root.Pods, PodSet{Count: 1 + pick(c, 0, 0, 1, 0, 1, 2, 3), Cells: anySize(c, ch)})
		}
	}
	if c.in(4) {
		spoil(c, r)
	}
	return r
}

// chainFor returns a chain. In most cases, the virtual cluster owns cells in the chain.
func (w *world) chainFor(c *choices, v *VirtualCluster, r *Request) *hwChain {
	if r.PinnedCell != "" {
		if ch := w.hw.pins[r.PinnedCell].chain; ch != nil {
			return ch
		}
	}
	if len(v.Cells) > 0 && r.Priority >= 0 {
		path := v.Cells[c.n(len(v.Cells))].Type
		for _, ch := range w.hw.chains {
			top := ch.names[len(ch.names)-1]
			if path == top || len(path) > len(top) && path[:len(top)+1] == top+"." {
				return ch
			}
		}
	}
	return w.hw.chains[c.n(len(w.hw.chains))]
}

func anySize(c *choices, ch *hwChain) int {
	node := ch.leaves[ch.node]
	switch c.n(6) {
	case 0:
		return node
	case 1:
		return ch.leaves[c.n(ch.node+1)]
	case 2:
		return 1
	}
	return 1 + c.n(node)
}

func anyGroup(c *choices, ch *hwChain, depth int) Group {
	g := Group{}
	if c.in(45) {
		g.Within = ch.names[c.n(len(ch.names))]
	}
	for range c.n(3) {
		level := c.n(ch.node + 1)
		set := PodSet{Count: 1 + pick(c, 0, 0, 1, 2), Cells: 1 + c.n(max(1, ch.leaves[ch.node]/ch.leaves[level]))}
		if level > 0 || c.in(50) {
			set.CellType = ch.names[level]
		}
		g.Pods = append(g.Pods, set)
	}
	if depth < 2 {
		for range pick(c, 0, 0, 1, 2) {
			g.Children = append(g.Children, anyGroup(c, ch, depth+1))
		}
	}
	if len(g.Pods) == 0 && len(g.Children) == 0 {
		g.Pods = []PodSet{{Count: 1, Cells: 1}}
	}
	return g
}

func spoil(c *choices, r *Request) {
	switch c.n(14) {
	case 0:
		r.VirtualCluster = "Z"
	case 1:
		r.VirtualCluster = ""
	case 2:
		r.Priority = pick(c, -2, 1001, 1<<40)
	case 3:
		r.PinnedCell = pick(c, "p0", "p1", "nope")
	case 4:
		r.LeafType = pick(c, "G0", "G1", "G9", "C0L1")
	case 5:
		r.Root = Group{}
	case 6:
		r.Root.Pods = append(r.Root.Pods, PodSet{Count: pick(c, 0, -1, 1<<40), Cells: 1})
	case 7:
		r.Root.Pods = append(r.Root.Pods, PodSet{Count: 1, Cells: pick(c, 0, -1, 1<<40, 1<<62)})
	case 8:
		r.Root.Within = pick(c, "C0L1", "C1L2", "nope")
	case 9:
		r.Root.Pods = append(r.Root.Pods, PodSet{Count: 1, Cells: 1, CellType: pick(c, "C0L1", "C0L2", "nope", "G0")})
	case 10:
		r.Set = pick(c, -1, 9)
	case 11:
		r.Gang = ""
	case 12:
		for range 70 {
			r.Root = Group{Children: []Group{r.Root}}
		}
	case 13:
		r.Root.Pods = append(r.Root.Pods, PodSet{Count: pick(c, 1000, 1<<20, 1<<21), Cells: pick(c, 1, 1<<20, 1<<43)})
	}
}

func (r *Request) String() string {
	return fmt.Sprintf("{vc %s, gang %s, priority %d, pinned %q, leaf %q, lazy %v, suggested %v, user %s/%s, set %d, %+v}",
		r.VirtualCluster, r.Gang, r.Priority, r.PinnedCell, r.LeafType, r.LazyPreemption, r.OnlySuggested, r.User, r.UserGroup, r.Set, r.Root)
}
