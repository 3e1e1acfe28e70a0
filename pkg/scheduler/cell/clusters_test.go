package cell

import "fmt"

// clusterMaker makes random valid configurations. They have one to three chains with two to six levels, the node at any of
// these levels, machines in two chains, pinned cells, and virtual clusters that own all or some of the cells.
type clusterMaker struct {
	*choices
	conf   Config
	nodes  int
	pins   int
	chains []madeChain
}

type madeChain struct {
	names []string // the names of its types, from the top down
	tops  int
}

const maxMadeLeaves = 96

func makeCluster(c *choices) Config {
	m := &clusterMaker{choices: c}
	large := c.in(4)
	for i := range 1 + pick(c, 0, 0, 1, 0, 1, 2) {
		m.chain(i, large)
	}
	m.virtualClusters()
	return m.conf
}

func (m *clusterMaker) chain(i int, large bool) {
	if i > 0 && m.in(30) && m.lowerTops() {
		return
	}
	levels := 1 + pick(m.choices, 1, 2, 3, 2, 3, 4, 5)
	node := 1 + m.n(levels-1) // the depth of the node's children
	names := make([]string, levels)
	leaves := 1
	for d := range levels {
		names[d] = fmt.Sprintf("C%dL%d", i, levels-1-d)
	}
	names[levels-1] = pick(m.choices, "G0", "G1")
	limit := maxMadeLeaves / 3
	for d := range levels - 1 {
		n := pick(m.choices, 2, 2, 3, 1, 4, 2, 3, 8)
		if leaves*n > limit {
			n = 1
		}
		leaves *= n
		m.conf.Types = append(m.conf.Types, Type{names[d], names[d+1], n, d == node-1})
	}
	tops := 1 + m.n(6)
	if large {
		tops = 1 + 320/leaves
	} else if tops*leaves > maxMadeLeaves {
		tops = max(1, maxMadeLeaves/leaves)
	}
	m.chains = append(m.chains, madeChain{names, tops})
	share := i > 0 && m.nodes > 0 && m.in(30)
	for range tops {
		m.conf.Physical = append(m.conf.Physical, m.cell(names, 0, share, m.in(10)))
	}
}

// lowerTops adds a chain whose top type is inside another chain, as in HiveD's examples. It reports whether it succeeded.
func (m *clusterMaker) lowerTops() bool {
	up := m.chains[m.n(len(m.chains))]
	names := up.names[1:]
	if len(names) < 2 {
		return false
	}
	for _, ch := range m.chains {
		if ch.names[0] == names[0] {
			return false
		}
	}
	if !m.hasNode(names) {
		return false
	}
	tops := 1 + m.n(2)
	m.chains = append(m.chains, madeChain{names, tops})
	for range tops {
		m.conf.Physical = append(m.conf.Physical, m.cell(names, 0, false, m.in(10)))
	}
	return true
}

func (m *clusterMaker) hasNode(names []string) bool {
	for _, name := range names {
		if t := m.typ(name); t != nil && t.Node {
			return true
		}
	}
	return false
}

func (m *clusterMaker) typ(name string) *Type {
	for i := range m.conf.Types {
		if m.conf.Types[i].Name == name {
			return &m.conf.Types[i]
		}
	}
	return nil
}

// cell returns a physical cell. If share is set, its nodes have the same names as another chain's nodes, but separate device
// numbers.
func (m *clusterMaker) cell(names []string, d int, share, pin bool) Physical {
	p := Physical{}
	if d == 0 {
		p.Type = names[0]
	}
	t := m.typ(names[d])
	if pin && m.in(40) {
		p.Pinned = fmt.Sprintf("p%d", m.pins)
		m.pins++
		pin = false
	}
	if t == nil {
		return p
	}
	if t.Node {
		if share {
			// Some nodes are in several chains.
			p.Address = fmt.Sprintf("n%d", m.nodes%7)
			m.nodes++
			device := 100 * len(m.chains)
			return m.devices(p, names, d, &device)
		}
		p.Address = fmt.Sprintf("n%d", m.nodes)
		m.nodes++
		if !pin {
			return p
		}
	}
	at := m.n(t.Children)
	for k := range t.Children {
		p.Children = append(p.Children, m.cell(names, d+1, share, pin && k == at))
	}
	return p
}

