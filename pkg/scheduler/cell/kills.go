package cell

// killing is the set of gangs that a placement would evict.
type killing struct {
	stamp uint64
	gangs []*gang
	// byNumber counts all gangs equally. Otherwise large gangs count more.
	byNumber bool
	// counted means that a node's cost is cached.
	counted bool
}

func (k *killing) mark(g *gang) {
	if g.marked != k.stamp {
		g.marked = k.stamp
		k.gangs = append(k.gangs, g)
		if k.counted {
			g.forgetCosts()
		}
	}
}

// forgetCosts drops the cached costs of a gang's nodes. It is called when a gang is added to or removed from the gangs to
// evict.
func (g *gang) forgetCosts() {
	for i := range g.slots {
		for _, p := range g.slots[i].leaves {
			if p != nil {
				p.chain.memos[p.node.index].costStamp = 0
			}
		}
	}
}

// cost returns the cost of need leaves in a cell. It is 0 if enough leaves are or become idle without additional evictions.
// Otherwise it is the weight of the gangs that must be evicted. Among equal weights, it is lowest for the youngest gangs.
func (k *killing) cost(p *pcell, need int) uint64 {
	ch := p.chain
	if p.level > ch.node {
		idle := int(ch.view.upper[p.level-ch.node-1][p.index].free)
		return uint64(max(0, need-idle)) << 40
	}
	if p.level < ch.node {
		return k.costInside(p, need)
	}
	m := &ch.memos[p.index]
	if m.costStamp != k.stamp || m.need != need {
		k.counted = true
		m.costStamp, m.need, m.cost = k.stamp, need, k.costInside(p, need)
	}
	return m.cost
}

// costInside is like cost, for a node or a cell inside a node.
func (k *killing) costInside(p *pcell, need int) uint64 {
	ch := p.chain
	n := p.upTo(ch.node)
	idle := ch.view.nodes[n.index].free.count(int(p.lo-n.lo), int(p.hi-n.lo))
	if idle >= need {
		return 0
	}
	return k.fewest(ch.cells[0][p.lo:p.hi], need-idle)
}

// share is a gang with the number of its leaves in a cell.
type share struct {
	g *gang
	n int
}

// fewest returns the weight of the gangs that must be evicted for the missing leaves. Gangs with the most leaves in the cell
// are evicted first. Among these, younger gangs come first.
func (k *killing) fewest(leaves []*pcell, missing int) uint64 {
	var store [16]share
	killed, oldest := uint64(0), uint64(1<<32-1)
	ok := k.choose(leaves, missing, store[:0], func(g *gang) {
		killed += k.weight(g)
		oldest = min(oldest, g.order)
	})
	switch {
	case !ok:
		return noCost >> 9 // the cell doesn't have enough leaves
	case killed == 0:
		return 0
	}
	return killed<<32 | (1<<32 - 1 - oldest)
}

// choose calls die for each additional gang that must be evicted for the missing leaves. It returns false if the cell has too
// few leaves. parts is an empty buffer.
func (k *killing) choose(leaves []*pcell, missing int, parts []share, die func(*gang)) bool {
next:
	for _, p := range leaves {
		g := p.using
		if g == nil {
			if p.reserving != nil {
				missing-- // a gang with a lower priority has reserved the leaf; its reservation is canceled without evictions
			}
			continue
		}
		if g.marked == k.stamp {
			missing--
			continue
		}
		for i := range parts {
			if parts[i].g == g {
				parts[i].n++
				continue next
			}
		}
		parts = append(parts, share{g, 1})
	}
	return pickVictims(parts, missing, die)
}

// pickVictims calls die for each gang in parts that must be evicted for the missing leaves. It returns false if parts have too
// few leaves.
func pickVictims(parts []share, missing int, die func(*gang)) bool {
	total := 0
	for i := range parts {
		total += parts[i].n
	}
	if missing >= total { // all gangs in parts
		for i := range parts {
			die(parts[i].g)
		}
		return missing <= total
	}
	for missing > 0 {
		best := -1
		for i := range parts {
			if parts[i].n == 0 {
				continue
			}
			if best < 0 || better(parts[i].n, missing, parts[i].g, parts[best].n, parts[best].g) {
				best = i
			}
		}
		missing -= parts[best].n
		parts[best].n = 0
		die(parts[best].g)
	}
	return true
}

// better reports whether gang g should be evicted before gang than. A gang with enough leaves comes first, then the gang with
// more leaves, then the gang with the lower priority, then the younger gang.
func better(n, missing int, g *gang, thanN int, than *gang) bool {
	if enough, thanEnough := n >= missing, thanN >= missing; enough != thanEnough {
		return enough
	} else if !enough && n != thanN {
		return n > thanN
	}
	if a, b := g.effective(), than.effective(); a != b {
		return a < b
	}
	return g.order > than.order
}

// weight returns the cost of evicting a gang: the square root of its number of nodes, rounded down. A gang on several nodes
// waits long until enough nodes are free again. Several small gangs are therefore evicted before a large gang.
func (k *killing) weight(g *gang) uint64 {
	if k.byNumber {
		return 1
	}
	nodes := uint64(g.gpus() / g.chain.leaves[g.chain.node])
	w := uint64(1)
	for (w+1)*(w+1) <= nodes {
		w++
	}
	return w
}
