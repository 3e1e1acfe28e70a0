package cell

// Stats counts.
func (s *Scheduler) Stats() Stats {
	s.settle()
	st := Stats{Gangs: len(s.gangs)}
	for _, g := range s.gangs {
		if g.preempting {
			st.PreemptingGangs++
		}
		if g.opportunistic() && g.priority >= MinGuaranteed {
			st.DowngradedGangs++
		}
	}
	for _, ch := range s.chains {
		st.GPUs += len(ch.cells[0])
		st.BadGPUs += ch.bad
		for _, p := range ch.cells[0] {
			if p.using != nil {
				st.UsedGPUs++
			}
		}
		for _, top := range ch.cells[ch.top()] {
			countFree(top, &st.FreeByLevel)
		}
	}
	for _, v := range s.vcs {
		st.VirtualClusters = append(st.VirtualClusters, s.vcStats(v))
	}
	return st
}

func (s *Scheduler) vcStats(v *vc) VCStats {
	st := VCStats{Name: v.name}
	largest, free := 0, 0
	for _, sp := range v.all() {
		st.Guaranteed += len(sp.leaves)
		for _, leaf := range sp.leaves {
			if leaf.owner != nil {
				st.UsedGuaranteed++
			} else if !leaf.available() {
				st.Bad++
			}
		}
		for _, r := range sp.roots {
			countFree(r, &st.FreeByLevel)
		}
	}
	for _, f := range st.FreeByLevel {
		largest = max(largest, f.GPUs)
		free += f.GPUs * f.Count
	}
	if free > 0 {
		st.Fragmentation = 1 - float64(largest)/float64(free)
	}
	for _, g := range s.gangs {
		if g.key.vc == v.name && g.opportunistic() {
			st.Opportunistic += g.gpus()
		}
	}
	return st
}

// freeCell is a physical or a virtual cell whose free pieces are counted.
type freeCell interface {
	freeLeaves() int
	size() int
	typeName() string
	eachChild(func(freeCell))
}

// countFree adds the largest free cells below and including c.
func countFree(c freeCell, to *[]LevelCount) {
	free := c.freeLeaves()
	if free == 0 {
		return
	}
	if free < c.size() {
		c.eachChild(func(k freeCell) { countFree(k, to) })
		return
	}
	for i := range *to {
		if (*to)[i].CellType == c.typeName() {
			(*to)[i].Count++
			return
		}
	}
	*to = append(*to, LevelCount{CellType: c.typeName(), GPUs: c.size(), Count: 1})
}

func (p *pcell) freeLeaves() int {
	n := 0
	for _, leaf := range p.chain.cells[0][p.lo:p.hi] {
		if leaf.idle() {
			n++
		}
	}
	return n
}
func (p *pcell) size() int        { return int(p.hi - p.lo) }
func (p *pcell) typeName() string { return p.chain.names[p.level] }
func (p *pcell) eachChild(f func(freeCell)) {
	for _, c := range p.children {
		f(c)
	}
}

func (v *vcell) freeLeaves() int {
	n := 0
	for _, leaf := range v.space.leaves[v.lo:v.hi] {
		if leaf.available() {
			n++
		}
	}
	return n
}
func (v *vcell) size() int        { return int(v.hi - v.lo) }
func (v *vcell) typeName() string { return v.space.chain.names[v.level] }
func (v *vcell) eachChild(f func(freeCell)) {
	for _, c := range v.children {
		f(c)
	}
}