func (m *clusterMaker) devices(p Physical, names []string, d int, device *int) Physical {
	t := m.typ(names[d])
	if t == nil {
		p.Address = fmt.Sprint(*device)
		*device++
		return p
	}
	for range t.Children {
		p.Children = append(p.Children, m.devices(Physical{}, names, d+1, device))
	}
	return p
}

// virtualClusters assigns cells to virtual clusters, except cells that Validate rejects.
func (m *clusterMaker) virtualClusters() {
	for i := range 1 + m.n(4) {
		v := VirtualCluster{Name: string(rune('A' + i))}
		if m.in(15) {
			v.Quota = Quota{PerUser: m.n(20), PerGroup: m.n(3) * 8}
			if m.in(50) {
				v.Quota.Users = map[string]int{"u1": m.n(8)}
			}
		}
		if m.in(30) {
			v.Policy = Policies[m.n(len(Policies))].Name
		}
		m.conf.VirtualClusters = append(m.conf.VirtualClusters, v)
	}
	if len(m.conf.Validate()) > 0 {
		// A chain contains nodes with the same name. Rename all nodes instead of sharing them.
		m.rename(m.conf.Physical, new(int))
	}
	for i := range m.pins {
		if m.in(80) {
			m.grant(func(v *VirtualCluster) { v.Pinned = append(v.Pinned, fmt.Sprintf("p%d", i)) })
		}
	}
	for range 2 + m.n(10) {
		ch := m.chains[m.n(len(m.chains))]
		d := m.n(len(ch.names))
		count := 1 + m.n(4)
		path := ch.names[0]
		if d > 0 {
			path += "." + ch.names[d]
		}
		m.grant(func(v *VirtualCluster) { v.Cells = append(v.Cells, Virtual{path, count}) })
	}
}

func (m *clusterMaker) rename(cells []Physical, n *int) {
	for i := range cells {
		if cells[i].Address != "" && cells[i].Address[0] == 'n' {
			cells[i].Address = fmt.Sprintf("n%d", *n)
			*n++
			continue
		}
		m.rename(cells[i].Children, n)
	}
}

// grant changes a random virtual cluster, unless the configuration becomes invalid.
func (m *clusterMaker) grant(give func(*VirtualCluster)) {
	v := &m.conf.VirtualClusters[m.n(len(m.conf.VirtualClusters))]
	before := *v
	give(v)
	if len(m.conf.Validate()) > 0 {
		*v = before
	}
}

// changedConfig returns the configuration with a different division or hardware. The result may be invalid.
func changedConfig(c *choices, conf Config) Config {
	out := conf
	out.Physical = append([]Physical(nil), conf.Physical...)
	out.VirtualClusters = nil
	for _, v := range conf.VirtualClusters {
		v.Cells = append([]Virtual(nil), v.Cells...)
		v.Pinned = append([]string(nil), v.Pinned...)
		out.VirtualClusters = append(out.VirtualClusters, v)
	}
	for range 1 + c.n(3) {
		v := &out.VirtualClusters[c.n(len(out.VirtualClusters))]
		switch c.n(8) {
		case 0, 1:
			if len(v.Cells) > 0 {
				i := c.n(len(v.Cells))
				v.Cells[i].Count += pick(c, -1, 1, -2, 2)
				if v.Cells[i].Count < 1 {
					v.Cells = append(v.Cells[:i:i], v.Cells[i+1:]...)
				}
			}
		case 2:
			if w := &out.VirtualClusters[c.n(len(out.VirtualClusters))]; len(v.Cells) > 0 && w != v {
				w.Cells = append(w.Cells, v.Cells[0])
				v.Cells = append([]Virtual(nil), v.Cells[1:]...)
			}
		case 3:
			if len(out.Physical) > 1 {
				i := c.n(len(out.Physical))
				out.Physical = append(out.Physical[:i:i], out.Physical[i+1:]...)
			}
		case 4:
			i, k := c.n(len(out.Physical)), c.n(len(out.Physical))
			out.Physical[i], out.Physical[k] = out.Physical[k], out.Physical[i]
		case 5:
			if len(v.Pinned) > 0 {
				v.Pinned = v.Pinned[1:]
			}
		case 6:
			if len(v.Cells) > 1 {
				v.Cells[0], v.Cells[len(v.Cells)-1] = v.Cells[len(v.Cells)-1], v.Cells[0]
			}
		case 7:
			if len(out.VirtualClusters) > 1 && c.in(30) {
				out.VirtualClusters = out.VirtualClusters[:len(out.VirtualClusters)-1]
			}
		}
	}
	return out
}
